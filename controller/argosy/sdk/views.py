"""A plan and the state of the cluster, for Python programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_PLAN_IN_NOTEBOOKS = ("frontier", "bought", "rejected")
_CLUSTER_IN_NOTEBOOKS = ("map", "orders")


@dataclass(frozen=True, eq=False)
class RunPlan:
    """What a run would buy, cost and take; nothing was started. `argosy.Plan`. reply: PlanRun's."""

    reply: Mapping[str, Any]

    @property
    def is_possible(self) -> bool:
        """Whether this deployment could run it."""
        return bool(self.reply["possible"])

    @property
    def tasks(self) -> int:
        """The number of its tasks."""
        return int(self.reply["tasks"])

    @property
    def cost(self) -> Mapping[str, float] | None:
        """US dollars: `low`, `expected`, `high`; None if there is no forecast."""
        found: Mapping[str, float] | None = self.reply["costUsd"] if self.is_possible else None
        return found

    @property
    def seconds(self) -> Mapping[str, float] | None:
        """Until its end: `low`, `expected`, `high`; None if there is no forecast."""
        found: Mapping[str, float] | None = self.reply["seconds"] if self.is_possible else None
        return found

    @property
    def warnings(self) -> list[str]:
        """Sentences."""
        return list(self.reply["warnings"])

    def _repr_html_(self) -> str:
        from argosy.figures.plan import plan_page
        from argosy.sdk.notebooks import notebook_html

        return notebook_html(plan_page(self.reply), _PLAN_IN_NOTEBOOKS)

    def __repr__(self) -> str:
        from argosy.figures.numbers import counted, duration, money

        name = f"<argosy.Plan {self.reply['name']}: {counted(self.tasks, 'task')}"
        if self.cost is None or self.seconds is None:
            return f"{name}, impossible here>"
        return f"{name}, {money(self.cost['expected'])}, {duration(self.seconds['expected'])}>"


@dataclass(frozen=True, eq=False)
class ClusterView:
    """The deployment's instances and their cost at the time of the request. `argosy.Cluster`. reply: DescribeCluster's,
    with
    its instances as columns.
    """

    reply: Mapping[str, Any]

    @property
    def cells(self) -> list[str]:
        """Its Regions, the home Region first."""
        return list(self.reply["cells"])

    @property
    def spent(self) -> float:
        """US dollars since the deployment."""
        return float(self.reply["spentUsd"])

    def instances(self) -> list[dict[str, Any]]:
        """One row for each that lives: type, zone, purchase, tasks and US dollars an hour."""
        from argosy.figures.instances import instances_of

        found, _ = instances_of(self.reply)
        return [
            {
                "type": found.types[found.type[row]],
                "zone": found.zones[found.zone[row]],
                "purchase": "spot" if found.is_spot[row] else "on-demand",
                "tasks": int(found.tasks[row]),
                "usdPerHour": float(found.usd_per_hour[row]),
            }
            for row in range(len(found))
        ]

    def _repr_html_(self) -> str:
        from argosy.figures.cluster import cluster_page
        from argosy.sdk.notebooks import notebook_html

        return notebook_html(cluster_page(self.reply), _CLUSTER_IN_NOTEBOOKS)

    def __repr__(self) -> str:
        return f"<argosy.Cluster {self.reply['cluster']}: {len(self.instances()):,} instances>"
