"""What does EC2 tell the world? EventBridge messages of instances and fleets, and the fleets' own history."""

from __future__ import annotations

import json
from typing import Any

from argosy.emulator.ec2.account import Ec2Ledger
from argosy.emulator.ec2.records import Ec2Instance, Fleet
from argosy.emulator.ids import as_uuid
from argosy.emulator.times import iso

JSON = dict[str, Any]


def instance_state(ledger: Ec2Ledger, instance: Ec2Instance) -> None:
    """The instance has entered a state."""
    detail = {"instance-id": instance.instance_id, "state": instance.state}
    _emit_of_instance(ledger, instance, "EC2 Instance State-change Notification", detail)


def interruption_warning(ledger: Ec2Ledger, instance: Ec2Instance) -> None:
    """About two minutes are left."""
    detail = {"instance-id": instance.instance_id, "instance-action": "terminate"}
    _emit_of_instance(ledger, instance, "EC2 Spot Instance Interruption Warning", detail)


def rebalance_recommendation(ledger: Ec2Ledger, instance: Ec2Instance) -> None:
    """An interruption has become more likely."""
    detail = {"instance-id": instance.instance_id}
    _emit_of_instance(ledger, instance, "EC2 Instance Rebalance Recommendation", detail)


def fleet_instance(ledger: Ec2Ledger, fleet: Fleet, instance: Ec2Instance, sub_type: str) -> None:
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
    _remember(ledger, fleet, "instance-change", sub_type, description, instance.instance_id)


def fleet_state(ledger: Ec2Ledger, fleet: Fleet, sub_type: str) -> None:
    """submitted, active, modify_in_progress, modify_succeeded, deleted_running, deleted_terminating, deleted."""
    _emit_of_fleet(ledger, fleet, "EC2 Fleet State Change", {"sub-type": sub_type})
    _remember(ledger, fleet, "fleet-change", sub_type, "", "")


def fleet_error(ledger: Ec2Ledger, fleet: Fleet, sub_type: str, description: str) -> None:
    """allLaunchSpecsTemporarilyBlacklisted or spotInstanceCountLimitExceeded."""
    _emit_of_fleet(ledger, fleet, "EC2 Fleet Error", {"description": description, "sub-type": sub_type})
    _remember(ledger, fleet, "service-error", sub_type, description, "")


def _emit_of_instance(ledger: Ec2Ledger, instance: Ec2Instance, detail_type: str, detail: JSON) -> None:
    arn = f"arn:aws:ec2:{ledger.region}:{ledger.account}:instance/{instance.instance_id}"
    _emit(ledger, "aws.ec2", detail_type, arn, detail)


def _emit_of_fleet(ledger: Ec2Ledger, fleet: Fleet, detail_type: str, detail: JSON) -> None:
    arn = f"arn:aws:ec2:{ledger.region}:{ledger.account}:fleet/{fleet.fleet_id}"
    _emit(ledger, "aws.ec2fleet", detail_type, arn, detail)


def _emit(ledger: Ec2Ledger, source: str, detail_type: str, arn: str, detail: JSON) -> None:
    ledger.emit(
        {
            "version": "0",
            "id": as_uuid(ledger.new_id()),
            "detail-type": detail_type,
            "source": source,
            "account": ledger.account,
            "time": iso(ledger.now()),
            "region": ledger.region,
            "resources": [arn],
            "detail": detail,
        }
    )


def _remember(
    ledger: Ec2Ledger, fleet: Fleet, event_type: str, sub_type: str, description: str, instance_id: str
) -> None:
    entry = {"at": ledger.now(), "type": event_type, "sub": sub_type, "text": description, "instance": instance_id}
    fleet.history.append(entry)
