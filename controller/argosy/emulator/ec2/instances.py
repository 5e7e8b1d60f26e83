"""EC2 instances: describing, ending and tagging them."""

from __future__ import annotations

from functools import partial
from typing import Any

from argosy.emulator.ec2.changes import shut_down
from argosy.emulator.ec2.filters import paged, passing
from argosy.emulator.ec2.fleet_requests import check_tags
from argosy.emulator.ec2.ledger import Ec2Ledger
from argosy.emulator.ec2.records import STATE_CODES, Ec2Fleet, Ec2Instance
from argosy.emulator.operations import OperationGroup, Refusal, operation
from argosy.emulator.region import iso, utc

JSON = dict[str, Any]

MAX_TERMINATED_AT_ONCE = 1_000
_FILTERS = {
    "instance-id": lambda each: [each.instance_id],
    "instance-state-name": lambda each: [each.state],
    "instance-state-code": lambda each: [str(STATE_CODES[each.state])],
    "instance-type": lambda each: [each.instance_type],
    "instance-lifecycle": lambda each: ["spot"] if each.purchase == "spot" else [],
    "availability-zone": lambda each: [each.zone],
    "image-id": lambda each: [each.image_id],
    "subnet-id": lambda each: [each.subnet_id],
    "spot-instance-request-id": lambda each: [each.spot_request_id],
}
_CHECKS = {"SystemStatus": "system", "InstanceStatus": "instance", "AttachedEbsStatus": "attached-ebs"}
_STATUS_FILTERS = {
    f"{name}-status.status": partial(lambda check, each: [_check(each, check)], name) for name in _CHECKS.values()
}


class InstanceOperations(OperationGroup[Ec2Ledger]):
    """Operations on instances and on the tags of instances and fleets."""

    @operation
    def describe_instances(self, request: JSON) -> JSON:
        """By id (all must exist) or by filter; a terminated one stays visible for an hour."""
        ids = request.get("InstanceIds")
        if ids and request.get("MaxResults") is not None:
            raise Refusal(
                "InvalidParameterCombination",
                "The parameter instancesSet cannot be used with the parameter maxResults",
            )
        instances = self.ledger.named(ids) if ids else list(self.ledger.instances.values())
        found = passing(instances, request.get("Filters"), _FILTERS, lambda each: each.tags)
        reservations = [self._reservation(each) for each in found]
        return {"Reservations": reservations} if ids else paged(request, "Reservations", reservations, smallest=5)

    @operation
    def describe_instance_status(self, request: JSON) -> JSON:
        """Of running instances, by filter."""
        running = [each for each in self.ledger.instances.values() if each.state == "running"]
        found = passing(running, request.get("Filters"), _STATUS_FILTERS)
        return paged(request, "InstanceStatuses", [_status_view(each) for each in found], smallest=5)

    @operation
    def get_console_output(self, request: JSON) -> JSON:
        """As boto3 shows it: decoded. Without an output the member is missing."""
        (instance,) = self.ledger.named([request["InstanceId"]])
        output = {"Output": instance.console} if instance.console else {}
        return {"InstanceId": instance.instance_id, "Timestamp": utc(self.ledger.now()), **output}

    @operation
    def terminate_instances(self, request: JSON) -> JSON:
        """All of them, or none if one id is unknown. Ending an ended instance is harmless."""
        instances = self.ledger.named(request["InstanceIds"])
        if len(instances) > MAX_TERMINATED_AT_ONCE:
            raise Refusal(
                "InvalidParameterValue", f"At most {MAX_TERMINATED_AT_ONCE} instances can be terminated at once."
            )
        changes = []
        for instance in instances:
            before = _state(instance)
            reason = f"User initiated ({iso(self.ledger.now())})"
            shut_down(self.ledger, instance, "Client.UserInitiatedShutdown", reason)
            changes.append(
                {"InstanceId": instance.instance_id, "CurrentState": _state(instance), "PreviousState": before}
            )
        return {"TerminatingInstances": changes}

    @operation
    def create_tags(self, request: JSON) -> JSON:
        """On instances and fleets; adds or replaces."""
        tagged = [self._taggable(resource) for resource in request["Resources"]]
        fresh = {tag["Key"]: tag.get("Value", "") for tag in request["Tags"]}
        check_tags(fresh)
        for record in tagged:
            check_tags({key: value for key, value in {**record.tags, **fresh}.items() if not key.startswith("aws:")})
        for record in tagged:
            record.tags = {**record.tags, **fresh}
        return {}

    @operation
    def describe_tags(self, request: JSON) -> JSON:
        """Of instances and fleets."""
        rows = [
            {"Key": key, "ResourceId": resource, "ResourceType": kind, "Value": value}
            for kind, resource, tags in self._all_tagged()
            for key, value in tags.items()
        ]
        read = {
            "key": lambda row: [row["Key"]],
            "value": lambda row: [row["Value"]],
            "resource-id": lambda row: [row["ResourceId"]],
            "resource-type": lambda row: [row["ResourceType"]],
        }
        by_tag = {
            "tag:" + row["Key"]: (lambda row, key=row["Key"]: [row["Value"]] * (row["Key"] == key)) for row in rows
        }
        return paged(request, "Tags", passing(rows, request.get("Filters"), {**by_tag, **read}), smallest=5)

    def _taggable(self, resource: str) -> Ec2Instance | Ec2Fleet:
        if resource.startswith("fleet-"):
            return self.ledger.fleet(resource)
        return self.ledger.named([resource])[0]

    def _all_tagged(self) -> list[tuple[str, str, dict[str, str]]]:
        fleets = [("fleet", fleet.fleet_id, fleet.tags) for fleet in self.ledger.fleets.values()]
        return fleets + [("instance", each.instance_id, each.tags) for each in self.ledger.instances.values()]

    def _reservation(self, instance: Ec2Instance) -> JSON:
        digits = instance.instance_id.removeprefix("i-")
        view = instance_view(instance, self.ledger.catalogue[instance.instance_type].architecture)
        view["PrivateIpAddress"] = self.ledger.setup.private_ip or view["PrivateIpAddress"]
        return {
            "ReservationId": f"r-{digits}",
            "OwnerId": self.ledger.region.account,
            "RequesterId": "AWS",
            "Groups": [],
            "Instances": [view],
        }


