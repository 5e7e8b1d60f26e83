"""What the tasks of a run have saved: a figure for the page of the run."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.client.checkpoints import SavedCheckpoint, sentence
from argosy.figures.document import Figure, Table
from argosy.figures.numbers import duration, size


def checkpoints(saved: Sequence[SavedCheckpoint], now: float) -> Figure:
    """A row for the newest one of each task. now: epoch seconds."""
    rows = [
        (
            f"{each.index}",
            f"{each.attempt}",
            duration(max(0.0, now - each.at)),
            size(each.size),
            f"{each.seconds:.1f} s",
            each.cause,
        )
        for each in saved
    ]
    table = Table((">Task", ">Attempt", ">Age", ">Size", ">Saved in", "Because of"), rows, stacks=True)
    return Figure("checkpoints", "Checkpoints", note=f"{sentence(saved, now)}.", table=table)
