"""Which instances get no work for a while: those that a user drains, and those that fail checks of AWS.

Both have a cordon, and `scheduler.upkeep.drains` sets their status at ECS. A drain ends at its time. An impairment ends
when the checks pass; until then the instance is released as soon as it is idle, or with its tasks when its patience is
over (`market.release`). Of a cordon with another reason nothing changes: its own facts end it.
"""

from __future__ import annotations

from argosy.model.host_care import DrainRequest
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.state import State
from argosy.model.wording import date_and_time

DRAINED, IMPAIRED = "drained by a user until ", "impaired: "
MOST_WORDS = 200  # characters of a cordon


def note_health(state: State, instance: Instance, source: str, fault: str, now: float) -> None:
    """What a source (ecs, ec2) says about its health; "" = nothing is wrong."""
    if not instance.alive or fault == instance.impaired.get(source, ""):
        return
    others = {name: words for name, words in instance.impaired.items() if name != source}
    instance.impaired = {**others, **({source: fault} if fault else {})}
    instance.impaired_since = (instance.impaired_since or now) if instance.impaired else 0.0
    if not instance.impaired:
        instance.drain_until = max(instance.drain_until, now)  # ECS has to hear that it is ACTIVE again
    _cordon(state, instance, now)


def drain(state: State, request: DrainRequest, now: float) -> None:
    """Let it drain until a time that replaces an earlier one."""
    instance = state.instances.get(request.instance_id)
    if instance is not None and instance.alive and not instance.released_at:
        instance.drain_until = max(request.until, request.requested_at)
        _cordon(state, instance, now)


def pass_time(state: State, instance: Instance, now: float) -> None:
    """At the end of its drain, the instance may get work, and ECS has to hear that; then nothing is left of the drain.
    Once a cordon with another reason is lifted, the drain or impairment is the reason again."""
    is_over = 0 < instance.drain_until <= now
    if is_over and instance.status is not InstanceStatus.DRAINING:
        instance.drain_until = 0.0
    if is_over or not instance.cordon:
        _cordon(state, instance, now)


def _cordon(state: State, instance: Instance, now: float) -> None:
    state.changed_instances.add(instance.id)  # also for another cordon: the drain or impairment itself has changed
    if instance.cordon and not instance.cordon.startswith((DRAINED, IMPAIRED)):
        return
    words = ", ".join(instance.impaired.values())
    drains = f"{DRAINED}{date_and_time(instance.drain_until)}" if instance.drain_until > now else ""
    instance.cordon = f"{IMPAIRED}{words}"[:MOST_WORDS] if words else drains
