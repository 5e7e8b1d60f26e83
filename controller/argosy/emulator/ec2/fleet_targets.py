"""Fleets at work. One of type maintain launches missing instances and, if asked to, ends surplus ones; one of type
instant launches once."""

from __future__ import annotations

from functools import partial
from typing import Any

from argosy.emulator.ec2.changes import delete, launch, shut_down, warn
from argosy.emulator.ec2.events import fleet_obstacle, fleet_state
from argosy.emulator.ec2.ledger import Ec2Ledger
from argosy.emulator.ec2.records import CapacityPool, Ec2Fleet, LaunchObstacle
from argosy.emulator.ec2.reservations import RESERVED, into_reservation, place_in
from argosy.model.readings import DELETED_OVER_LIMIT

JSON = dict[str, Any]

SCALE_IN_NOTICE_S = 120.0  # victims of a fleet's scale-in get a warning like any other (aws.md 9.4)
_NO_CAPACITY = LaunchObstacle(
    "allLaunchSpecsTemporarilyBlacklisted",
    "Several attempts to launch instances failed. There is no Spot capacity available.",
)
OVER_QUOTA = LaunchObstacle("spotInstanceCountLimitExceeded", "Max spot instance count exceeded")


_NONE_RESERVED = _NO_CAPACITY._replace(description="The targeted Capacity Reservations have no capacity available.")
ERROR_CODES = {
    _NO_CAPACITY.sub_type: "InsufficientInstanceCapacity", OVER_QUOTA.sub_type: "MaxSpotInstanceCountExceeded",
}  # fmt: skip


def launch_at_once(ledger: Ec2Ledger, fleet: Ec2Fleet) -> JSON:
    """The answer to CreateFleet of type instant: what it launched, and one error for each purchase option that fell
    short. Others than ERROR_CODES come with EC2's words under UnfulfillableCapacity."""
    fleet.state, launched, errors = "active", list[JSON](), list[JSON]()
    for purchase, target in (("on-demand", fleet.on_demand_target), ("spot", fleet.spot_target)):
        for _ in range(target):
            pool, reservation = _choose_at_once(ledger, fleet, purchase)
            if isinstance(pool, LaunchObstacle):
                code = ERROR_CODES.get(pool.sub_type, "UnfulfillableCapacity")
                errors.append({**_place(fleet.pools[0], purchase), "ErrorCode": code, "ErrorMessage": pool.description})
                break
            if (key := _key(pool, purchase)) in ledger.available and not reservation:
                ledger.available[key] -= 1
            instance = launch(ledger, fleet, pool, purchase)
            into_reservation(ledger, instance, reservation)
            place, ids = _place(pool, instance.lifecycle or purchase), [instance.instance_id]
            launched.append({**place, "InstanceIds": ids, "InstanceType": pool.instance_type})
    fleet.spot_target = fleet.on_demand_target = 0
    fleet.excess_policy = "no-termination"
    fleet.answer = {"FleetId": fleet.fleet_id, "Errors": errors, "Instances": launched}
    return fleet.answer


def _choose_at_once(ledger: Ec2Ledger, fleet: Ec2Fleet, purchase: str) -> tuple[CapacityPool | LaunchObstacle, str]:
    """The pool that can deliver one more, or why none can, and the Capacity Reservation that it takes a place of."""
    if fleet.default_type != RESERVED:
        return _choose(ledger, fleet, purchase), ""
    free = [pool for pool in fleet.pools if pool.name not in ledger.obstacles]
    if not free:
        return ledger.obstacles[fleet.pools[0].name], ""
    return place_in(ledger, fleet.request, free) or (_NONE_RESERVED, "")


def _place(pool: CapacityPool, lifecycle: str) -> JSON:
    overrides = {"InstanceType": pool.instance_type, "AvailabilityZone": pool.zone}
    return {"Lifecycle": lifecycle, "LaunchTemplateAndOverrides": {"Overrides": overrides}}


def fill(ledger: Ec2Ledger) -> None:
    """Bring every fleet that may need it to its target, in order of creation."""
    fleets = sorted(ledger.to_fill.values(), key=lambda fleet: fleet.ordinal)
    ledger.to_fill.clear()
    for fleet in fleets:
        if fleet.state in ("submitted", "active", "modifying"):
            _follow(ledger, fleet)


