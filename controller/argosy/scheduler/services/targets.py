"""Registration of service tasks with target groups, and stops that wait for it to end.

The registered tasks are compared with those that serve; the difference gives the actions. Every stop passes
`drained_first`, whatever its reason: a task leaves its target group before it is asked to stop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Set

from argosy.model.actions import Action, DeregisterTargets, DrainTask, RegisterTargets, StopAttempt
from argosy.model.attempts import AttemptKey, AttemptStatus, StopCause, TaskHealth
from argosy.model.live_tasks import PlacedTask, place_of, places_of
from argosy.model.moment import Moment
from argosy.model.runs import Run
from argosy.model.services.environments import Environment
from argosy.model.services.targets import MOST_TARGETS, TargetEntry, TargetPlace
from argosy.model.setbacks import Act
from argosy.model.state import State
from argosy.scheduler.upkeep.upkeep import has_handed_over

AT_ONCE = 100  # targets of one call
CALL_S = 5.0  # seconds of a warning for the call that takes a task out of its group
GIVES_UP_S = 600.0  # after the drain time: the task ends even if AWS does not take it out


def target_steps(moment: Moment, stopped: Set[AttemptKey] = frozenset()) -> list[Action]:
    """The actions of all environments. stopped: attempts that are asked to stop in this tick."""
    state = moment.state
    found: list[Action] = []
    for env in state.environments.values():
        if env.is_daemon or any(run_id in state.suspended for run_id in env.all_runs()):
            continue  # whether tasks of a suspended run serve is unknown
        found += _steps(moment, env, stopped)
    return found


def _steps(moment: Moment, env: Environment, stopped: Set[AttemptKey]) -> Iterator[Action]:
    state = moment.state
    held: set[TargetPlace] = set()
    draining = begin_to_drain(moment, env)
    serving: dict[TargetPlace, None] = {}
    for each in places_of(state, env):
        cause, key = state.attempts["stop_cause"][each.row], state.key_of(each.row)
        if cause != StopCause.NONE or key is None or key in stopped:
            continue
        if each.row in draining:
            yield DrainTask(key, StopCause.INTERRUPTED)
            continue
        held.add(each.place)
        if _serves(state, each):
            serving[each.place] = None
    leaving = [place for place, target in env.targets.items() if not target.left_at and _leaves(target, place, held)]
    if state.may_try(Act.TARGETS_OUT, env.name, moment.now):
        yield from (DeregisterTargets(env.name, places) for places in _by_group(leaving))
    if state.may_try(Act.TARGETS_IN, env.name, moment.now):
        room = MOST_TARGETS - sum(bool(target.registered_at) for target in env.targets.values())
        new = [place for place in serving if _is_to_come(env.targets.get(place))]
        yield from (RegisterTargets(env.name, places) for places in _by_group(new[: max(0, room)]))


def _leaves(target: TargetEntry, place: TargetPlace, held: Set[TargetPlace]) -> bool:
    return bool(target.leaves_since) or place not in held


def _is_to_come(target: TargetEntry | None) -> bool:
    return target is None or not (target.registered_at or target.leaves_since)


def _serves(state: State, task: PlacedTask) -> bool:
    table, instance = state.attempts, state.instance_of(task.row)
    is_well = task.run.terms.health is None or table["health"][task.row] == TaskHealth.HEALTHY.value
    runs = table["status"][task.row] == AttemptStatus.RUNNING.value and not table["left_at"][task.row]
    return bool(runs and is_well and instance is not None and instance.alive and not instance.interrupted_at)


def _by_group(places: Iterable[TargetPlace]) -> Iterator[tuple[TargetPlace, ...]]:
    groups: defaultdict[str, list[TargetPlace]] = defaultdict(list)
    for place in places:
        groups[place.group].append(place)
    for each in groups.values():
        for start in range(0, len(each), AT_ONCE):
            yield tuple(each[start : start + AT_ONCE])


def begin_to_drain(moment: Moment, env: Environment) -> set[int]:
    """Rows of tasks that leave their group now, because their instance is about to be interrupted."""
    if not env.targets:
        return set()
    return {
        each.row
        for each in places_of(moment.state, env)
        if each.place in env.targets
        and moment.state.attempts["stop_cause"][each.row] == StopCause.NONE.value
        and _must_drain(moment, each)
    }


def _must_drain(moment: Moment, task: PlacedTask) -> bool:
    """Whether the rest of the instance's warning is just enough to drain. The task begins to drain as late as
    possible, because its successor may not be healthy yet."""
    instance = moment.state.instance_of(task.row)
    warned_at = instance.interrupted_at if instance is not None else 0.0
    serves_s = max(0.0, moment.policy.hand_over_s - _drain_s(task.run) - CALL_S)
    return bool(warned_at) and moment.now >= warned_at + serves_s


def drained_first(moment: Moment, actions: Iterable[Action]) -> Iterator[Action]:
    """The actions, with stops delayed for tasks that are in a target group or have just left it."""
    state = moment.state
    for action in actions:
        row = state.row_of(action.key) if isinstance(action, StopAttempt) else None
        if not isinstance(action, StopAttempt) or row is None or _may_stop(moment, action, row):
            yield action
        elif state.attempts["stop_cause"][row] == StopCause.NONE.value:
            yield DrainTask(action.key, action.cause)


def _may_stop(moment: Moment, stop: StopAttempt, row: int) -> bool:
    state, now = moment.state, moment.now
    run = state.runs.get(stop.key.run_id)
    place = place_of(state, run, row) if run is not None else None
    env = state.environments.get(run.name) if run is not None else None
    target = env.targets.get(place) if env is not None and place is not None else None
    if run is None or target is None or has_handed_over(state.instance_of(row), moment):
        return True
    is_drained = bool(target.left_at) and now - target.left_at >= _drain_s(run)
    return is_drained or (bool(target.leaves_since) and now - target.leaves_since >= _drain_s(run) + GIVES_UP_S)


def _drain_s(run: Run) -> float:
    return run.terms.service.drain_s if run.terms.service is not None else 0.0


def is_at_rest(state: State, env: Environment) -> bool:
    """Whether exactly the serving tasks are registered."""
    if any(target.leaves_since or not target.registered_at for target in env.targets.values()):
        return False
    serving = {each.place for each in places_of(state, env)}
    return serving == env.targets.keys()
