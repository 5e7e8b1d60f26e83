"""What do tasks that are not ours take of an instance, and what follows from a refusal?

ECS says what it has left to give; what is neither left nor taken by our attempts is taken by strangers: a service or a
task that somebody else started on our instances. Our own picture may be some seconds behind or ahead of what an event
shows, so strangers count only when every sighting for a while has shown them, or once ECS has refused a task.
"""

from __future__ import annotations

from argosy.model.attempts import AttemptStatus
from argosy.model.instances import Instance
from argosy.model.policy import Policy
from argosy.model.resources import NOTHING, Resources
from argosy.model.state import State

MAX_PAUSE_S = 300.0
SETTLED_S = 5.0  # after a launch, sightings have caught up with it
PATIENT_REFUSALS = 2  # so many in a row are put up with that do not speak of room: they may concern a single launch


def note_remaining(
    state: State, instance: Instance, remaining: tuple[int, int, int] | None, now: float, policy: Policy
) -> None:
    """ECS has so much left to give on the instance."""
    if remaining is None or not _is_calm(state, instance, now):
        return
    taken = instance.total.minus(Resources(*remaining)).minus(state.used_on(instance.id))
    taken = Resources(*(max(0, amount) for amount in taken))
    less = Resources(*map(min, taken, instance.foreign))
    instance.foreign = less  # room that is there again is used at once
    if taken == less:
        instance.foreign_since, instance.foreign_seen = 0.0, NOTHING
        return
    if not instance.foreign_since:
        instance.foreign_since, instance.foreign_seen = now, taken
    instance.foreign_seen = Resources(*map(min, instance.foreign_seen, taken))
    if now - instance.foreign_since >= policy.foreign_patience_s or instance.refusals:
        instance.foreign = Resources(*map(max, less, instance.foreign_seen))
        instance.foreign_since, instance.foreign_seen = 0.0, NOTHING


def _is_calm(state: State, instance: Instance, now: float) -> bool:
    """No launch is under way there: ECS may or may not have counted it yet."""
    rows = state.attempts.on_instance(instance.id)
    unsure = (AttemptStatus.INTENT, AttemptStatus.IN_DOUBT)
    return not any(
        state.attempts["status"][row] in unsure or now - state.attempts["launched_at"][row] < SETTLED_S for row in rows
    )


def note_refusal(state: State, instance_id: str, reason: str, now: float, policy: Policy) -> None:
    """ECS refused a task there. For want of room, or for any reason again and again (it may not be in the cluster any
    more): it is left alone for a while, each time for longer. What is refused within a pause was sent before it."""
    instance = state.instances.get(instance_id)
    if instance is None or now < instance.paused_until:
        return
    instance.refusals += 1
    patience = 0 if reason.startswith("RESOURCE") else PATIENT_REFUSALS
    if instance.refusals > patience:
        pause_s = policy.refusal_pause_s * 2.0 ** min(instance.refusals - patience - 1, 10)
        instance.paused_until = now + min(MAX_PAUSE_S, pause_s)
    state.changed_instances.add(instance_id)


def note_acceptance(state: State, instance_id: str) -> None:
    """ECS took a task there: it is an instance like any other again."""
    instance = state.instances.get(instance_id)
    if instance is not None and instance.refusals:
        instance.refusals, instance.paused_until = 0, 0.0
        state.changed_instances.add(instance_id)
