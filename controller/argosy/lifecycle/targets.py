"""The known targets in target groups, as calls and their outcomes change them."""

from __future__ import annotations

from argosy.lifecycle.setbacks import carried_out
from argosy.model.actions import DeregisterTargets, RegisterTargets
from argosy.model.attempts import StopCause
from argosy.model.live_tasks import places_of
from argosy.model.services.targets import TargetEntry, TargetsDeregistered, TargetsRegistered
from argosy.model.setbacks import MAX_REASON, Act, Subject
from argosy.model.state import State


def begin_registering(state: State, action: RegisterTargets) -> None:
    """The targets may be registered from now on, whatever the result of the call."""
    env = state.environments[action.environment]
    for place in action.places:
        env.targets.setdefault(place, TargetEntry())
    state.changed_environments.add(env.name)


def begin_deregistering(state: State, action: DeregisterTargets, now: float) -> None:
    """The targets are being removed, and none is registered again before its removal is confirmed."""
    env = state.environments[action.environment]
    for place in action.places:
        target = env.targets[place]
        target.leaves_since = target.leaves_since or now
    state.changed_environments.add(env.name)


def note(state: State, event: TargetsRegistered | TargetsDeregistered, now: float) -> None:
    """A target that is leaving does not become registered, even if a late reply says so. Once it is removed, its task
    gets the time to finish its requests."""
    is_in = isinstance(event, TargetsRegistered)
    carried_out(state, Act.TARGETS_IN if is_in else Act.TARGETS_OUT, event.environment)
    env = state.environments.get(event.environment)
    if env is None:
        return
    for place in event.places:
        target = env.targets.get(place)
        if target is None:
            continue
        if is_in:
            target.registered_at = target.registered_at or now
        elif target.leaves_since:
            target.left_at = target.left_at or now
    env.targets_reason = ""
    state.changed_environments.add(env.name)


def note_failure(state: State, about: Subject, reason: str) -> None:
    """Show the failure to users with the environment."""
    env = state.environments.get(about.id) if about.what in (Act.TARGETS_IN, Act.TARGETS_OUT) else None
    if env is not None and env.targets_reason != reason[:MAX_REASON]:
        env.targets_reason = reason[:MAX_REASON]
        state.changed_environments.add(env.name)


def forget_done(state: State) -> None:
    """Drop removed entries whose task has ended, because another task may already use the target."""
    for env in state.environments.values():
        if not any(target.left_at for target in env.targets.values()):
            continue
        ending = {
            each.place
            for each in places_of(state, env)
            if state.attempts["stop_cause"][each.row] != StopCause.NONE.value
        }
        done = [place for place, target in env.targets.items() if target.left_at and place not in ending]
        for place in done:
            del env.targets[place]
        if done:
            state.changed_environments.add(env.name)
