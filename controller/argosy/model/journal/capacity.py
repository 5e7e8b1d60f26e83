"""Lines about changes of instances, pools, orders and the floor."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.model.instances import RESERVATION_ENDS, Instance, InstanceFacts, InstanceStatus, reservation_ends
from argosy.model.journal.lines import Line, LineType, line
from argosy.model.pools import Floor, FloorFacts, Pool, PoolFacts

_STATUS_LINES = {
    InstanceStatus.BOOTING: LineType.INSTANCE_BOOTING,
    InstanceStatus.ACTIVE: LineType.INSTANCE_REGISTERED,
    InstanceStatus.DRAINING: LineType.INSTANCE_DRAINING,
    InstanceStatus.RELEASING: LineType.INSTANCE_RELEASING,
    InstanceStatus.GONE: LineType.INSTANCE_GONE,
}


def instance_lines(instance: Instance, before: InstanceFacts | None) -> Iterator[Line]:
    name, now = instance.id, instance.facts()
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
    now = pool.facts()
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
