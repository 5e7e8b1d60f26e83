"""Capacity Reservations and Capacity Blocks: what they still hold, and what ends with them."""

from __future__ import annotations

from functools import partial
from typing import Any

from argosy.emulator.ec2.changes import shut_down, warn
from argosy.emulator.ec2.filters import paged, passing
from argosy.emulator.ec2.ledger import Ec2Ledger
from argosy.emulator.ec2.records import CapacityPool, CapacityReservation, Ec2Instance
from argosy.emulator.operations import OperationGroup, Refusal, operation
from argosy.emulator.region import utc

JSON = dict[str, Any]

BLOCK, ON_DEMAND = "capacity-block", "on-demand-capacity-reservation"
INTERRUPTIBLE = "interruptible-capacity-reservation"  # of another owner, who takes places back as it likes
BLOCK_ENDS_EARLIER_S = 1800.0  # EC2 begins to end its instances then, and launches no more into it
NOTICE_S = 120.0  # between the warning and the end of an instance that is taken back
RESERVED = "reserved-capacity"  # a DefaultTargetCapacityType


class ReservationOperations(OperationGroup[Ec2Ledger]):
    """Reading only: they are made by `Ec2Model.reserve`."""

    @operation
    def describe_capacity_reservations(self, request: JSON) -> JSON:
        """By id, of which all must exist, or by filter."""
        found, ids = list(self.ledger.reservations.values()), request.get("CapacityReservationIds")
        if unknown := [each for each in ids or () if each not in self.ledger.reservations]:
            message = f"The capacity reservation IDs {unknown} do not exist"
            raise Refusal("InvalidCapacityReservationId.NotFound", message)
        by = {
            "instance-type": lambda each: [each.instance_type],
            "availability-zone": lambda each: [each.zone],
            "state": lambda each: [state_of(self.ledger, each)],
        }
        kept = passing([each for each in found if not ids or each.reservation_id in ids], request.get("Filters"), by)
        return paged(request, "CapacityReservations", [_view(self.ledger, each) for each in kept])

    @operation
    def get_groups_for_capacity_reservation(self, request: JSON) -> JSON:
        """All of one reservation, in one page."""
        found = self.ledger.reservations.get(name := request["CapacityReservationId"])
        if found is None:
            raise Refusal("InvalidCapacityReservationId.NotFound", f"The capacity reservation '{name}' does not exist")
        groups = [{"GroupArn": each, "OwnerId": self.ledger.region.account} for each in found.groups]
        return {"CapacityReservationGroups": groups}


def state_of(ledger: Ec2Ledger, reservation: CapacityReservation) -> str:
    """active, scheduled, expired or cancelled."""
    if reservation.is_cancelled or reservation.reclaimed >= reservation.total:
        return "cancelled"
    if ledger.now() < reservation.starts_at:
        return "scheduled"
    return "expired" if 0 < reservation.ends_at <= ledger.now() else "active"


def in_use(ledger: Ec2Ledger, reservation: CapacityReservation) -> list[Ec2Instance]:
    """Its instances that are alive."""
    return [each for each in ledger.instances.values() if each.alive and each.reservation == reservation.reservation_id]


def free_of(ledger: Ec2Ledger, reservation: CapacityReservation) -> int:
    """How many more instances it takes."""
    last = reservation.ends_at - (BLOCK_ENDS_EARLIER_S if reservation.kind == BLOCK else 0.0)
    if state_of(ledger, reservation) != "active" or 0 < last <= ledger.now():
        return 0
    return max(0, reservation.total - reservation.reclaimed - reservation.taken - len(in_use(ledger, reservation)))


def check_reserved(request: JSON, kind: str, default_type: str) -> None:
    """Whether CreateFleet names reservations as it has to. Raises Refusal."""
    options = request.get("ReservedCapacityOptions")
    if (options is not None) != (default_type == RESERVED):
        raise Refusal("InvalidParameterCombination", f"ReservedCapacityOptions goes with the target type {RESERVED}.")
    if options is not None and kind != "instant":
        raise Refusal("InvalidParameterCombination", "ReservedCapacityOptions needs a fleet of type instant.")


def place_in(ledger: Ec2Ledger, request: JSON, pools: list[CapacityPool]) -> tuple[CapacityPool, str] | None:
    """The pool and the targeted reservation that take one more instance."""
    options = request["ReservedCapacityOptions"]
    named = options["CapacityReservationTarget"]["CapacityReservationIds"]
    for reservation in [ledger.reservations[each] for each in named if each in ledger.reservations]:
        for pool in pools:
            fits = (pool.instance_type, pool.zone) == (reservation.instance_type, reservation.zone)
            if fits and reservation.kind in options["ReservationTypes"] and free_of(ledger, reservation):
                return pool, reservation.reservation_id
    return None


def into_reservation(ledger: Ec2Ledger, instance: Ec2Instance, reservation: str) -> None:
    """It takes a place of this one; "" = of none."""
    instance.reservation = reservation
    if reservation and ledger.reservations[reservation].kind != ON_DEMAND:
        instance.lifecycle = ledger.reservations[reservation].kind


def reclaim(ledger: Ec2Ledger, reservation: CapacityReservation, count: int) -> None:
    """Its owner takes that many places back: free ones, then those of the youngest instances after a warning."""
    reservation.reclaimed = min(reservation.total, reservation.reclaimed + count)
    used = in_use(ledger, reservation)
    staying = max(0, reservation.total - reservation.reclaimed - reservation.taken)
    for instance in used[staying:]:
        warn(ledger, instance, NOTICE_S)


def end_block(ledger: Ec2Ledger, reservation: CapacityReservation) -> None:
    """EC2 ends the instances of a Capacity Block half an hour before its end; those of others stay."""
    if reservation.kind == BLOCK and reservation.ends_at:
        ledger.later(reservation.ends_at - BLOCK_ENDS_EARLIER_S, partial(_end_instances, ledger, reservation))


def _end_instances(ledger: Ec2Ledger, reservation: CapacityReservation) -> None:
    for instance in in_use(ledger, reservation):
        shut_down(ledger, instance, "Server.InternalError", "The Capacity Block ends")


def _view(ledger: Ec2Ledger, each: CapacityReservation) -> JSON:
    ends = {"EndDate": utc(each.ends_at), "EndDateType": "limited"} if each.ends_at else {"EndDateType": "unlimited"}
    return {
        "CapacityReservationId": each.reservation_id,
        "OwnerId": ledger.region.account,
        "InstanceType": each.instance_type,
        "InstancePlatform": "Linux/UNIX",
        "AvailabilityZone": each.zone,
        "Tenancy": "default",
        "TotalInstanceCount": each.total - each.reclaimed,
        "AvailableInstanceCount": free_of(ledger, each),
        "State": state_of(ledger, each),
        "StartDate": utc(each.starts_at),
        **ends,
        "InstanceMatchCriteria": "targeted",
        "CreateDate": utc(each.starts_at),
        "ReservationType": BLOCK if each.kind == BLOCK else "default",
        "Interruptible": each.kind == INTERRUPTIBLE,
        **({"InterruptionInfo": {"InterruptionType": "adhoc"}} if each.kind == INTERRUPTIBLE else {}),
    }
