"""What does the picture of the cluster draw? A square for each instance, by type and zone, with its shares in use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.figures.history import stored
from argosy.figures.markup import Markup, element

NONE = 255  # in a column of shares: the instance has none of it


@dataclass(frozen=True, slots=True)
class Machine:
    """One instance. Shares 0..1; None: it has none of it. tasks: how many run there."""

    id: str
    type: str
    zone: str
    purchase: str
    status: str
    usd_per_hour: float
    on_demand_usd_per_hour: float
    cpu: float | None
    memory: float | None
    gpu: float | None
    tasks: int


def cells(machines: Sequence[Machine], named: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What the page's script draws: the types with most instances first. named: instance -> what its tasks are."""
    counts = Counter(each.type for each in machines)
    types = sorted(counts, key=lambda name: (-counts[name], name))
    zones = sorted({each.zone for each in machines})
    states = sorted({each.status for each in machines})
    found: dict[str, Any] = {
        "types": types,
        "zones": zones,
        "states": [state.lower() for state in states],
        "ids": [each.id for each in machines],
        "columns": {
            "type": stored(np.array([types.index(each.type) for each in machines], dtype="u2")),
            "zone": stored(np.array([zones.index(each.zone) for each in machines], dtype="u2")),
            "state": stored(np.array([states.index(each.status) for each in machines], dtype="u1")),
            "cpu": stored(_percent([each.cpu for each in machines])),
            "memory": stored(_percent([each.memory for each in machines])),
            "gpu": stored(_percent([each.gpu for each in machines])),
            "tasks": stored(np.array([each.tasks for each in machines], dtype="u4")),
        },
    }
    if named:
        found["named"] = [named.get(each.id, "") for each in machines]
    return found


def picture(key: str, said: str) -> Markup:
    """Where the script draws, and what the colours mean."""
    canvas = element(
        "canvas",
        data_of=key,
        data_kind="cells",
        tabindex="0",
        role="application",
        aria_label=f"{said} Arrow keys go from instance to instance.",
    )
    scale = element("span", "0 %", element("i"), "100 % in use", class_="scale")
    tools = element("div", class_="tools")
    return element("div", tools, canvas, element("output", aria_live="polite"), scale, class_="dense")


def _percent(shares: Sequence[float | None]) -> Any:
    return np.array([NONE if each is None else round(100 * min(1.0, max(0.0, each))) for each in shares], dtype="u1")
