"""EC2 fleets: creating, describing, changing and deleting them, and their history."""

from __future__ import annotations

from functools import partial
from typing import Any

from argosy.emulator.ec2.changes import delete
from argosy.emulator.ec2.events import fleet_state
from argosy.emulator.ec2.filters import paged, passing
from argosy.emulator.ec2.fleet_requests import check_offered, read_pools, read_tags, read_targets
from argosy.emulator.ec2.fleet_targets import launch_at_once
from argosy.emulator.ec2.ledger import Ec2Ledger
from argosy.emulator.ec2.records import CapacityPool, Ec2Fleet
from argosy.emulator.ec2.reservations import check_reserved
from argosy.emulator.operations import OperationGroup, Refusal, operation
from argosy.emulator.readings import HYPHENS, TOTAL_ONLY
from argosy.emulator.region import as_uuid, epoch_s, utc
from argosy.model.readings import OLD_TARGET, ONLY_ACTIVE

JSON = dict[str, Any]

MODIFYING_S = 40.0  # under readings in which it takes time
_DELETED = ("deleted", "deleted_running", "deleted_terminating")
_FILTERS = {
    "activity-status": lambda view: [view["ActivityStatus"].replace("_", "-"), view["ActivityStatus"]],
    "excess-capacity-termination-policy": lambda view: [
        str(view["ExcessCapacityTerminationPolicy"] == "termination").lower()
    ],
    "fleet-state": lambda view: [view["FleetState"]],
    "replace-unhealthy-instances": lambda view: [str(view["ReplaceUnhealthyInstances"]).lower()],
    "type": lambda view: [view["Type"]],
}
_WITH_HYPHENS = {"fleet-state": lambda view: [view["FleetState"].replace("_", "-")]}


