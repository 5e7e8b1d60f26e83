"""Instances kept for one run, and the tasks of other runs that may use them in the meantime.

Room taken from other runs (`scheduler.taking_room`) takes up to two minutes to become free. If it were open to every
run, small tasks would fill it, and further tasks would be stopped to no effect. So the instance is kept.

Backfill: an instance that is being emptied would stay half empty for as long as its longest task. The kept room is
needed once the tasks that were there when the instance began to be kept have ended. None of them ends sooner than the
shortest task of its run so far. A task that certainly ends before that delays no run: one with a time-out, or one of a
run with several ended tasks. A task of unknown duration never starts there.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from argosy.model.attempts import StopCause
from argosy.model.instances import Instance
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.resources import Resources
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus

SEEN = 5  # tasks of a run have to have ended for their durations to be known
LONGER = 1.5  # times the longest of them, at most
STOPPING_S = 120.0  # a task has to answer SIGTERM after its time-out
STARTING_S = 60.0  # from the decision until it runs
Ends = Sequence[tuple[float, Resources]]
"""The earliest end of a task, and the resources that become free."""


def kept_for_runs(state: State, now: float) -> dict[str, int]:
    """Instance id -> Run.number of the run that it is kept for, which is open and has waiting tasks."""
    waiting: dict[int, bool] = {}
    found: dict[str, int] = {}
    for instance in state.instances.values():
        if not instance.yields_to or now >= instance.yields_until or not instance.alive:
            continue
        number = instance.yields_to
        if number not in waiting:
            waiting[number] = _waits(state.run_by_number(number))
        if waiting[number]:
            found[instance.id] = number
    return found


def _waits(run: Run | None) -> bool:
    return run is not None and run.ready and bool(run.tasks.counts()[TaskStatus.PENDING])


def off_limits(run: Run, kept: Mapping[str, int], open_to: Collection[str] = ()) -> tuple[str, ...]:
    """The constraint that keeps a run's tasks off instances kept for others. kept: from `kept_for_runs`. open_to:
    ids of those instances that its tasks will have left in time (`backfill`)."""
    others = sorted(name for name, number in kept.items() if number != run.number and name not in open_to)
    return (f"not(ec2InstanceId in [{', '.join(others)}])",) if others else ()


def emptied_for(state: State, now: float) -> dict[str, int]:
    """The instances of `kept_for_runs` that are emptied for the run: tasks of services there move elsewhere."""
    if not any(instance.is_emptied for instance in state.instances.values()):
        return {}
    kept = kept_for_runs(state, now)
    return {name: number for name, number in kept.items() if state.instances[name].is_emptied}


def idle_yields(moment: Moment, wanted: Collection[str]) -> frozenset[str]:
    """Instances kept for a run whose tasks do not fit there: they go as soon as they are empty, so that another type
    can be bought."""
    state = moment.state
    kept = kept_for_runs(state, moment.now)
    return frozenset(name for name in kept if name not in wanted and not state.attempts.is_busy(name))


def longest_stay_s(run: Run, policy: Policy) -> float:
    """The longest time that one of its tasks keeps its place, from the decision to start it; infinite = unknown."""
    if run.terms.serves:
        return math.inf
    limit_s = run.terms.attempt_timeout_s + STOPPING_S if run.terms.attempt_timeout_s else math.inf
    seen_s = LONGER * run.longest_s if run.ended >= SEEN else math.inf
    return min(limit_s, seen_s) + STARTING_S + policy.start_s


def needed_from(moment: Moment, kept: Mapping[str, int]) -> dict[str, float]:
    """By instance id, the time (epoch seconds) before which no task of the run that it is kept for can start there;
    only for instances where none can start now. kept: from `kept_for_runs`."""
    runs = {run.number: run for run in moment.state.runs.values()} if kept else {}
    found = {}
    for name, number in kept.items():
        instance = moment.state.instances[name]
        at = first_fit(runs[number].needs, *_as_if_alone(instance, moment, runs), moment.now)
        if at > moment.now:
            found[name] = at
    return found


def open_to(run: Run, moment: Moment, needed: Mapping[str, float]) -> frozenset[str]:
    """Ids of the instances that its tasks will have left in time. needed: from `needed_from`."""
    if not needed:
        return frozenset()
    gone_at = moment.now + longest_stay_s(run, moment.policy)
    return frozenset(name for name, at in needed.items() if gone_at <= at)


def first_fit(needs: Resources, free: Resources, ends: Ends, now: float) -> float:
    """The earliest time at which that much is free; if it never is, the end of all tasks, so that the instance may go.

    One task of 2 vCPUs ends in 60 s, another in 300 s. A task of 3 vCPUs fits with 1 free vCPU in 60 s.

    >>> ends = [(300.0, Resources(2048, 0, 0)), (60.0, Resources(2048, 0, 0))]
    >>> first_fit(Resources(3072, 0, 0), Resources(1024, 0, 0), ends, now=0.0)
    60.0
    """
    left = [*free]
    if all(has >= need for has, need in zip(left, needs, strict=True)):
        return now
    for at, taken in sorted(ends):
        left = [has + more for has, more in zip(left, taken, strict=True)]
        if all(has >= need for has, need in zip(left, needs, strict=True)):
            return max(now, at)
    return max([now, *(at for at, _ in ends)])


def _as_if_alone(instance: Instance, moment: Moment, runs: Mapping[int, Run]) -> tuple[Resources, Ends]:
    """The free resources there and the ends of tasks, without tasks that started after it began to be kept: those
    are gone by then."""
    table, ends = moment.state.attempts, list[tuple[float, Resources]]()
    free = [total - foreign for total, foreign in zip(instance.size, instance.foreign, strict=True)]
    for row in table.on_instance(instance.id):
        number = int(table["run"][row])
        run, came_later = runs.get(number), table["intended_at"][row] > instance.yields_since
        if run is None or (came_later and number != instance.yields_to and not run.is_daemon):
            continue
        free = [has - need for has, need in zip(free, run.needs, strict=True)]
        if not run.is_daemon:
            is_going = table["stop_cause"][row] != StopCause.NONE.value
            ends.append((_ends_at(run, float(table["started_at"][row]), is_going, moment.now), run.needs))
    return Resources(*free), ends


def _ends_at(run: Run, started_at: float, is_going: bool, now: float) -> float:
    """The earliest time."""
    if is_going or run.terms.serves or run.ended < SEEN:
        return now
    return max(now, (started_at or now) + run.shortest_s)
