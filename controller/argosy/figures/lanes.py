"""The picture of attempts by instance: a lane for each instance in the order of launch.
Its columns of attempts are in the order of lane and start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from argosy.figures.history import ALIVE, Attempts, stored
from argosy.figures.markup import Markup, element
from argosy.figures.svg import Layer, legend

MOST_ATTEMPTS = 100_000
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
    return kept, _where(attempts, wanted[attempts.instance]), step


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
        },
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


def _where(attempts: Attempts, chosen: Any) -> Attempts:
    names = (
        "index",
        "attempt",
        "instance",
        "started",
        "stopped",
        "outcome",
        "exit_code",
        "reason",
        "gpu_mask",
        "pulled",
    )
    changed: Mapping[str, Any] = {name: getattr(attempts, name)[chosen] for name in names}
    return replace(attempts, **changed)


def _small(values: Any) -> Any:
    """The smallest unsigned type that holds them."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def _tenths(seconds: Any) -> Any:
    return np.maximum(np.round(np.asarray(seconds, dtype="f8") * 10), 0).astype("u4")
