"""The picture of attempts by instance: a lane for each instance, or for each of its GPUs.
Its columns of attempts are in the order of lane and start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from argosy.figures.document import Figure, Table
from argosy.figures.history import ALIVE, Attempts, stored
from argosy.figures.markup import Markup, element
from argosy.figures.numbers import counted
from argosy.figures.svg import Layer, legend

MOST_ATTEMPTS = 100_000
FIRST_S = 0.1  # a time that is known, and before the origin
_KINDS = (
    ("succeeded", "succeeded"),
    ("failed", "failed"),
    ("lost", "lost and repeated"),
    ("cancelled", "cancelled"),
    ("running", "running"),
    ("starting", "instance starts"),
    ("alive", "instance is idle"),
)


class Lifetime(NamedTuple):  # a refresh builds thousands, and dataclasses are slower to build
    """An instance of the run. Times in seconds after the origin; ended: the picture's end while it lives."""

    id: str
    kind: str  # `c5.xlarge in us-east-1a, spot`
    launched: float
    registered: float
    ended: float
    interrupted: bool


class Timeline(NamedTuple):
    """What one picture shows. lives: in the order of its rows. seconds: from the origin to its right edge. begun: epoch
    seconds of the origin, for an axis of clock times; None for one of elapsed time."""

    lives: Sequence[Lifetime]
    attempts: Attempts
    table: Table
    seconds: float
    begun: float | None = None


def lifetimes(history: Mapping[str, Any], origin: float) -> list[Lifetime]:
    """Of DescribeHistory's instances, in its order; ended: 0 for one that lives. origin: epoch seconds, to which
    earlier times are moved."""
    return [
        Lifetime(
            id=each["id"],
            kind=f"{each['type']} in {each['zone']}, {each['purchase']}",
            launched=_after(each["launchedAt"], origin),
            registered=max(_after(each["registeredAt"], origin), FIRST_S) if each["registeredAt"] else 0.0,
            ended=_after(each["endedAt"], origin),
            interrupted=each["cause"] == "interrupted",
        )
        for each in history.get("instances", ())
    ]


def _after(at: str | None, origin: float) -> float:
    """Seconds after the origin, 0 for unknown times and those before it."""
    after = _epoch_s(at) - origin if at else 0.0
    return after if after > 0.0 else 0.0


@lru_cache(maxsize=65_536)  # a page is made again every few seconds, and the times of thousands of instances stay
def _epoch_s(iso: str) -> float:
    return datetime.fromisoformat(iso).timestamp()


def figure(key: str, title: str, shown: Timeline) -> Figure:
    """The picture, its note and its table."""
    devices, held = by_device(shown.lives, shown.attempts)
    kept, drawn, step = thinned(devices, held)
    lost = sum(each.interrupted for each in shown.lives)
    by_gpu = len(devices) > len(shown.lives) or held.instances != shown.attempts.instances
    note = "One row for each GPU that tasks held, and one" if by_gpu else "One row"
    note += f" for each of {counted(len(shown.lives), 'instance')}, from its launch to its end."
    note += " Vertical marks are interruptions." if lost else ""
    note += f" Every {step}th of {len(devices):,} rows is shown, with all its attempts." if step > 1 else ""
    said = f"Timeline of {min(len(drawn), len(shown.attempts)):,} attempts on {counted(len(shown.lives), 'instance')};"
    data = {**lanes(kept, drawn, shown.seconds), "begun": shown.begun}
    made = picture(key, f"{said} {lost:,} were interrupted.")
    return Figure(key, title, note=note, picture=made, table=shown.table, wide=True, data=data)


