"""The Capacity Reservations that the settings name, as EC2 shows them, and orders of instances out of them.

An order is CreateFleet of type `instant` for `reserved-capacity`, with the reservation as its target and no other
purchase option to fall back to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from argosy.aws.cell import Cell, CheckTime, pages, read_each
from argosy.messages.ecs import epoch_s
from argosy.model.events import Event
from argosy.model.instances import Purchase
from argosy.model.pools import CAPACITY_BLOCK, INTERRUPTIBLE, Pool, ReservationSeen, is_group

ON_DEMAND = "on-demand-capacity-reservation"


def reservations(cell: Cell, check_time: CheckTime = lambda: None) -> Iterator[Event]:
    """Without a filter: none is for ids, and an unknown id would fail the whole call. Raises AWS_ERRORS and what
    `check_time` raises."""

    def call(**request: Any) -> dict[str, Any]:
        check_time()
        return dict(cell.ec2.describe_capacity_reservations(**request))

    for page in pages(call) if cell.reservations else ():
        named = [each for each in page["CapacityReservations"] if _is_named(each, cell, check_time)]
        yield from read_each(partial(_seen, cell=cell.name), named)


def _is_named(view: Mapping[str, Any], cell: Cell, check_time: CheckTime) -> bool:
    """By its id, or by a group that it is in: reservations come into groups and leave them at any time."""
    name, groups = view["CapacityReservationId"], {each for each in cell.reservations if is_group(each)}
    if name in cell.reservations or not groups:
        return bool(name in cell.reservations)
    check_time()
    found = pages(cell.ec2.get_groups_for_capacity_reservation, CapacityReservationId=name)
    is_in = any(each["GroupArn"] in groups for page in found for each in page["CapacityReservationGroups"])
    (cell.grouped.add if is_in else cell.grouped.discard)(name)
    return is_in


def _seen(view: Mapping[str, Any], cell: str) -> ReservationSeen:
    kind = CAPACITY_BLOCK if view.get("ReservationType") == CAPACITY_BLOCK else ON_DEMAND
    return ReservationSeen(
        reservation=view["CapacityReservationId"],
        cell=cell,
        instance_type=view["InstanceType"],
        zone=view["AvailabilityZone"],
        reserved_as=INTERRUPTIBLE if view.get("Interruptible") else kind,
        state=view["State"],
        instances=int(view["TotalInstanceCount"]),
        free=int(view["AvailableInstanceCount"]),
        starts_at=epoch_s(view.get("StartDate")),
        ends_at=epoch_s(view.get("EndDate")),
    )


def target_of(pool: Pool) -> dict[str, Any]:
    """The members of CreateFleet that say what an order is for."""
    kind = "reserved-capacity" if pool.reservation else "on-demand"
    target = {"TotalTargetCapacity": pool.on_demand_count, "DefaultTargetCapacityType": kind}
    if not pool.reservation:
        return {"TargetCapacitySpecification": target}
    options = {
        "ReservationTypes": [pool.reserved_as],
        "CapacityReservationTarget": {"CapacityReservationIds": [pool.reservation]},
    }
    return {"TargetCapacitySpecification": target, "ReservedCapacityOptions": options}


def as_reserved(instance: Mapping[str, Any], cell: Cell) -> tuple[str, str]:
    """How an instance of DescribeInstances was bought, and the reservation of the settings that it takes a place of."""
    reservation = str(instance.get("CapacityReservationId") or "")
    if instance.get("InstanceLifecycle") == "spot":
        return Purchase.SPOT.value, ""
    if reservation in cell.reservations or reservation in cell.grouped:
        is_lent = instance.get("InstanceLifecycle") == INTERRUPTIBLE
        return (Purchase.INTERRUPTIBLE if is_lent else Purchase.RESERVED).value, reservation
    return Purchase.ON_DEMAND.value, ""
