"""When is the next action due if no new fact arrives?

The controller rests while there is nothing to do (`engine.loop`), so every change that follows from time alone is
listed here: pauses, patience and expiring limits. `decide` gives no action before the returned time unless a fact
arrives. In doubt the answer is now: returning early costs little, returning late costs more. Other work of a tick
(sweeps, samples, expiry of records) may be a minute late.

A run that waits for a time is checked again at that time, and one that waits for another run when that has ended.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from argosy.market.floors import least_sizes, missing
from argosy.model.attempts import AttemptStatus, StopCause
from argosy.model.history_parts import FOLDED_AFTER_S
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.live_tasks import all_are_well
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.runs import Run
from argosy.model.services.environments import CALM_S, Environment
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.placement.place import place
from argosy.scheduler.placing.spare_room import spare_batches
from argosy.scheduler.services.targets import is_at_rest
from argosy.scheduler.supply.roster import Roster
from argosy.scheduler.upkeep.health_polls import next_looks
from argosy.scheduler.upkeep.upkeep import UNUSED_S

STEADY_INSTANCES = (InstanceStatus.ACTIVE, InstanceStatus.DRAINING, InstanceStatus.GONE)


def next_due(moment: Moment) -> float:
    """Epoch seconds: `moment.now` while something is under way; infinity if nothing is ever due.

    Called after `decide` had no action, so anything due earlier is blocked by another condition and does not count.
    """
    if _is_under_way(moment):
        return moment.now
    return min((at for at in _times(moment) if at > moment.now), default=math.inf)


def _is_under_way(moment: Moment) -> bool:
    state = moment.state
    losses = state.losses
    if state.suspended or state.orphans or state.open_ends or losses.blind or losses.attempts or losses.buckets:
        return True
    if any(
        pool.ordered_since or pool.on_demand_count or pool.surplus or not pool.confirmed
        for pool in state.pools.values()
    ):
        return True
    if any(missing(moment, least) for least in least_sizes(moment)):
        return True
    if any(_is_changing(instance) for instance in state.instances.values()) or _lacks_headroom(moment):
        return True
    if _attempts_change(state) or any(not _is_settled(moment, env) for env in state.environments.values()):
        return True
    return any(not _is_kept_running(state, run) for run in state.runs.values())


def _lacks_headroom(moment: Moment) -> bool:
    sizes = spare_batches(moment)
    return bool(sizes) and bool(place(sizes, Roster().at(moment).supply).unplaced.any())


def _is_changing(instance: Instance) -> bool:
    """Whether it is being added or removed, or may be gone."""
    if instance.losing:
        return True
    if not (instance.owned and instance.alive):
        return False
    return instance.status not in STEADY_INSTANCES or bool(instance.interrupted_at or instance.absent_since)


def _attempts_change(state: State) -> bool:
    """Whether any is about to begin or to end."""
    table = state.attempts
    live = table["status"] != AttemptStatus.FREE.value
    steady = (table["status"] == AttemptStatus.RUNNING.value) & (table["stop_cause"] == StopCause.NONE.value)
    return bool((live & ~(steady & (table["left_at"] == 0))).any())


def _is_kept_running(state: State, run: Run) -> bool:
    """Whether it is a service or daemon that stays open and neither begins nor ends, or a run that waits to begin.
    All other open runs have work to do."""
    if run.held:
        return bool(run.task_definition) and not (run.halted or run.revives)
    env = state.environments.get(run.name) if run.terms.service else None
    if run.done or env is None or run.id not in env.runs():
        return run.done
    may_change = run.halted or run.revives or not run.task_definition or run.unaffordable_since
    return not may_change


def _is_settled(moment: Moment, env: Environment) -> bool:
    """Whether it is in its desired state, or has to wait for the end of a pause."""
    deployment = env.deployment
    goes_on = deployment is not None and not (deployment.has_ended or env.frozen_reason)
    if env.deleting or goes_on or not is_at_rest(moment.state, env):
        return False
    wanted = 0
    for run in (moment.state.runs[run_id] for run_id in env.runs() if run_id in moment.state.runs):
        counts = run.tasks.counts()
        if counts[[TaskStatus.STARTING, TaskStatus.VERIFYING]].any() or not _pauses(moment, env, run):
            return False
        table = moment.state.attempts
        if not all_are_well(table, table.of_run(run.number), run.terms):
            return False
        wanted += int(counts[[TaskStatus.PENDING, TaskStatus.RUNNING]].sum())
        if wanted and not (env.frozen_reason or (env.target is not None and env.target.run_id == run.id)):
            return False
    return bool(env.frozen_reason) or wanted == (env.desired if env.target is not None else 0)


def _pauses(moment: Moment, env: Environment, run: Run) -> bool:
    """Whether all of its pending tasks wait for the end of a pause; tasks short of spot or money do not. A daemon
    without room waits for no time."""
    pending = run.tasks["status"] == TaskStatus.PENDING.value
    if not pending.any():
        return True
    if env.frozen_reason or run.terms.purchase.mixes:
        return False
    if run.is_daemon and run.waiting:
        return True
    return bool((run.tasks["not_before"][pending] > moment.now).all())


def _times(moment: Moment) -> Iterator[float]:
    state, policy = moment.state, moment.policy
    yield state.floor.until
    yield from next_looks(moment)
    for run in state.runs.values():
        yield from _times_of_run(run, state)
    for instance in state.instances.values():
        if instance.owned and instance.alive:
            yield from _times_of_instance(instance, policy)
    yield from (instance.empty_by for instance in state.instances.values() if instance.alive)
    for pool in state.pools.values():
        yield from (pool.grown_at + policy.cool_down_s, pool.history_at + policy.history_every_s)
    yield from (setback.not_before for setback in state.setbacks.values())
    yield from (env.failed_at + CALM_S for env in state.environments.values() if env.is_failing)
    yield from (since + UNUSED_S for since in state.unused_definitions.values())


def _times_of_run(run: Run, state: State) -> Iterator[float]:
    yield run.not_before
    if run.unfolded_since:
        yield run.unfolded_since + FOLDED_AFTER_S
    pending = run.tasks["status"] == TaskStatus.PENDING.value
    if pending.any():
        yield float(run.tasks["not_before"][pending].min())
    if run.terms.service is not None:
        started_at = state.attempts["started_at"][state.attempts.of_run(run.number)]
        healthy_at = started_at + run.terms.service.healthy_s
        yield from np.unique(healthy_at).tolist()
        well_since = state.attempts["health_since"][state.attempts.of_run(run.number)]
        yield from np.unique(well_since + run.terms.service.healthy_s).tolist()


def _times_of_instance(instance: Instance, policy: Policy) -> Iterator[float]:
    if instance.idle_since:
        yield instance.idle_since + policy.linger_of(instance.instance_type)
    if instance.disconnected_at:
        yield instance.disconnected_at + policy.agent_patience_s
    if instance.drain_until:
        yield from (instance.drain_until, instance.drain_until + policy.agent_patience_s)
    if instance.impaired_since:
        yield instance.impaired_since + policy.agent_patience_s
    if instance.draining_since:
        yield instance.draining_since + policy.drain_patience_s
        yield instance.draining_since + policy.drain_patience_s + policy.agent_patience_s
