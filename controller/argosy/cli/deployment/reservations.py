"""The Capacity Reservations that the settings name: can each be used, how full is it, and when does it end?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from argosy.cli.deployment.findings import Finding, note, ok
from argosy.cli.deployment.remedies import MEND_SETTINGS
from argosy.lifecycle.reservations import ENDED
from argosy.model.pools import is_group

if TYPE_CHECKING:
    from argosy.cli.deployment.checked_account import CheckedAccount
LINUX = "Linux/UNIX"


def reservations(checked: CheckedAccount, cell: str) -> list[Finding]:
    """Only notes: whatever they lack is bought. One finding for each; none without reservations."""
    named = checked.settings.capacity_reservations.get(cell, ())
    if not named:
        return []
    pages = checked.session.client("ec2", cell).get_paginator("describe_capacity_reservations").paginate()
    views = {each["CapacityReservationId"]: each for page in pages for each in page["CapacityReservations"]}
    groups = [each for each in named if is_group(each)]
    ids = [name for name in named if name not in groups]
    client = checked.session.client("ec2", cell)
    for name in views if groups else ():
        found = client.get_groups_for_capacity_reservation(CapacityReservationId=name)["CapacityReservationGroups"]
        if name not in ids and any(each["GroupArn"] in groups for each in found):
            ids.append(name)
    empty = note("reservations", f"no Capacity Reservation here is in {', '.join(groups)}", MEND_SETTINGS)
    return [finding for name in ids for finding in _judged(checked, name, views.get(name))] or empty


def _judged(checked: CheckedAccount, name: str, view: Mapping[str, Any] | None) -> list[Finding]:
    title = f"reservation {name}"
    if view is None:
        return note(title, "EC2 does not show it here: it was cancelled, or is of another Region", MEND_SETTINGS)
    kind, zone = view["InstanceType"], view["AvailabilityZone"]
    free, total = view["AvailableInstanceCount"], view["TotalInstanceCount"]
    end = f", until {view['EndDate']:%Y-%m-%d %H:%M} UTC" if view.get("EndDate") else ""
    says = f"{view['State']}, {free} of {total} {kind} in {zone} are free{end}"
    if view["InstancePlatform"] != LINUX:
        return note(
            title, f"{says}; it is for {view['InstancePlatform']}, and instances here run {LINUX}", MEND_SETTINGS
        )
    if kind not in checked.settings.instance_types.all:
        return note(title, f"{says}; its type is not in instanceTypes, so nothing is launched into it", MEND_SETTINGS)
    if view["State"] in ENDED:
        return note(title, f"{says}; nothing can be launched into it any more", MEND_SETTINGS)
    return ok(title, says)
