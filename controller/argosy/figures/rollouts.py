"""How have an environment's deployments gone? A time line with a row for each revision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from argosy.figures import axes, svg
from argosy.figures.document import Figure, Table, status_pill
from argosy.figures.numbers import clock, counted, duration, instant

View = Mapping[str, Any]
_KINDS = {
    "COMPLETED": ("succeeded", "completed"),
    "IN_PROGRESS": ("running", "in progress"),
    "WAITING": ("lost", "waits for instances"),
    "STUCK": ("lost", "stuck"),
    "FAILED": ("failed", "failed"),
    "STOPPED": ("cancelled", "stopped"),
    "SUPERSEDED": ("queued", "superseded by the next one"),
}
_MARGIN = 1.015  # room for the ends of what is drawn
_LOW = 5  # rows that need no high picture


def deployments(view: View, now: float) -> Figure:
    """view: DescribeEnvironment's reply. now: epoch seconds."""
    key, title = "deployments", "Deployments over time"
    found = view["deployments"]
    if not found:
        return Figure(key, title, empty="It was never deployed.", wide=True)
    numbers = sorted({each["revision"] for each in found}, reverse=True)
    begins = [_seconds(each["startedAt"], now) for each in found]
    drawn = list(_stretches(found, begins, numbers, now))
    frame = svg.Frame(
        axes.seconds(_MARGIN * min(begins), 0.0),
        axes.rows([str(each) for each in numbers]),
        "before now",
        "revision",
        f"{counted(len(found), 'deployment')} of {counted(len(numbers), 'revision')}, the last {_word(found[-1])}.",
        low=len(numbers) <= _LOW,
    )
    note = "A row for each revision: pale while it was the one that was to run, full while it was being deployed."
    picture = svg.stretches(frame, drawn, list(_legend(found)))
    return Figure(key, title, note=note, picture=picture, table=_table(found, now), wide=True)


def _stretches(
    found: Sequence[View], begins: Sequence[float], numbers: Sequence[int], now: float
) -> Iterator[svg.Stretch]:
    for place, (each, begin) in enumerate(zip(found, begins, strict=True)):
        row = axes.row_of(numbers.index(each["revision"]), len(numbers))
        following = begins[place + 1] if place + 1 < len(begins) else 0.0
        yield svg.Stretch(f"revision {each['revision']} was to run", "alive", row, begin, following, is_band=True)
        end = _seconds(each["endedAt"], now) if each["endedAt"] else 0.0
        said = f"deployment {each['deployment']}: {_word(each)} after {duration(end - begin)}"
        yield svg.Stretch(
            f"{said}: {each['reason']}" if each["reason"] else said, _KINDS[each["status"]][0], row, begin, end
        )


def _legend(found: Sequence[View]) -> Iterator[svg.Layer]:
    there = {each["status"] for each in found}
    for status, (kind, word) in _KINDS.items():
        if status in there:
            yield svg.Layer(word, kind, np.empty(0), f"{sum(each['status'] == status for each in found):,}")
    yield svg.Layer("was to run", "alive", np.empty(0))


def _word(deployment: View) -> str:
    return _KINDS[deployment["status"]][1]


def _table(found: Sequence[View], now: float) -> Table:
    rows = [
        (
            str(each["deployment"]),
            str(each["revision"]) + (" (roll-back)" if each["isRollback"] else ""),
            status_pill(each["status"]),
            clock(each["startedAt"]),
            duration((_seconds(each["endedAt"], now) if each["endedAt"] else 0.0) - _seconds(each["startedAt"], now)),
            f"{each['failures']:,}",
            each["reason"] or "",
        )
        for each in reversed(found)
    ]
    heads = (">Deployment", "Revision", "Status", "Started", ">Took", ">Failures", "Reason")
    return Table(heads, rows, stacks=True)


def _seconds(iso: str | None, now: float) -> float:
    """After now; what is not known is now."""
    moment = instant(iso)
    return 0.0 if moment is None else min(0.0, moment.timestamp() - now)
