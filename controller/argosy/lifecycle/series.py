"""When is a sample of a run's series taken? In a commit that changes the run anyway, if there is room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from argosy.model.costs import Costs, summed
from argosy.model.money.ledger import not_charged
from argosy.model.policy import Policy
from argosy.model.runs import Run
from argosy.model.series import Sample
from argosy.model.state import State
from argosy.model.tasks import TaskStatus


def sample(state: State, now: float, policy: Policy, deletions: int = 0) -> None:
    """Sample each run that has changed and is due, the longest overdue first; a run that ends is always due. deletions:
    items that the commit removes."""
    due = [run for run in state.runs.values() if _has_changed(state, run) and (run.done or run.series.is_due(now))]
    if not due:
        return
    due.sort(key=lambda run: run.series.samples[-1].at if run.series.samples else 0.0)
    numbers = {run.number for run in due}
    pending = not_charged(state, state.needs_by_number(), now, numbers)
    hosts, usd_per_hour = _capacity(state, numbers)
    for run in due:
        if not state.has_room_for_series(policy, deletions):
            return
        costs = summed([*run.costs.values(), *pending.get(run.number, {}).values()])
        counts = run.tasks.counts().tolist()
        run.series.add(_sample(now, counts, (hosts[run.number], usd_per_hour[run.number]), costs))


def _has_changed(state: State, run: Run) -> bool:
    return run.id in state.changed_runs or bool(run.tasks.dirty)


def _capacity(state: State, numbers: Collection[int]) -> tuple[Counter[int], dict[int, float]]:
    """By Run.number: the number of instances with attempts of the run, and its share of their hourly cost, which is
    split by the number of attempts."""
    hosts: Counter[int] = Counter()
    usd_per_hour = dict.fromkeys(numbers, 0.0)
    for name, runs in state.attempts.runs_on_instance.items():
        instance, total = state.instances.get(name.decode()), sum(runs.values())
        for number, count in runs.items():
            if number in usd_per_hour and count and instance is not None:
                hosts[number] += 1
                usd_per_hour[number] += instance.price_usd_per_hour * count / total
    return hosts, usd_per_hour


def _sample(now: float, counts: list[int], capacity: tuple[int, float], costs: Costs) -> Sample:
    return Sample(
        at=now,
        queued=counts[TaskStatus.PENDING],
        starting=counts[TaskStatus.STARTING],
        running=counts[TaskStatus.RUNNING] + counts[TaskStatus.VERIFYING],
        succeeded=counts[TaskStatus.SUCCEEDED],
        failed=counts[TaskStatus.FAILED],
        cancelled=counts[TaskStatus.CANCELLED],
        instances=capacity[0],
        usd_per_hour=capacity[1],
        on_demand=costs.on_demand,
        useful=costs.useful,
        boot=costs.boot,
        idle=costs.idle,
        redone=costs.redone,
        failed_usd=costs.failed,
        displaced=costs.displaced,
    )
