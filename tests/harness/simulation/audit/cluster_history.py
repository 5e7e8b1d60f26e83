"""The cluster's history and the metrics of each tick, compared with the stored state.

C1: a sample counts the runs, tasks and instances that are stored in the same commit. C2: while anything exists, no
commit comes later than five minutes after the previous sample. C3: when all has ended, the last sample says so. C4: an
order equals the growth of the stored targets.
`figures`: the pending and running tasks and the live instances that a tick reports in its metrics and its log line are
those of the state that it has committed, without suspended runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from argosy.engine.report import TickReport
from argosy.model.cluster_history import EVERY_S, ClusterSample, PlacedOrder
from argosy.model.instances import InstanceStatus, Purchase
from argosy.model.pools import INTERRUPTIBLE
from argosy.model.tasks import TaskStatus
from tests.harness.simulation.audit.facts import Checker, Commit, TrialFacts, TrialResults

JSON = dict[str, Any]


Targets = dict[str, tuple[int, int]]
A_TICK_S = 120.0  # from the moment that a tick decides for until its commit, retries included


class ClusterHistoryChecker(Checker):
    """Samples and orders as they are stored, compared with the stored state and the world."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._last: ClusterSample | None = None
        self._targets: Targets | None = None

    def committed(self, commit: Commit) -> None:
        piece = self.facts.stored.cluster_history
        if piece and piece.sample:
            self._last = piece.sample
            self._check(piece.sample)
        self._check_orders(piece.orders if piece else ())
        late_s = self.facts.world.now - (self._last.at if self._last else 0.0)
        is_there = self._open_runs() or self._instances()
        is_the_apis = self.facts.stored.version == commit.version_before
        if (
            is_there
            and not is_the_apis
            and late_s > EVERY_S + A_TICK_S + self.facts.stands_still_s + self.facts.clocks_differ_s
        ):
            self.facts.violated("C2", f"the last sample of the cluster is {late_s:.0f} s old")

    def at_rest(self, rest: TrialResults) -> None:
        alive = [each for each in self.facts.regions.instances() if each.alive]
        if not alive and not self._open_runs() and self._last and not self._last.is_at_rest:
            self.facts.violated("C3", f"nothing is there any more, and the last sample says {self._last}")

    def _check(self, sample: ClusterSample) -> None:
        runs, instances = self._open_runs(), self._instances()
        if self.facts.damaged:
            return  # open runs without a readable record are not counted
        counts = [record.counts for record in runs]
        purchases = Counter(each["purchase"] for each in instances)
        wanted = {
            "runs": len(runs),
            "queued": sum(each[TaskStatus.PENDING] for each in counts),
            "starting": sum(each[TaskStatus.STARTING] for each in counts),
            "running": sum(each[TaskStatus.RUNNING] + each[TaskStatus.VERIFYING] for each in counts),
            "spot": purchases[Purchase.SPOT],
            "on_demand": len(instances) - purchases[Purchase.SPOT],
            "active": sum(each["status"] == InstanceStatus.ACTIVE for each in instances),
        }
        found = {name: getattr(sample, name) for name in wanted}
        if found != wanted:
            self.facts.violated("C1", f"a sample says {found}, and stored is {wanted}")
        price = sum(each["price_usd_per_hour"] for each in instances)
        if abs(sample.usd_per_hour - price) > 1e-6:
            self.facts.violated("C1", f"a sample says {sample.usd_per_hour} $/h, and stored is {price}")

    def _check_orders(self, orders: Sequence[PlacedOrder]) -> None:
        pools = self.facts.stored.pools
        targets = {key: (each["spot_target"], each["on_demand_order"]) for key, each in pools.items()}
        grown = Counter[tuple[str, str]]()
        for key, now in targets.items() if self._targets is not None else ():
            before = (self._targets or {}).get(key) or _as_met(pools[key])
            grown[key, Purchase.SPOT.value] += max(0, now[0] - before[0])
            grown[key, _ordered_as(pools[key])] += pools[key]["on_demand_count"] if now[1] != before[1] else 0
        if self._targets is not None and +grown != Counter({(each.pool, each.purchase): each.count for each in orders}):
            self.facts.violated("C4", f"targets have grown by {dict(+grown)}, and the orders are {orders}")
        self._targets = targets

    def _open_runs(self) -> list[Any]:
        stored = self.facts.stored
        return [record for run_id in stored.root.get("runs", ()) if (record := stored.records.get(run_id))]

    def _instances(self) -> list[JSON]:
        found = self.facts.stored.instances.values()
        return [each for each in found if each["owned"] and each["status"] != InstanceStatus.GONE]


def _as_met(pool: JSON) -> tuple[int, int]:
    """The target of a fleet that is stored for the first time, as others had set it and EC2 showed it, and no order."""
    return pool["spot_target"] if pool["confirmed_spot"] < 0 else pool["confirmed_spot"], 0


class FigureChecker(Checker):
    """Each report, compared with the stored state that it describes."""

    def ticked(self, report: TickReport, version: int | None) -> None:
        stored = self.facts.stored
        if version != stored.version or any(trouble.what == "a tick's report" for trouble in report.troubles):
            return  # another controller has committed since, or there are no figures
        said = (report.tasks_pending, report.tasks_running, report.instances)
        alive = sum(each["status"] != InstanceStatus.GONE for each in stored.instances.values())
        counted = (self._tasks(TaskStatus.PENDING), self._tasks(TaskStatus.RUNNING), alive)
        if said != counted:
            self.facts.violated("figures", f"pending, running, instances: {said} in the metrics, {counted} are stored")

    def _tasks(self, status: TaskStatus) -> int:
        stored = self.facts.stored
        suspended = stored.root.get("suspended", {})
        open_runs = [run_id for run_id, run in stored.records.items() if not run.has_ended and run_id not in suspended]
        return sum(row[0] == status for run_id in open_runs for row in stored.tables[run_id])


def _ordered_as(pool: Mapping[str, Any]) -> str:
    if not pool.get("reservation"):
        return Purchase.ON_DEMAND.value
    is_lent = pool["reserved_as"] == INTERRUPTIBLE
    return (Purchase.INTERRUPTIBLE if is_lent else Purchase.RESERVED).value
