"""EC2's events: EventBridge messages of instances and fleets, and the history of each fleet."""

from __future__ import annotations

import json
from typing import Any

from argosy.emulator.ec2.ledger import Ec2Ledger
from argosy.emulator.ec2.records import Ec2Fleet, Ec2Instance, FleetEvent
from argosy.emulator.region import utc

JSON = dict[str, Any]


def instance_state(ledger: Ec2Ledger, instance: Ec2Instance) -> None:
    """The instance has entered a state."""
    detail = {"instance-id": instance.instance_id, "state": instance.state}
    _emit_of_instance(ledger, instance, "EC2 Instance State-change Notification", detail)


def interruption_warning(ledger: Ec2Ledger, instance: Ec2Instance) -> None:
    """The instance ends in about two minutes."""
    detail: JSON = {"instance-id": instance.instance_id, "instance-action": "terminate"}
    kind = "Spot"
    if instance.reservation:
        kind, detail["instance-termination-time"] = "Capacity Reservation", utc(instance.ends_at or ledger.now())
    _emit_of_instance(ledger, instance, f"EC2 {kind} Instance Interruption Warning", detail)


def rebalance_recommendation(ledger: Ec2Ledger, instance: Ec2Instance) -> None:
    """An interruption has become more likely."""
    detail = {"instance-id": instance.instance_id}
    _emit_of_instance(ledger, instance, "EC2 Instance Rebalance Recommendation", detail)


def fleet_instance(ledger: Ec2Ledger, fleet: Ec2Fleet, instance: Ec2Instance, sub_type: str) -> None:
    """launched, termination_notified or terminated; the description is JSON inside a string."""
    described = {
        "instanceType": instance.instance_type,
        "image": instance.image_id,
        "productDescription": "Linux/UNIX",
        "availabilityZone": instance.zone,
    }
    description = json.dumps(described, separators=(",", ":"))
    detail = {"instance-id": instance.instance_id, "description": description, "sub-type": sub_type}
    _emit_of_fleet(ledger, fleet, "EC2 Fleet Instance Change", detail)
    fleet.history.append(FleetEvent(ledger.now(), "instance-change", sub_type, description, instance.instance_id))


def fleet_state(ledger: Ec2Ledger, fleet: Ec2Fleet, sub_type: str) -> None:
    """submitted, active, modify_in_progress, modify_succeeded, deleted_running, deleted_terminating, deleted."""
    _emit_of_fleet(ledger, fleet, "EC2 Fleet State Change", {"sub-type": sub_type})
    fleet.history.append(FleetEvent(ledger.now(), "fleet-change", sub_type))


_INFORMATION = ("launchSpecUnusable", "launchSpecTemporarilyBlacklisted", "fleetProgressHalted")


def fleet_obstacle(ledger: Ec2Ledger, fleet: Ec2Fleet, sub_type: str, description: str) -> None:
    """Why it launches nothing: an "EC2 Fleet Information" or an "EC2 Fleet Error", by the sub-type (aws.md 9.5)."""
    informs = sub_type in _INFORMATION
    detail_type = "EC2 Fleet Information" if informs else "EC2 Fleet Error"
    _emit_of_fleet(ledger, fleet, detail_type, {"description": description, "sub-type": sub_type})
    # Of the three values of FleetEventType only this one fits either.
    fleet.history.append(FleetEvent(ledger.now(), "service-error", sub_type, description))


def _emit_of_instance(ledger: Ec2Ledger, instance: Ec2Instance, detail_type: str, detail: JSON) -> None:
    arn = ledger.region.arn("ec2", f"instance/{instance.instance_id}")
    message = ledger.region.message(ledger.new_id(), "aws.ec2", detail_type, arn)
    ledger.region.emit({**message, "detail": detail})


def _emit_of_fleet(ledger: Ec2Ledger, fleet: Ec2Fleet, detail_type: str, detail: JSON) -> None:
    arn = ledger.region.arn("ec2", f"fleet/{fleet.fleet_id}")
    message = ledger.region.message(ledger.new_id(), "aws.ec2fleet", detail_type, arn)
    ledger.region.emit({**message, "detail": detail})
