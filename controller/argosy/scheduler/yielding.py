"""Which instances are kept for one run, so that nobody else's tasks go there?

Room that was taken from others for a run (`scheduler.reclaim`) takes up to two minutes to become free. If everybody
could have it, small tasks would slip in, and the next one would have to go for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from argosy.model.moment import Moment
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus


def kept_for_runs(state: State, now: float) -> dict[str, int]:
    """Instance id -> Run.number of the run that it is kept for: one that is open and has tasks that wait."""
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
    """The constraint that keeps a run's tasks off what is kept for others. kept: from `kept_for_runs`. open_to: ids of
    those instances that its tasks have left by the time that they are needed (`backfill`)."""
    others = sorted(name for name, number in kept.items() if number != run.number and name not in open_to)
    return (f"not(ec2InstanceId in [{', '.join(others)}])",) if others else ()


def emptied_for(state: State, now: float) -> dict[str, int]:
    """Those of `kept_for_runs` that are emptied for the run: what services have there moves elsewhere."""
    if not any(instance.is_emptied for instance in state.instances.values()):
        return {}
    kept = kept_for_runs(state, now)
    return {name: number for name, number in kept.items() if state.instances[name].is_emptied}


def idle_yields(moment: Moment, wanted: Collection[str]) -> frozenset[str]:
    """Instances that are kept for a run whose tasks do not fit there: they go as soon as they are empty, so that
    another type can be bought."""
    state = moment.state
    kept = kept_for_runs(state, moment.now)
    return frozenset(name for name in kept if name not in wanted and not state.attempts.is_busy(name))