class FleetOperations(OperationGroup[Ec2Ledger]):
    """Operations on EC2 Fleets. One of type maintain launches nothing before the next `advance`; one of type instant
    launches once, answers with what it launched, and replaces nothing."""

    @operation
    def create_fleet(self, request: JSON) -> JSON:
        """The same ClientToken with the same request answers the same fleet."""
        kind = request.get("Type") or "maintain"
        if kind not in ("maintain", "instant"):
            raise Refusal("UnsupportedOperation", "Only fleets of type maintain or instant are available here.")
        token = request.get("ClientToken")
        for earlier in self.ledger.fleets.values():
            if token is not None and earlier.request.get("ClientToken") == token:
                if earlier.request != request:
                    raise Refusal("IdempotentParameterMismatch", "The token was used with other parameters.")
                return earlier.answer or {"FleetId": earlier.fleet_id}
        specification = request["TargetCapacitySpecification"]
        default_type = specification.get("DefaultTargetCapacityType") or "on-demand"
        check_reserved(request, kind, default_type)
        spot, on_demand = read_targets(specification, default_type)
        pools = read_pools(self.ledger, request["LaunchTemplateConfigs"])
        check_offered(self.ledger, pools)
        fleet = Ec2Fleet(
            ordinal=self.ledger.ordinal(),
            fleet_id=f"fleet-{as_uuid(self.ledger.new_id())}",
            created_at=self.ledger.now(),
            pools=pools,
            request=request,
            spot_target=spot,
            on_demand_target=on_demand,
            default_type=default_type,
            excess_policy=request.get("ExcessCapacityTerminationPolicy") or "termination",
            tags=read_tags(request.get("TagSpecifications"), kind),
        )
        self.ledger.fleets[fleet.fleet_id] = fleet
        if kind == "instant":
            return launch_at_once(self.ledger, fleet)
        fleet_state(self.ledger, fleet, "submitted")
        self.ledger.to_fill[fleet.fleet_id] = fleet
        return {"FleetId": fleet.fleet_id}

    @operation
    def modify_fleet(self, request: JSON) -> JSON:
        """Targets are absolute. The fleet is `modifying` until the next `advance`."""
        fleet = self.ledger.fleet(request["FleetId"])
        if fleet.is_instant:
            raise Refusal("UnsupportedOperation", "A fleet of type instant cannot be modified.")
        if fleet.state in _DELETED or (fleet.state == "modifying" and ONLY_ACTIVE in self.ledger.readings):
            raise Refusal("FleetNotInModifiableState", f"The fleet {fleet.fleet_id} is {fleet.state}.")
        specification = request.get("TargetCapacitySpecification")
        spot, on_demand = fleet.spot_target, fleet.on_demand_target
        if specification is not None:
            if TOTAL_ONLY in self.ledger.readings and len(specification) > 1:
                message = "Currently we only support total target capacity modification."  # as Terraform quotes it
                raise Refusal("InvalidTargetCapacitySpecification", message)
            spot, on_demand = read_targets(specification, fleet.default_type)
        configs = request.get("LaunchTemplateConfigs")
        fleet.pools = read_pools(self.ledger, configs) if configs else fleet.pools
        if spot + on_demand > fleet.spot_target + fleet.on_demand_target:
            check_offered(self.ledger, fleet.pools)
        if (spot, on_demand) != (fleet.spot_target, fleet.on_demand_target):
            fleet.retry_at = 0.0  # a new order is tried at once
        if self.ledger.readings & {ONLY_ACTIVE, OLD_TARGET}:
            self._modify_slowly(fleet)
        fleet.spot_target, fleet.on_demand_target = spot, on_demand
        fleet.excess_policy = request.get("ExcessCapacityTerminationPolicy") or fleet.excess_policy
        fleet.state = "modifying" if fleet.state == "active" else fleet.state
        fleet_state(self.ledger, fleet, "modify_in_progress")
        self.ledger.to_fill[fleet.fleet_id] = fleet
        return {"Return": True}

    @operation
    def delete_fleets(self, request: JSON) -> JSON:
        """With its instances, or without them; deleting twice is harmless."""
        done, undone = [], []
        for fleet_id in request["FleetIds"]:
            fleet = self.ledger.fleets.get(fleet_id)
            if fleet is None:
                error = {"Code": "fleetIdDoesNotExist", "Message": f"The fleet ID '{fleet_id}' does not exist"}
                undone.append({"FleetId": fleet_id, "Error": error})
                continue
            before = fleet.state
            if before not in _DELETED:
                delete(self.ledger, fleet, terminate=request["TerminateInstances"])
            done.append({"FleetId": fleet_id, "PreviousFleetState": before, "CurrentFleetState": fleet.state})
        return {"SuccessfulFleetDeletions": done, "UnsuccessfulFleetDeletions": undone}

    @operation
    def describe_fleets(self, request: JSON) -> JSON:
        """By id, or all that are not instant; the documented filters only (there is none by tag)."""
        ids, every = request.get("FleetIds"), self.ledger.fleets.values()
        fleets = [self.ledger.fleet(each) for each in ids] if ids else [each for each in every if not each.is_instant]
        read = {**_FILTERS, **_WITH_HYPHENS} if HYPHENS in self.ledger.readings else _FILTERS
        views = [fleet_view(fleet) for fleet in fleets]
        return paged(request, "Fleets", passing(views, request.get("Filters"), read))

    @operation
    def describe_launch_templates(self, request: JSON) -> JSON:
        """Those of `add_launch_template`, by tag; here a template's name is its id too."""
        found = passing(self.ledger.templates.items(), request.get("Filters"), {}, tags=lambda named: named[1].own_tags)
        views = [
            {
                "LaunchTemplateId": name,
                "LaunchTemplateName": name,
                "DefaultVersionNumber": 1,
                "LatestVersionNumber": len(template.image_ids),
                "Tags": [{"Key": key, "Value": value} for key, value in template.own_tags.items()],
            }
            for name, template in found
        ]
        return paged(request, "LaunchTemplates", views)

    @operation
    def describe_fleet_instances(self, request: JSON) -> JSON:
        """Its instances that are alive."""
        fleet = self.ledger.fleet(request["FleetId"])
        by_type = {"instance-type": lambda each: [each.instance_type]}
        found = passing(list(fleet.members.values()), request.get("Filters"), by_type)
        active = [
            {
                "InstanceId": each.instance_id,
                "InstanceType": each.instance_type,
                "InstanceHealth": "healthy",
                **({"SpotInstanceRequestId": each.spot_request_id} if each.spot_request_id else {}),
            }
            for each in found
        ]
        return {**paged(request, "ActiveInstances", active), "FleetId": fleet.fleet_id}

    @operation
    def describe_fleet_history(self, request: JSON) -> JSON:
        """What happened since StartTime, oldest first."""
        fleet, start = self.ledger.fleet(request["FleetId"]), epoch_s(request["StartTime"])
        wanted = request.get("EventType")
        records = [
            {
                "EventType": each.event_type,
                "Timestamp": utc(each.at),
                "EventInformation": {
                    name: value
                    for name, value in (
                        ("EventSubType", each.sub_type),
                        ("EventDescription", each.description),
                        ("InstanceId", each.instance_id),
                    )
                    if value
                },
            }
            for each in fleet.history
            if each.at >= start and wanted in (None, each.event_type)
        ]
        page = paged(request, "HistoryRecords", records)
        ends = {"FleetId": fleet.fleet_id, "StartTime": utc(start), "LastEvaluatedTime": utc(self.ledger.now())}
        return {**page, **ends}

    def _modify_slowly(self, fleet: Ec2Fleet) -> None:
        """It is `modifying` for a while, and may show what it had before."""
        fleet.settles_at = self.ledger.now() + MODIFYING_S
        self.ledger.later(fleet.settles_at, partial(self.ledger.to_fill.__setitem__, fleet.fleet_id, fleet))
        if OLD_TARGET in self.ledger.readings:
            fleet.old_targets = fleet.old_targets or (fleet.spot_target, fleet.on_demand_target)


