"""How does the state mark an action, before the action is committed and carried out?"""

from __future__ import annotations

from functools import singledispatch

from argosy.lifecycle import (
    charges,
    environments,
    gangs,
    quarantine,
    reclaim,
    revival,
    services,
    targets,
    user_requests,
)
from argosy.lifecycle.pools import GAVE_UP, run_short
from argosy.lifecycle.run_stops import cap, drop_unsent, give_up
from argosy.lifecycle.suspended_tasks import left_out_if_it_fails
from argosy.model.actions import (
    Action,
    CapRun,
    Claim,
    DeregisterTargets,
    DrainTask,
    EnvironmentFailed,
    ForgetEnvironment,
    HaltRun,
    Launch,
    LetGo,
    LookAtTasks,
    MendState,
    NoteDeployment,
    NoteDesired,
    NoteFloor,
    NoteHeld,
    NoteOrder,
    NoteRecovered,
    ReadHistory,
    RegisterTargets,
    Remark,
    RetireRun,
    ReviveTasks,
    SetSlots,
    SetTarget,
    Steer,
    StopAttempt,
    StopOrphan,
    Terminate,
    YieldInstance,
)
from argosy.model.events import PoolShort
from argosy.model.instances import InstanceStatus
from argosy.model.policy import Policy
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State
from argosy.model.tasks import TaskStatus


def begin(state: State, action: Action, now: float, policy: Policy) -> None:
    """Mark `action` in `state`. Actions that are safe to do twice leave no mark."""
    _begin(action, state, now, policy)


@singledispatch
def _begin(action: object, state: State, now: float, policy: Policy) -> None:
    """Preparing, resolving, verifying and closing are decided again until their outcome is known: no mark."""


@_begin.register
def launch(action: Launch, state: State, now: float, policy: Policy) -> None:
    if state.row_of(action.key) is not None:
        return  # an intent that was not sent yet: the same row is sent now
    run, instance = state.runs[action.key.run_id], state.instances[action.instance_id]
    charges.count_on(state, run, instance, now)
    if run.terms.gang is not None:
        gangs.note_launch(state, run, action, now)
    row = state.attempts.add(run.number, action.key, action.wave, action.instance_id, now)
    state.attempts.set(row, program=run.tasks["program"][action.key.index])
    state.next_wave = max(state.next_wave, action.wave + 1)
    state.set_task(run, action.key.index, status=TaskStatus.STARTING)
    instance.idle_since = instance.idle_since if run.is_daemon else 0.0
    if instance.yields_to:
        reclaim.note_launch(state, run, instance)
    state.changed_instances.add(instance.id)


@_begin.register
def stop_attempt(action: StopAttempt, state: State, now: float, policy: Policy) -> None:
    row = state.row_of(action.key)
    if row is not None:
        reclaim.begin_stop(state, action, row, now)


@_begin.register
def look_at_tasks(action: LookAtTasks, state: State, now: float, policy: Policy) -> None:
    services.begin_look(state, action.arns, now)


@_begin.register
def drain_task(action: DrainTask, state: State, now: float, policy: Policy) -> None:
    row = state.row_of(action.key)
    if row is not None:
        state.attempts.set(row, stop_cause=action.cause)


@_begin.register
def register_targets(action: RegisterTargets, state: State, now: float, policy: Policy) -> None:
    targets.begin_registering(state, action)


@_begin.register
def deregister_targets(action: DeregisterTargets, state: State, now: float, policy: Policy) -> None:
    targets.begin_deregistering(state, action, now)


@_begin.register
def stop_orphan(action: StopOrphan, state: State, now: float, policy: Policy) -> None:
    state.orphans.pop(action.arn, None)  # the next sweep names it again if it still lives


@_begin.register
def set_target(action: SetTarget, state: State, now: float, policy: Policy) -> None:
    pool = state.pools[action.pool]
    if action.fleet_id:
        return  # a surplus fleet's: its target is 0 until EC2 confirms it
    if action.gives_up:
        known = state.setbacks.get(Subject(Act.ORDER, pool.key))
        run_short(state, pool, PoolShort(pool.key, known.reason if known else GAVE_UP), now, policy)
    more = 0 if pool.on_demand_count else action.on_demand_target - pool.on_demand_target
    if action.spot_target > pool.spot_target or more > 0:
        pool.grown_at = now
    if not pool.on_demand_count:
        pool.on_demand_target = action.on_demand_target
    if more > 0:
        pool.on_demand_order, pool.on_demand_count = pool.on_demand_order + 1, more
        pool.reserved_free = max(0, pool.reserved_free - more)
    pool.spot_target = action.spot_target
    state.changed_pools = True


