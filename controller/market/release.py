"""Which instances are let go of?"""

from __future__ import annotations

from collections.abc import Collection

from controller.model.instances import Instance, InstanceStatus
from controller.model.policy import Policy
from controller.model.state import State


def releasable(state: State, wanted: Collection[str], now: float, policy: Policy) -> list[Instance]:
    """Idle instances past their linger that got no work in this tick (`wanted`), most expensive first; instances
    that never registered or whose agents have fallen silent, whatever runs there; and, again, those whose release has
    not shown its effect."""
    found = [
        instance
        for instance in state.instances.values()
        if instance.owned and instance.id not in wanted and _may_go(state, instance, now, policy)
    ]
    return sorted(found, key=lambda instance: (-instance.price_usd_per_hour, instance.id))


def _may_go(state: State, instance: Instance, now: float, policy: Policy) -> bool:
    if instance.status is InstanceStatus.GONE:
        return False
    silent = bool(instance.disconnected_at) and now - instance.disconnected_at >= policy.agent_patience_s
    if silent and instance.status in (InstanceStatus.ACTIVE, InstanceStatus.DRAINING):
        return True  # its tasks count as lost only once EC2 confirms that it is gone (reliability.md row 45)
    if state.attempts.on_instance(instance.id) and not (silent and instance.status is InstanceStatus.RELEASING):
        return False
    if instance.status is InstanceStatus.RELEASING:
        return now - instance.released_at >= policy.stop_again_s
    if instance.status is InstanceStatus.BOOTING:
        return now - instance.launched_at >= policy.register_patience_s
    # Nothing will be placed on it any more: there is no reason to linger.
    linger_s = policy.linger_s if instance.placeable else 0.0
    return bool(instance.idle_since) and now - instance.idle_since >= linger_s