def activity(fleet: Ec2Fleet) -> str:
    """ActivityStatus."""
    if fleet.short:
        return "error"
    if len(fleet.members) < fleet.total_target:
        return "pending_fulfillment"
    excess = len(fleet.members) > fleet.total_target and fleet.excess_policy == "termination"
    return "pending_termination" if excess else "fulfilled"


def fleet_view(fleet: Ec2Fleet) -> JSON:
    """A FleetData of DescribeFleets."""
    spot, on_demand = fleet.old_targets or (fleet.spot_target, fleet.on_demand_target)
    shown = ("SpotOptions", "OnDemandOptions", "Context", "ClientToken", "ValidFrom", "ValidUntil")
    return {
        "ActivityStatus": activity(fleet),
        "CreateTime": utc(fleet.created_at),
        "FleetId": fleet.fleet_id,
        "FleetState": fleet.state,
        "ExcessCapacityTerminationPolicy": fleet.excess_policy,
        "FulfilledCapacity": float(len(fleet.members)),
        "FulfilledOnDemandCapacity": float(fleet.count("on-demand")),
        "LaunchTemplateConfigs": [_config(pool) for pool in fleet.pools],
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": spot + on_demand,
            "OnDemandTargetCapacity": on_demand,
            "SpotTargetCapacity": spot,
            "DefaultTargetCapacityType": fleet.default_type,
        },
        "TerminateInstancesWithExpiration": bool(fleet.request.get("TerminateInstancesWithExpiration")),
        "Type": "instant" if fleet.is_instant else "maintain",
        "ReplaceUnhealthyInstances": bool(fleet.request.get("ReplaceUnhealthyInstances")),
        "Tags": [{"Key": key, "Value": value} for key, value in fleet.tags.items()],
        **{name: fleet.request[name] for name in shown if fleet.request.get(name) is not None},
    }


def _config(pool: CapacityPool) -> JSON:
    name = "LaunchTemplateId" if pool.template.startswith("lt-") else "LaunchTemplateName"
    return {
        "LaunchTemplateSpecification": {name: pool.template, "Version": pool.template_version},
        "Overrides": [{"InstanceType": pool.instance_type, "AvailabilityZone": pool.zone}],
    }
