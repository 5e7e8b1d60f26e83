"""The cost of several runs together, in the form that DescribeRun gives of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.client.progress import TERMINAL

View = Mapping[str, Any]
_SUMMED = ("costUsd", "onDemandCostUsd", "usefulUsd", "attempts", "interruptions")
_POOL = ("cell", "instanceType", "availabilityZone", "purchase")


def together(name: str, views: Sequence[View]) -> dict[str, Any]:
    """name: stands in place of a run's id. An environment's cost has no status and no caps: its runs have them."""
    costs = [view["cost"] for view in views]
    estimates = [cost["estimates"] for cost in costs]
    known = {key: sum(view.get(key) or 0 for view in views) for key in _SUMMED}
    is_open = any(view["status"] not in TERMINAL for view in views)
    return {
        **known,
        "runId": name,
        "status": "RUNNING" if is_open else str(views[0]["status"]),
        "runs": [{"runId": view["runId"], "status": view["status"], "costUsd": view["costUsd"]} for view in views],
        "cost": {
            **{key: _sums([cost[key] for cost in costs]) for key in ("byLine", "byWaste")},
            "byPool": _pools(costs),
            "instanceHours": sum(cost["instanceHours"] for cost in costs),
            "estimates": {
                **{key: sum(each[key] for each in estimates) for key in ("logsUsd", "imageTransferUsd")},
                "assumed": estimates[0]["assumed"],
            },
        },
    }


def _sums(parts: Sequence[View]) -> dict[str, float]:
    return {key: sum(part[key] for part in parts) for key in parts[0]}


def _pools(costs: Sequence[View]) -> list[dict[str, Any]]:
    """The most expensive first, as for one run."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for each in (pool for cost in costs for pool in cost["byPool"]):
        name = tuple(each[key] for key in _POOL)
        before = found.get(name, {})
        found[name] = {key: value if key in _POOL else before.get(key, 0.0) + value for key, value in each.items()}
    return sorted(found.values(), key=lambda pool: -pool["costUsd"])
