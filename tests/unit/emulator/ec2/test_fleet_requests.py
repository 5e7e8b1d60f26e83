"""Which fleets may be requested, and what do their requests mean?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.ec2_cloud import Ec2Cloud, fleet_request
from tests.fakes.ecs_clouds import refused


@pytest.fixture
def cloud() -> Ec2Cloud:
    return Ec2Cloud()


def test_subnets_stand_for_zones(cloud: Ec2Cloud) -> None:
    request = fleet_request([("c5.large", "us-east-1a")], spot=1)
    cloud.client.create_fleet(**request)
    cloud.after(0)
    subnet = cloud.instances()[0]["SubnetId"]
    override: dict[str, Any] = {"InstanceType": "c5.large", "SubnetId": subnet}
    request["LaunchTemplateConfigs"][0]["Overrides"] = [override]
    cloud.client.create_fleet(**request)
    cloud.after(0)
    assert {each["Placement"]["AvailabilityZone"] for each in cloud.instances()} == {"us-east-1a"}


def test_what_is_not_given_to_either_kind_goes_to_the_default_kind(cloud: Ec2Cloud) -> None:
    fleet = cloud.fleet()
    for given, expected in (
        ({"TotalTargetCapacity": 4}, (4, 0)),
        ({"TotalTargetCapacity": 4, "OnDemandTargetCapacity": 1}, (3, 1)),
        ({"TotalTargetCapacity": 4, "SpotTargetCapacity": 1}, (1, 3)),
        ({"TotalTargetCapacity": 4, "SpotTargetCapacity": 1, "OnDemandTargetCapacity": 1}, (3, 1)),
    ):
        cloud.client.modify_fleet(FleetId=fleet, TargetCapacitySpecification=given)
        seen = cloud.describe(fleet)["TargetCapacitySpecification"]
        assert (seen["SpotTargetCapacity"], seen["OnDemandTargetCapacity"]) == expected


def test_on_demand_is_the_default_kind(cloud: Ec2Cloud) -> None:
    request = {**fleet_request([("c5.large", "us-east-1a")]), "TargetCapacitySpecification": {"TotalTargetCapacity": 2}}
    fleet = cloud.client.create_fleet(**request)["FleetId"]
    assert cloud.describe(fleet)["TargetCapacitySpecification"]["OnDemandTargetCapacity"] == 2


def test_the_policy_alone_can_be_changed(cloud: Ec2Cloud) -> None:
    fleet = cloud.fleet(spot=2)
    cloud.client.modify_fleet(FleetId=fleet, ExcessCapacityTerminationPolicy="termination")
    seen = cloud.describe(fleet)
    assert (seen["ExcessCapacityTerminationPolicy"], seen["TargetCapacitySpecification"]["SpotTargetCapacity"]) == (
        "termination",
        2,
    )


def test_the_members_of_a_large_fleet_come_in_pages(cloud: Ec2Cloud) -> None:
    fleet = cloud.fleet(spot=1_001)
    cloud.after(1)
    first = cloud.client.describe_fleet_instances(FleetId=fleet)
    rest = cloud.client.describe_fleet_instances(FleetId=fleet, NextToken=first["NextToken"])
    assert (len(first["ActiveInstances"]), len(rest["ActiveInstances"])) == (1_000, 1)
    assert "NextToken" not in rest


def test_the_same_token_is_the_same_fleet(cloud: Ec2Cloud) -> None:
    fleet = cloud.fleet(ClientToken="t", spot=1)
    assert cloud.fleet(ClientToken="t", spot=1) == fleet
    with refused("IdempotentParameterMismatch"):
        cloud.fleet(ClientToken="t", spot=2)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"Type": "request"}, "UnsupportedOperation"),
        ({"LaunchTemplateConfigs": []}, "InvalidParameterValue"),
        ({"TargetCapacitySpecification": {"TotalTargetCapacity": 10_001}}, "InvalidParameterValue"),
        ({"TargetCapacitySpecification": {"TotalTargetCapacity": -1}}, "InvalidParameterValue"),
        (
            {"TargetCapacitySpecification": {"TotalTargetCapacity": 1, "SpotTargetCapacity": 2}},
            "InvalidParameterValue",
        ),
        ({"TagSpecifications": [{"ResourceType": "instance", "Tags": []}]}, "InvalidParameterValue"),
        (
            {"TagSpecifications": [{"ResourceType": "fleet", "Tags": [{"Key": "aws:x", "Value": ""}]}]},
            "InvalidParameterValue",
        ),
    ],
)
def test_a_bad_fleet_is_refused(cloud: Ec2Cloud, change: dict[str, Any], code: str) -> None:
    with refused(code):
        cloud.fleet(**change)
    assert cloud.client.describe_fleets()["Fleets"] == []


@pytest.mark.parametrize(
    ("override", "template", "code"),
    [
        ({"InstanceType": "c5.huge"}, {}, "InvalidParameterValue"),
        ({"InstanceType": "c5.large", "AvailabilityZone": "us-east-la"}, {}, "InvalidParameterValue"),
        ({"InstanceType": "c5.large", "SubnetId": "subnet-1"}, {}, "InvalidSubnetID.NotFound"),
        ({"InstanceType": "c5.large", "WeightedCapacity": 2.0}, {}, "UnsupportedOperation"),
        ({"InstanceType": "c5.large"}, {"LaunchTemplateName": "other"}, "InvalidLaunchTemplateId.NotFound"),
        ({"InstanceType": "c5.large"}, {"Version": ""}, "MissingParameter"),
    ],
)
def test_a_bad_pool_is_refused(cloud: Ec2Cloud, override: dict[str, Any], template: dict[str, str], code: str) -> None:
    cloud.model.add_launch_template("argosy-cpu", image_id="ami-1", tags={})
    request = fleet_request([("c5.large", "us-east-1a")])
    config = request["LaunchTemplateConfigs"][0]
    config["Overrides"] = [override]
    config["LaunchTemplateSpecification"].update(template)
    with refused(code):
        cloud.client.create_fleet(**request)


def test_300_overrides_are_allowed_and_no_more(cloud: Ec2Cloud) -> None:
    cloud.client.create_fleet(**fleet_request([("c5.large", "us-east-1a")] * 300))
    with refused("InvalidParameterValue", "300"):
        cloud.client.create_fleet(**fleet_request([("c5.large", "us-east-1a")] * 301))