def spot_class(instance_type: str) -> str:
    """The quota class of a type (aws.md 4.3): "P", "P5", "G and VT", "F", "X", "Inf", "Trn", "DL" or "Standard"."""
    family = instance_type.partition(".")[0]
    if family.startswith("p5"):
        return "P5"
    for prefix in ("inf", "trn", "dl"):
        if family.startswith(prefix):
            return "DL" if prefix == "dl" else prefix.capitalize()
    if family.startswith(("g", "vt")):
        return "G and VT"
    return family[0].upper() if family[0] in "pfx" else "Standard"


def _follow(ledger: Ec2Ledger, fleet: Ec2Fleet) -> None:
    _settle_state(ledger, fleet)
    if fleet.excess_policy == "termination":
        _shrink(ledger, fleet)
    if ledger.now() < fleet.retry_at:
        return
    fleet.short = ""
    for purchase, target in (("on-demand", fleet.on_demand_target), ("spot", fleet.spot_target)):
        missing = target - fleet.count(purchase)
        for _ in range(missing):
            pool = _choose(ledger, fleet, purchase)
            if isinstance(pool, LaunchObstacle):
                _run_short(ledger, fleet, pool)
                if pool is OVER_QUOTA and DELETED_OVER_LIMIT in ledger.readings:
                    delete(ledger, fleet, terminate=False)
                    return
                break
            if (key := _key(pool, purchase)) in ledger.available:
                ledger.available[key] -= 1
            launch(ledger, fleet, pool, purchase)


def _settle_state(ledger: Ec2Ledger, fleet: Ec2Fleet) -> None:
    if fleet.state != "active" and ledger.now() >= fleet.settles_at:
        fleet.old_targets = None
        said = "active" if fleet.state == "submitted" else "modify_succeeded"
        fleet.state = "active"
        fleet_state(ledger, fleet, said)


def _choose(ledger: Ec2Ledger, fleet: Ec2Fleet, purchase: str) -> CapacityPool | LaunchObstacle:
    """The cheapest pool that can deliver one more; or why none can."""
    free = [pool for pool in fleet.pools if pool.name not in ledger.obstacles]
    if not free:
        return ledger.obstacles[fleet.pools[0].name]
    able = [pool for pool in free if ledger.available.get(_key(pool, purchase), 1) > 0]
    if not able:
        return _NO_CAPACITY
    full, able = able, [pool for pool in able if not ledger.setup.why_not(pool.instance_type)]
    if not able:
        return _NO_CAPACITY._replace(description=ledger.setup.why_not(full[0].instance_type))
    if purchase == "on-demand":
        return min(able, key=lambda pool: ledger.catalogue[pool.instance_type].on_demand_usd_per_hour)
    able = [pool for pool in able if _within_quota(ledger, pool.instance_type)]
    if not able:
        return OVER_QUOTA
    return min(able, key=lambda pool: ledger.prices(pool.instance_type, pool.zone, ledger.now()))


def _within_quota(ledger: Ec2Ledger, instance_type: str) -> bool:
    name = spot_class(instance_type)
    if name not in ledger.quotas:
        return True
    used = sum(
        ledger.catalogue[each.instance_type].vcpus
        for each in ledger.instances.values()
        if each.alive and each.purchase == "spot" and spot_class(each.instance_type) == name
    )
    return used + ledger.catalogue[instance_type].vcpus <= ledger.quotas[name]


def _run_short(ledger: Ec2Ledger, fleet: Ec2Fleet, why: LaunchObstacle) -> None:
    """Report it, and try again after a while: AWS blacklists the launch specification for some minutes."""
    fleet.short = why.sub_type
    fleet.retry_at = ledger.now() + ledger.setup.shortage_retry_s
    fleet_obstacle(ledger, fleet, why.sub_type, why.description)
    ledger.later(fleet.retry_at, partial(ledger.to_fill.__setitem__, fleet.fleet_id, fleet))


def _shrink(ledger: Ec2Ledger, fleet: Ec2Fleet) -> None:
    """The fleet ignores ECS tasks when it chooses instances to end: here the youngest."""
    for purchase, target in (("spot", fleet.spot_target), ("on-demand", fleet.on_demand_target)):
        staying = [each for each in fleet.members.values() if each.purchase == purchase and each.ends_at is None]
        for victim in staying[max(target, 0) :]:
            if purchase == "spot":
                warn(ledger, victim, SCALE_IN_NOTICE_S)
            else:
                shut_down(ledger, victim, "Server.FleetScaleIn", "Fleet scale-in")


def _key(pool: CapacityPool, purchase: str) -> str:
    return pool.name if purchase == "spot" else f"{pool.name}/on-demand"
