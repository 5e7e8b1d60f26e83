"""What does the picture of the cluster draw? A square for each instance, by type and zone, with its shares in use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.figures.history import stored
from argosy.figures.instances import AtWork, Instances
from argosy.figures.markup import Markup, element

NONE = 255  # in a column of shares: the instance has none of it


def cells(instances: Instances, at_work: AtWork) -> dict[str, Any]:
    """What the page's script draws: the types with most instances first."""
    counts = np.bincount(instances.type, minlength=len(instances.types))
    order = sorted(range(len(instances.types)), key=lambda row: (-counts[row], instances.types[row]))
    order = [row for row in order if counts[row]]
    rank = np.zeros(len(instances.types), dtype="u2")
    rank[order] = np.arange(len(order))
    return {
        "types": [instances.types[row] for row in order],
        "zones": list(instances.zones),
        "states": [state.lower() for state in instances.states],
        "ids": instances.ids.astype("U19").tolist(),
        "runs": list(at_work.runs),
        "columns": {
            "type": stored(rank[instances.type]),
            "zone": stored(instances.zone),
            "state": stored(instances.state.astype("u1")),
            "cpu": stored(_percent(instances.cpu)),
            "memory": stored(_percent(instances.memory)),
            "gpu": stored(_percent(instances.gpu)),
            "tasks": stored(instances.tasks),
        },
        "work": _work(at_work, len(instances)),
    }


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
    none = element("span", element("span", class_="key s-alive"), "has none", class_="scale")
    tools = element("div", class_="tools")
    return element("div", tools, canvas, element("output", aria_live="polite"), scale, " ", none, class_="dense")


def _work(at_work: AtWork, instances: int) -> dict[str, Any]:
    """first: where the attempts of each instance begin, and in the end how many there are."""
    first = np.searchsorted(at_work.instance, np.arange(instances + 1)).astype("u4")
    columns = {"first": stored(first), "run": stored(at_work.run), "index": stored(at_work.index)}
    return {**columns, "gpus": stored(at_work.gpu_mask)} if at_work.gpu_mask.any() else columns


def _percent(shares: NDArray[np.float32]) -> NDArray[np.uint8]:
    whole = np.round(100 * np.clip(np.nan_to_num(shares), 0.0, 1.0))
    return np.where(np.isnan(shares), NONE, whole).astype("u1")
