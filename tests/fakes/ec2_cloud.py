"""Builders for the tests of the simulated EC2 and of worlds."""

from __future__ import annotations

from typing import Any

from argosy.catalogue.lookup import load_catalogue
from argosy.emulator.botocore_check import SimulatedClient
from argosy.emulator.ec2.service import Ec2Model, Ec2Setup
from argosy.emulator.region import AwsRegion
from tests.harness.simulation.world.world import START

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
NAMED = {name: load_catalogue()[name] for name in ("c5.large", "c5.2xlarge", "c5.9xlarge", "p3.2xlarge", "p3.8xlarge")}


class Ec2Cloud:
    """An EC2 on a virtual clock, its requests and replies checked against botocore's service model."""

    def __init__(self, **options: Any) -> None:
        self.now = START
        self.events: list[dict[str, Any]] = []
        self.model = Ec2Model(AwsRegion(lambda: self.now, emit=self.events.append), Ec2Setup(NAMED, ZONES, **options))
        self.client: Any = SimulatedClient(self.model, "ec2")

    def after(self, seconds: float) -> None:
        """Let time pass; everything that is due happens at its own time."""
        end = self.now + seconds
        while (due := self.model.next_due()) is not None and due <= end:
            self.now = max(self.now, due)
            self.model.advance()
        self.now = end

    def fleet(self, instance_type: str = "c5.large", zone: str = "us-east-1a", **targets: Any) -> str:
        """A maintain fleet of one pool; targets spot=, on_demand=; the rest goes into the request."""
        spot, on_demand = targets.pop("spot", 0), targets.pop("on_demand", 0)
        reply = self.client.create_fleet(**{**fleet_request([(instance_type, zone)], spot, on_demand), **targets})
        return str(reply["FleetId"])

    def target(self, fleet_id: str, *, spot: int = 0, on_demand: int = 0, **more: Any) -> None:
        """ModifyFleet to absolute targets."""
        targets = {
            "TotalTargetCapacity": spot + on_demand,
            "SpotTargetCapacity": spot,
            "OnDemandTargetCapacity": on_demand,
        }
        self.client.modify_fleet(FleetId=fleet_id, TargetCapacitySpecification=targets, **more)

    def instances(self, **request: Any) -> list[dict[str, Any]]:
        """DescribeInstances, flat."""
        reply = self.client.describe_instances(**request)
        return [each for reservation in reply["Reservations"] for each in reservation["Instances"]]

    def alive(self, fleet_id: str) -> list[str]:
        """Ids of a fleet's active instances."""
        return [
            each["InstanceId"] for each in self.client.describe_fleet_instances(FleetId=fleet_id)["ActiveInstances"]
        ]

    def describe(self, fleet_id: str) -> dict[str, Any]:
        """The fleet as DescribeFleets shows it."""
        fleet: dict[str, Any] = self.client.describe_fleets(FleetIds=[fleet_id])["Fleets"][0]
        return fleet

    def said(self, detail_type: str) -> list[dict[str, Any]]:
        """The details of all events of a kind."""
        return [each["detail"] for each in self.events if each["detail-type"] == detail_type]


def fleet_request(pools: list[tuple[str, str]], spot: int = 0, on_demand: int = 0) -> dict[str, Any]:
    """A CreateFleet request as the stacks would make it."""
    return {
        "Type": "maintain",
        "ExcessCapacityTerminationPolicy": "no-termination",
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": spot + on_demand,
            "SpotTargetCapacity": spot,
            "OnDemandTargetCapacity": on_demand,
            "DefaultTargetCapacityType": "spot",
        },
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {"LaunchTemplateName": "argosy-cpu", "Version": "1"},
                "Overrides": [{"InstanceType": name, "AvailabilityZone": zone} for name, zone in pools],
            }
        ],
    }