@_begin.register
def read_history(action: ReadHistory, state: State, now: float, policy: Policy) -> None:
    state.pools[action.pool].history_at = now
    state.changed_pools = True


@_begin.register
def terminate(action: Terminate, state: State, now: float, policy: Policy) -> None:
    for instance_id in action.instance_ids:
        instance = state.instances[instance_id]
        instance.status, instance.released_at, instance.let_go_at = InstanceStatus.RELEASING, now, 0.0
        state.changed_instances.add(instance_id)


@_begin.register
def let_go(action: LetGo, state: State, now: float, policy: Policy) -> None:
    """The instance gets no more work. `scheduler.upkeep.upkeep` stops its daemons; then it is terminated."""
    for instance_id in action.instance_ids:
        instance = state.instances[instance_id]
        instance.status, instance.released_at, instance.let_go_at = InstanceStatus.RELEASING, now, now
        state.changed_instances.add(instance_id)


@_begin.register
def remark(action: Remark, state: State, now: float, policy: Policy) -> None:
    run = state.runs[action.run_id]
    run.waiting = action.sentence if run.may_wait else ""  # it may be stopped or given up in the same tick
    run.unaffordable_since = (run.unaffordable_since or now) if action.unaffordable else 0.0
    state.changed_runs.add(run.id)


@_begin.register
def halt_run(action: HaltRun, state: State, now: float, policy: Policy) -> None:
    run = state.runs[action.run_id]
    give_up(state, run, action.reason)
    drop_unsent(state, run, now, policy)


@_begin.register
def steer(action: Steer, state: State, now: float, policy: Policy) -> None:
    state.runs[action.run_id].steering = action.steering
    state.changed_runs.add(action.run_id)


@_begin.register
def revive_tasks(action: ReviveTasks, state: State, now: float, policy: Policy) -> None:
    revival.revive(state, state.runs[action.run_id], policy)


@_begin.register
def mend_state(action: MendState, state: State, now: float, policy: Policy) -> None:
    quarantine.mend(state, now, policy)


@_begin.register
def cap_run(action: CapRun, state: State, now: float, policy: Policy) -> None:
    cap(state, state.runs[action.run_id], action.reason, now, policy)


@_begin.register
def claim(action: Claim, state: State, now: float, policy: Policy) -> None:
    for instance_id in action.instance_ids:
        charges.count_on(state, state.runs[action.run_id], state.instances[instance_id], now)


@_begin.register
def note_floor(action: NoteFloor, state: State, now: float, policy: Policy) -> None:
    user_requests.note_floor(state, action)


@_begin.register
def yield_instance(action: YieldInstance, state: State, now: float, policy: Policy) -> None:
    reclaim.begin_yield(state, action, now)


@_begin.register
def note_held(action: NoteHeld, state: State, now: float, policy: Policy) -> None:
    reclaim.note_held(state, action, now)


@_begin.register
def note_order(action: NoteOrder, state: State, now: float, policy: Policy) -> None:
    state.last_order = action.note


@_begin.register
def retire_run(action: RetireRun, state: State, now: float, policy: Policy) -> None:
    run = state.runs[action.run_id]
    run.cancelled = True
    give_up(state, run, action.reason)
    drop_unsent(state, run, now, policy)


@_begin.register
def set_slots(action: SetSlots, state: State, now: float, policy: Policy) -> None:
    with left_out_if_it_fails(state, f"run {action.run_id} of an environment"):
        environments.set_slots(state, action)


@_begin.register
def note_deployment(action: NoteDeployment, state: State, now: float, policy: Policy) -> None:
    with left_out_if_it_fails(state, f"environment {action.name}"):
        environments.note_deployment(state, action, now)


@_begin.register
def note_recovered(action: NoteRecovered, state: State, now: float, policy: Policy) -> None:
    environments.note_recovered(state, action.name)


@_begin.register
def note_desired(action: NoteDesired, state: State, now: float, policy: Policy) -> None:
    state.environments[action.name].desired = action.desired
    state.changed_environments.add(action.name)


@_begin.register
def forget_environment(action: ForgetEnvironment, state: State, now: float, policy: Policy) -> None:
    environments.forget(state, action.name)


@_begin.register
def environment_failed(action: EnvironmentFailed, state: State, now: float, policy: Policy) -> None:
    state.left_out.append((f"environment {action.name}", RuntimeError(action.reason)))