def instance_view(instance: Ec2Instance, architecture: str) -> JSON:
    """An Instance of DescribeInstances; InstanceLifecycle is missing on demand."""
    view: JSON = {
        "InstanceId": instance.instance_id,
        "InstanceType": instance.instance_type,
        "ImageId": instance.image_id,
        "State": _state(instance),
        "LaunchTime": utc(instance.launched_at),
        "Placement": {"AvailabilityZone": instance.zone, "GroupName": "", "Tenancy": "default"},
        "Architecture": architecture,
        "SubnetId": instance.subnet_id,
        "PrivateIpAddress": _private_ip(instance),
        "PlatformDetails": "Linux/UNIX",
        "StateTransitionReason": instance.reason,
        "Tags": [{"Key": key, "Value": value} for key, value in instance.tags.items()],
    }
    if instance.lifecycle:
        view["InstanceLifecycle"] = instance.lifecycle
    if instance.purchase == "spot":
        view["SpotInstanceRequestId"] = instance.spot_request_id
    if instance.reservation:
        view["CapacityReservationId"] = instance.reservation
    if instance.reason_code:
        view["StateReason"] = {"Code": instance.reason_code, "Message": instance.reason}
    return view


def _status_view(instance: Ec2Instance) -> JSON:
    checks = {member: {"Status": _check(instance, name)} for member, name in _CHECKS.items()}
    return {
        "InstanceId": instance.instance_id,
        "AvailabilityZone": instance.zone,
        "InstanceState": _state(instance),
        **checks,
    }


def _check(instance: Ec2Instance, name: str) -> str:
    return "impaired" if name in instance.failed_checks else "ok"


def _state(instance: Ec2Instance) -> JSON:
    return {"Code": STATE_CODES[instance.state], "Name": instance.state}


def _private_ip(instance: Ec2Instance) -> str:
    return f"10.{instance.ordinal >> 16 & 255}.{instance.ordinal >> 8 & 255}.{instance.ordinal & 255}"