def by_device(lives: Sequence[Lifetime], attempts: Attempts) -> tuple[list[Lifetime], Attempts]:
    """A lane for each GPU that tasks of the picture hold, and one for an instance's tasks without: a task with two GPUs
    is on the lanes of both. Instances of one kind get as many lanes."""
    if not attempts.gpu_mask.any():
        return list(lives), attempts
    holds = attempts.gpu_mask
    bits = range(int(holds.max()).bit_length())
    of_device = [np.flatnonzero(holds == 0), *(np.flatnonzero(holds >> np.uint32(bit) & np.uint32(1)) for bit in bits)]
    rows = np.concatenate(of_device)
    devices, many = np.repeat(np.arange(len(of_device)), [len(each) for each in of_device]), len(of_device)
    used, place = np.unique(attempts.instance[rows].astype("i8") * many + devices, return_inverse=True)
    found = [(attempts.instances[number // many], number % many) for number in used.tolist()]
    names = [_device(*each) for each in found]
    held = replace(attempts.where(rows), instance=place.astype("u4"), instances=names)
    kind_of, busy = {each.id: each.kind for each in lives}, set(names)
    most: dict[str, int] = {}  # GPUs, by kind of instance
    for name, device in found:
        kind = kind_of.get(name, "")
        most[kind] = max(device, most.get(kind, 0))
    shown = [
        each._replace(id=_device(each.id, device))
        for each in lives
        for device in range(most.get(each.kind, 0) + 1)
        if device or each.id in busy or not most.get(each.kind)
    ]
    return shown, held


def _device(instance: str, device: int) -> str:
    """device: 0 = of the tasks without a GPU, else one more than the place of the GPU."""
    return f"{instance} GPU {device - 1}" if device else instance


def thinned(
    lives: Sequence[Lifetime], attempts: Attempts, most: int = MOST_ATTEMPTS
) -> tuple[list[Lifetime], Attempts, int]:
    """Every n-th instance with all of its attempts, so that at most about `most` attempts are left; and n."""
    step = max(1, -(-len(attempts) // most)) if most else 1
    if step == 1:
        return list(lives), attempts, 1
    kept = list(lives)[::step]
    names = {each.id for each in kept}
    wanted = np.array([name in names for name in attempts.instances] or [False])
    return kept, attempts.where(wanted[attempts.instance]), step


def lanes(lives: Sequence[Lifetime], attempts: Attempts, seconds: float) -> dict[str, Any]:
    """The data that the page's script draws. lives: in the order of launch. Attempts on other instances are left
    out."""
    lane_of = {each.id: lane for lane, each in enumerate(lives)}
    lane = np.array([lane_of.get(name, -1) for name in attempts.instances] or [-1])[attempts.instance]
    stopped = np.where(attempts.outcome == ALIVE, seconds, attempts.stopped)
    shown = (lane >= 0) & (attempts.started > 0) & (stopped >= attempts.started)
    order = np.lexsort((attempts.started[shown], lane[shown]))
    rows = np.flatnonzero(shown)[order]
    kinds = sorted({each.kind for each in lives})
    number = {kind: place for place, kind in enumerate(kinds)}
    return {
        "seconds": max(seconds, 1.0),
        "kinds": kinds,
        "attempts": {
            "lane": stored(_small(lane[rows])),
            "index": stored(attempts.index[rows]),
            "start": stored(_tenths(attempts.started[rows])),
            "ran": stored(_tenths((stopped - attempts.started)[rows])),
            "outcome": stored(attempts.outcome[rows]),
            **({"run": stored(_small(attempts.run[rows]))} if attempts.runs else {}),
        },
        "runs": list(attempts.runs),
        "instances": {
            "ids": [each.id for each in lives],
            "kind": stored(_small(np.array([number[each.kind] for each in lives], dtype="i8"))),
            "launched": stored(_tenths([each.launched for each in lives])),
            "registered": stored(_tenths([each.registered for each in lives])),
            "ended": stored(_tenths([each.ended for each in lives])),
            "interrupted": stored(np.array([each.interrupted for each in lives], dtype="u1")),
        },
    }


def picture(key: str, said: str) -> Markup:
    """The canvas, the text under the pointer, and the legend of the colours."""
    canvas = element(
        "canvas",
        data_of=key,
        data_kind="lanes",
        tabindex="0",
        role="application",
        aria_label=f"{said} Arrow keys move, plus and minus zoom, 0 shows all.",
    )
    kinds = [Layer(name, kind, np.empty(0)) for kind, name in _KINDS]
    return element(
        "div",
        element("div", class_="tools"),
        canvas,
        element("output", aria_live="polite"),
        legend(kinds),
        class_="dense",
    )


def _small(values: Any) -> Any:
    """The smallest unsigned type that holds them."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def _tenths(seconds: Any) -> Any:
    return np.maximum(np.round(np.asarray(seconds, dtype="f8") * 10), 0).astype("u4")
