"""Lines about changes of instances, pools, orders and the floor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeGuard

from argosy.model.instances import RESERVATION_ENDS, Instance, InstanceStatus, reservation_ends
from argosy.model.journal.lines import Line, LineType, line
from argosy.model.pools import NO_FLOOR, Floor, FloorFacts, OrderNote, Pool


class InstanceFacts(NamedTuple):
    """The facts of one of our instances in the journal."""

    status: InstanceStatus
    is_connected: bool
    interrupted_at: float
    rebalance_at: float
    cordon: str
    paused_until: float


class PoolFacts(NamedTuple):
    """The facts of a pool in the journal."""

    spot_target: int
    on_demand_target: int
    on_demand_order: int
    short_until: float
    short_reason: str
    closed: str


@dataclass(slots=True)
class LastCommit:
    """Instances, pools, the last order and the floor as last committed."""

    instances: dict[str, InstanceFacts] = field(default_factory=dict)  # by EC2 id, our instances
    pools: dict[str, PoolFacts] = field(default_factory=dict)  # by Pool.key
    ordered_at: float = 0.0
    floor: FloorFacts = field(default_factory=NO_FLOOR.facts)

    def note_instances(self, instances: Mapping[str, Instance], changed: Iterable[str]) -> None:
        """Record the present facts as committed. changed: the instances that may differ from the facts here."""
        for name in changed:
            instance = instances.get(name)
            if is_told(instance):
                self.instances[name] = instance_facts(instance)
            else:
                self.instances.pop(name, None)

    def note_orders(self, pools: Mapping[str, Pool], order: OrderNote, floor: Floor) -> None:
        """Record the present facts as committed."""
        self.pools = {key: pool_facts(pool) for key, pool in pools.items()}
        self.ordered_at = order.at
        self.floor = floor.facts()


def is_told(instance: Instance | None) -> TypeGuard[Instance]:
    """Whether the journal covers it: it exists and is ours."""
    return instance is not None and instance.owned


def instance_facts(instance: Instance) -> InstanceFacts:
    return InstanceFacts(
        status=instance.status,
        is_connected=instance.agent_connected,
        interrupted_at=instance.interrupted_at,
        rebalance_at=instance.rebalance_at,
        cordon=instance.cordon,
        paused_until=instance.paused_until,
    )


def pool_facts(pool: Pool) -> PoolFacts:
    short_until = max(pool.short_until, pool.on_demand_short_until)
    targets = pool.spot_target, pool.on_demand_target, pool.on_demand_order
    return PoolFacts(*targets, short_until, pool.short_reason, pool.closed)


_STATUS_LINES = {
    InstanceStatus.BOOTING: LineType.INSTANCE_BOOTING,
    InstanceStatus.ACTIVE: LineType.INSTANCE_REGISTERED,
    InstanceStatus.DRAINING: LineType.INSTANCE_DRAINING,
    InstanceStatus.RELEASING: LineType.INSTANCE_RELEASING,
    InstanceStatus.GONE: LineType.INSTANCE_GONE,
}


def instance_lines(instance: Instance, before: InstanceFacts | None) -> Iterator[Line]:
    name, now = instance.id, instance_facts(instance)
    if before is None:
        before = InstanceFacts(InstanceStatus.BOOTING, now.is_connected, 0.0, 0.0, "", 0.0)
        yield _booting(instance)
    if now.rebalance_at and not before.rebalance_at:
        yield line(LineType.INSTANCE_ADVISED, instance=name)
    if now.interrupted_at and not before.interrupted_at:
        ends = {"reason": RESERVATION_ENDS} if reservation_ends(instance, now.interrupted_at) else {}
        yield line(LineType.INSTANCE_WARNED, instance=name, **ends)
    if now.status is not before.status:
        yield line(_STATUS_LINES[now.status], instance=name, status=str(now.status))
    elif now.is_connected != before.is_connected:
        kind = LineType.INSTANCE_CONNECTED if now.is_connected else LineType.INSTANCE_DISCONNECTED
        yield line(kind, instance=name)
    if now.cordon != before.cordon:
        yield line(LineType.INSTANCE_CORDONED, instance=name, reason=now.cordon)
    if now.paused_until > before.paused_until:
        yield line(LineType.INSTANCE_PAUSED, instance=name, until=now.paused_until)


def _booting(instance: Instance) -> Line:
    return line(
        LineType.INSTANCE_BOOTING,
        instance=instance.id,
        status=str(InstanceStatus.BOOTING),
        instanceType=instance.instance_type,
        zone=instance.zone,
        cell=instance.cell,
        purchase=str(instance.purchase),
        usdPerHour=instance.price_usd_per_hour,
    )


def pool_lines(pool: Pool, before: PoolFacts | None) -> Iterator[Line]:
    now = pool_facts(pool)
    targets = {"spot": now.spot_target, "onDemand": now.on_demand_target}
    if before is None:
        before = PoolFacts(now.spot_target, now.on_demand_target, 0, 0.0, "", "")
        yield line(LineType.POOL_FOUND, pool=pool.key, **targets)
    if (now.spot_target, now.on_demand_target) != (before.spot_target, before.on_demand_target):
        yield line(LineType.POOL_TARGET, pool=pool.key, **targets)
    if now.short_until > before.short_until or (now.short_reason != before.short_reason and now.short_until):
        yield line(LineType.POOL_SHORT, pool=pool.key, reason=now.short_reason, until=now.short_until)
    if now.closed != before.closed:
        yield line(LineType.POOL_CLOSED, pool=pool.key, reason=now.closed)


def floor_lines(floor: Floor, before: FloorFacts) -> Iterator[Line]:
    now = floor.facts()
    if now[:3] != before[:3]:
        types, until = list(now.types) or None, now.until or None
        yield line(LineType.CLUSTER_SCALED, instances=now.instances, types=types, until=until)
    if now.waiting != before.waiting:
        yield line(LineType.CLUSTER_WAITING, reason=now.waiting)
    if now.headroom_waiting != before.headroom_waiting:
        yield line(LineType.CLUSTER_HEADROOM, reason=now.headroom_waiting)
