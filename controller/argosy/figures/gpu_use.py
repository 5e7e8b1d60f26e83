"""What the tasks of a run used of their GPUs: a figure for the page of the run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from argosy.client.gpu_use import Column, MeasuredUse, sentence
from argosy.figures import axes, svg
from argosy.figures.document import Figure, Table
from argosy.figures.history import Floats
from argosy.figures.numbers import duration


def gpu_use(uses: Sequence[MeasuredUse], advice: str = "") -> Figure:
    """Over time of the attempt that was measured longest, and a row for each. advice: what would be enough."""
    longest = max(uses, key=lambda each: each.at[-1])
    at = np.array(longest.at)
    drawn = [
        (at, svg.Layer(name, kind, values / 100, _last(values)))
        for name, kind, values in (
            ("computing", "2", _floats(longest.use)),
            ("memory", "1", _floats(longest.memory_mib) / longest.has_mib * 100),
        )
        if not np.isnan(values).all()
    ]
    axis = axes.Axis(0.0, 1.0, [(share / 100, f"{share} %") for share in (0, 25, 50, 75, 100)])
    said = f"Use of its GPUs by task {longest.index} over {duration(longest.at[-1])}."
    frame = svg.Frame(axes.seconds(0.0, longest.at[-1]), axis, "since it started", f"of task {longest.index}", said)
    rows = [
        (f"{each.index}", f"{each.attempt}", f"{each.gpus} x {each.name}", _asked(each), sentence([each]))
        for each in uses
    ]
    table = Table((">Task", ">Attempt", "GPUs", "Asked for", "Used"), rows, stacks=True)
    note = f"{sentence(uses)}. {advice}" if advice else f"{sentence(uses)}."
    return Figure("gpu-use", "Use of GPUs", note=note, picture=svg.lines(frame, drawn), table=table)


def _asked(use: MeasuredUse) -> str:
    return f"{use.share_mib:,} MiB of one" if use.share_mib else "whole"


def _floats(column: Column) -> Floats:
    return np.array([np.nan if value is None else value for value in column], dtype="f8")


def _last(percent: Floats) -> str:
    known = percent[~np.isnan(percent)]
    return f"{known[-1]:.0f} %"
