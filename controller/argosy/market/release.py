"""Idle and lost instances to release.

An instance goes when it has been idle for its type's linger and nothing keeps it. It is never released while one of our
tasks runs there, whatever it costs: the work would have to be paid for twice.
"""

from __future__ import annotations

from collections.abc import Collection

from argosy.market.floors import beyond
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.setbacks import Act
from argosy.model.state import State

KEEP_ATTRIBUTE = "argosy.keep"  # a custom attribute of the container instance: `aws ecs put-attributes`
_NO = ("false", "no", "0")


def releasable(moment: Moment, wanted: Collection[str], no_linger: Collection[str] = ()) -> list[Instance]:
    """Instances to release, the most expensive first:

    - idle instances past their linger that got no work in this tick, down to the minimum sizes (`floors`);
    - even with running tasks: instances that never registered, whose agent has been silent or that have been impaired
    for too long, or that are still there after their interruption warning or drain should have ended them;
    - instances whose earlier release had no effect.

    wanted: ids of instances that got work or are promised some. no_linger: ids of those that go as soon as they idle.
    """
    state, policy = moment.state, moment.policy
    found = [
        instance
        for instance in state.instances.values()
        if instance.owned and instance.id not in wanted and _may_go(moment, instance, instance.id in no_linger)
    ]
    found.sort(key=lambda instance: (-instance.price_usd_per_hour, instance.id))
    staying = _least_idle(state, wanted, policy)
    spare = [instance for instance in found if _is_spare(instance) and instance.id not in staying]
    going = {instance.id for instance in beyond(moment, spare)}
    return [instance for instance in found if instance.id in going or not _is_spare(instance)]


def is_kept(instance: Instance) -> bool:
    """Whether a person has marked it to stay: the attribute argosy.keep has any value but false."""
    return instance.attributes.get(KEEP_ATTRIBUTE, "false").lower() not in _NO


def drains_for_a_user(instance: Instance, now: float, policy: Policy) -> bool:
    """Whether a user lets it drain, or did until a while ago: ECS has to show it ACTIVE again."""
    return instance.drain_until > 0 and now < instance.drain_until + policy.agent_patience_s


def _is_spare(instance: Instance) -> bool:
    """Whether it could still take work. Only such instances count towards minimum sizes, linger and cool down."""
    return instance.placeable


def _least_idle(state: State, wanted: Collection[str], policy: Policy) -> set[str]:
    """Ids of the `min_idle` cheapest idle instances."""
    if not policy.min_idle:
        return set()
    idle = [i for i in state.instances.values() if _is_spare(i) and i.owned and i.idle_since and i.id not in wanted]
    idle.sort(key=lambda instance: (instance.price_usd_per_hour, instance.id))
    return {instance.id for instance in idle[: policy.min_idle]}


def _may_go(moment: Moment, instance: Instance, no_linger: bool) -> bool:
    state, now, policy = moment.state, moment.now, moment.policy
    if instance.status is InstanceStatus.GONE or not state.may_try(Act.TERMINATE, instance.id, now):
        return False
    past_hope = _is_past_hope(instance, now, policy)
    if past_hope and instance.status in (InstanceStatus.ACTIVE, InstanceStatus.DRAINING):
        return True  # its tasks count as lost only once EC2 confirms that it is gone (reliability.md row 45)
    if state.has_work(instance.id) and not (past_hope and instance.status is InstanceStatus.RELEASING):
        return False
    if instance.status is InstanceStatus.RELEASING:
        return _may_end(state, instance, now, policy)
    if instance.status is InstanceStatus.BOOTING:
        return no_linger or now - instance.launched_at >= policy.register_patience_s
    if is_kept(instance) or drains_for_a_user(instance, now, policy):
        return False
    if no_linger or not _is_spare(instance):
        return bool(instance.idle_since)  # no task will be placed on it, so lingering has no use
    idle_long = bool(instance.idle_since) and now - instance.idle_since >= policy.linger_of(instance.instance_type)
    return idle_long and not _grew_lately(state, instance.instance_type, now, policy)


def _may_end(state: State, instance: Instance, now: float, policy: Policy) -> bool:
    """Whether a released instance ends now: its daemons have ended or had the time to, or an earlier request had no
    effect."""
    if instance.let_go_at:
        return not state.attempts.is_busy(instance.id) or now - instance.let_go_at >= policy.daemon_end_s
    return now - instance.released_at >= policy.stop_again_s


def ends_daemons_first(moment: Moment, instance: Instance) -> bool:
    """Whether its daemons are stopped first, so that they can save their data."""
    if instance.status not in (InstanceStatus.ACTIVE, InstanceStatus.DRAINING):
        return False
    return moment.state.attempts.is_busy(instance.id) and not _is_past_hope(instance, moment.now, moment.policy)


def _is_past_hope(instance: Instance, now: float, policy: Policy) -> bool:
    """Whether it goes even with tasks: its agent is silent, AWS calls it impaired, it was warned and still exists, or
    it drains and neither the time allowed for its tasks nor their stops have emptied it (reliability.md row 47)."""
    if not (instance.disconnected_at or instance.interrupted_at or instance.draining_since or instance.impaired_since):
        return False
    drained = 0.0 if drains_for_a_user(instance, now, policy) else instance.draining_since
    waited = (
        (instance.disconnected_at, policy.agent_patience_s),
        (instance.interrupted_at, policy.warning_patience_s),
        (instance.impaired_since, policy.agent_patience_s),
        (drained, policy.drain_patience_s + policy.agent_patience_s),
    )
    return any(since and now - since >= patience_s for since, patience_s in waited)


def _grew_lately(state: State, instance_type: str, now: float, policy: Policy) -> bool:
    """Whether more of the type was just ordered: a released instance would only be ordered again."""
    return any(
        pool.instance_type == instance_type and pool.grown_at and now - pool.grown_at < policy.cool_down_s
        for pool in state.pools.values()
    )
