"""The simulated Capacity Reservations and Capacity Blocks, checked against botocore's service model."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy.emulator.ec2.reservations import BLOCK, BLOCK_ENDS_EARLIER_S, INTERRUPTIBLE, ON_DEMAND
from tests.fakes.ec2_cloud import Ec2Cloud

POOL = "p3.8xlarge/us-east-1a"
WARNING = "EC2 Capacity Reservation Instance Interruption Warning"


def ordered(cloud: Ec2Cloud, count: int, *named: str, kind: str = ON_DEMAND, **changed: Any) -> Any:
    """CreateFleet of instances out of the named reservations."""
    template = {"LaunchTemplateName": "argosy", "Version": "1"}
    override = {"InstanceType": "p3.8xlarge", "AvailabilityZone": "us-east-1a"}
    target = {"TotalTargetCapacity": count, "DefaultTargetCapacityType": "reserved-capacity"}
    options = {"ReservationTypes": [kind], "CapacityReservationTarget": {"CapacityReservationIds": list(named)}}
    request = {
        "Type": "instant",
        "TargetCapacitySpecification": target,
        "ReservedCapacityOptions": options,
        "LaunchTemplateConfigs": [{"LaunchTemplateSpecification": template, "Overrides": [override]}],
    }
    return cloud.client.create_fleet(**{**request, **changed})


def shown(cloud: Ec2Cloud) -> dict[str, Any]:
    (view,) = cloud.client.describe_capacity_reservations()["CapacityReservations"]
    return dict(view)


def test_an_order_takes_the_places_that_are_left_and_nothing_else() -> None:
    cloud = Ec2Cloud()
    reserved = cloud.model.reserve(POOL, 3)
    reserved.taken = 1
    answer = ordered(cloud, 4, reserved.reservation_id)
    assert sum(len(each["InstanceIds"]) for each in answer["Instances"]) == 2
    assert [each["ErrorCode"] for each in answer["Errors"]] == ["InsufficientInstanceCapacity"]
    assert {each["CapacityReservationId"] for each in cloud.instances()} == {reserved.reservation_id}
    assert (shown(cloud)["TotalInstanceCount"], shown(cloud)["AvailableInstanceCount"]) == (3, 0)


def test_an_instance_that_ends_gives_its_place_back() -> None:
    cloud = Ec2Cloud()
    reserved = cloud.model.reserve(POOL, 1)
    (launched,) = ordered(cloud, 1, reserved.reservation_id)["Instances"]
    assert shown(cloud)["AvailableInstanceCount"] == 0
    cloud.client.terminate_instances(InstanceIds=launched["InstanceIds"])
    assert shown(cloud)["AvailableInstanceCount"] == 1


def test_the_instances_of_a_block_end_half_an_hour_before_it() -> None:
    cloud = Ec2Cloud()
    block = cloud.model.reserve(POOL, 2, kind=BLOCK, lasts=(0.0, cloud.now + 7200.0))
    assert shown(cloud)["ReservationType"] == "capacity-block"
    ordered(cloud, 1, block.reservation_id, kind=BLOCK)
    cloud.after(7200.0 - BLOCK_ENDS_EARLIER_S - 60.0)
    assert [each["State"]["Name"] for each in cloud.instances()] == ["running"]
    cloud.after(120.0)
    assert [each["State"]["Name"] for each in cloud.instances()] == ["terminated"]
    assert ordered(cloud, 1, block.reservation_id, kind=BLOCK)["Instances"] == []
    cloud.after(BLOCK_ENDS_EARLIER_S)
    assert shown(cloud)["State"] == "expired"


def test_the_instances_of_a_reservation_outlive_it() -> None:
    cloud = Ec2Cloud()
    reserved = cloud.model.reserve(POOL, 1, lasts=(0.0, cloud.now + 600.0))
    ordered(cloud, 1, reserved.reservation_id)
    cloud.after(900.0)
    assert [each["State"]["Name"] for each in cloud.instances()] == ["running"]
    assert shown(cloud)["State"] == "expired"


def test_nothing_is_launched_into_one_that_is_not_active_or_of_another_kind() -> None:
    cloud = Ec2Cloud()
    later = cloud.model.reserve(POOL, 1, kind=BLOCK, lasts=(cloud.now + 600.0, 0.0))
    assert ordered(cloud, 1, later.reservation_id, kind=BLOCK)["Instances"] == []
    assert (shown(cloud)["State"], shown(cloud)["AvailableInstanceCount"]) == ("scheduled", 0)
    cloud.after(700.0)
    assert ordered(cloud, 1, later.reservation_id, kind=ON_DEMAND)["Instances"] == []
    assert len(ordered(cloud, 1, later.reservation_id, kind=BLOCK)["Instances"]) == 1
    later.is_cancelled = True
    assert shown(cloud)["State"] == "cancelled"


def test_what_the_owner_of_an_interruptible_one_takes_back_ends_two_minutes_after_a_warning() -> None:
    cloud = Ec2Cloud()
    lent = cloud.model.reserve(POOL, 3, kind=INTERRUPTIBLE)
    answer = ordered(cloud, 2, lent.reservation_id, kind=INTERRUPTIBLE)
    assert {each["Lifecycle"] for each in answer["Instances"]} == {INTERRUPTIBLE}
    assert {each["InstanceLifecycle"] for each in cloud.instances()} == {INTERRUPTIBLE}
    assert (shown(cloud)["Interruptible"], shown(cloud)["InterruptionInfo"]) == (True, {"InterruptionType": "adhoc"})
    cloud.after(60.0)
    cloud.model.reclaim(lent, 1)  # the free place
    assert (shown(cloud)["TotalInstanceCount"], shown(cloud)["AvailableInstanceCount"]) == (2, 0)
    assert not cloud.said(WARNING)
    cloud.model.reclaim(lent, 1)
    (detail,) = cloud.said(WARNING)
    assert (detail["instance-action"], "instance-termination-time" in detail) == ("terminate", True)
    cloud.after(130.0)
    states = sorted(each["State"]["Name"] for each in cloud.instances())
    assert (states, shown(cloud)["State"]) == (["running", "terminated"], "active")
    cloud.model.reclaim(lent, 1)
    assert shown(cloud)["State"] == "cancelled"


def test_the_options_go_with_an_instant_fleet_of_reserved_capacity() -> None:
    cloud = Ec2Cloud()
    name = cloud.model.reserve(POOL, 1).reservation_id
    on_demand = {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"}
    for changed in ({"Type": "maintain"}, {"TargetCapacitySpecification": on_demand}):
        with pytest.raises(ClientError, match="InvalidParameterCombination"):
            ordered(cloud, 1, name, **changed)


def test_the_groups_of_a_reservation_are_listed() -> None:
    cloud = Ec2Cloud()
    reserved = cloud.model.reserve(POOL, 1)
    reserved.groups = ("arn:aws:resource-groups:us-east-1:123456789012:group/gpus",)
    answer = cloud.client.get_groups_for_capacity_reservation(CapacityReservationId=reserved.reservation_id)
    assert [each["GroupArn"] for each in answer["CapacityReservationGroups"]] == [*reserved.groups]
    with pytest.raises(ClientError, match=r"InvalidCapacityReservationId\.NotFound"):
        cloud.client.get_groups_for_capacity_reservation(CapacityReservationId="cr-0123456789abcdef0")


def test_an_unknown_id_fails_the_whole_listing() -> None:
    cloud = Ec2Cloud()
    with pytest.raises(ClientError, match=r"InvalidCapacityReservationId\.NotFound"):
        cloud.client.describe_capacity_reservations(CapacityReservationIds=["cr-0123456789abcdef0"])
