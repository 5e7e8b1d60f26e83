"""Do simulated fleets follow their targets as maintain fleets do?"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from argosy.emulator.ec2.service import LaunchObstacle
from tests.fakes.ec2_cloud import START, Ec2Cloud, fleet_request
from tests.fakes.ecs_clouds import refused


@pytest.fixture
def cloud() -> Ec2Cloud:
    return Ec2Cloud()


def test_a_fleet_launches_towards_its_target_and_instances_boot(cloud: Ec2Cloud) -> None:
    fleet = cloud.fleet("c5.2xlarge", spot=2, on_demand=1)
    assert cloud.alive(fleet) == []
    cloud.after(0)
    assert {each["State"]["Name"] for each in cloud.instances()} == {"pending"}
    cloud.after(30)
    assert [each["State"] for each in cloud.instances()] == [{"Code": 16, "Name": "running"}] * 3
    assert sorted(each.get("InstanceLifecycle", "none") for each in cloud.instances()) == ["none", "spot", "spot"]
    seen = cloud.describe(fleet)
    assert (seen["ActivityStatus"], seen["FleetState"]) == ("fulfilled", "active")
    assert (seen["FulfilledCapacity"], seen["FulfilledOnDemandCapacity"]) == (3.0, 1.0)


def test_a_fleet_launches_no_more_than_what_its_instances_run_on_has_room_for(cloud: Ec2Cloud) -> None:
    launched: list[str] = []
    full = "the machine is full"
    cloud.model.ledger.setup = replace(cloud.model.ledger.setup, why_not=lambda _: full if len(launched) >= 2 else "")
    cloud.model.on_launched.append(lambda instance: launched.append(instance.instance_id))
    fleet = cloud.fleet("c5.2xlarge", spot=3)
    cloud.after(0)
    assert sorted(cloud.alive(fleet)) == sorted(launched)
    assert len(launched) == 2
    assert cloud.describe(fleet)["ActivityStatus"] == "error"
    assert full in str(cloud.said("EC2 Fleet Error"))


def test_an_instance_says_where_it_comes_from(cloud: Ec2Cloud) -> None:
    cloud.model.add_launch_template("argosy-cpu", image_id="ami-1", tags={"argosy:stage": "main"})
    fleet = cloud.fleet("c5.2xlarge", "us-east-1b", spot=1)
    cloud.after(0)
    (instance,) = cloud.instances()
    assert instance["Placement"]["AvailabilityZone"] == "us-east-1b"
    assert (instance["InstanceType"], instance["ImageId"]) == ("c5.2xlarge", "ami-1")
    tags = {each["Key"]: each["Value"] for each in instance["Tags"]}
    assert (tags["argosy:stage"], tags["aws:ec2:fleet-id"]) == ("main", fleet)


def test_targets_are_absolute_and_repeating_one_changes_nothing(cloud: Ec2Cloud) -> None:
    fleet = cloud.fleet()
    for _ in range(3):
        cloud.target(fleet, spot=3)
        cloud.after(10)
    assert len(cloud.alive(fleet)) == 3
    assert cloud.describe(fleet)["TargetCapacitySpecification"]["SpotTargetCapacity"] == 3


def test_a_fleet_is_modifying_until_it_follows(cloud: Ec2Cloud) -> None:
    fleet = cloud.fleet()
    cloud.after(1)
    cloud.target(fleet, spot=1)
    assert cloud.describe(fleet)["FleetState"] == "modifying"
    assert cloud.describe(fleet)["ActivityStatus"] == "pending_fulfillment"
    cloud.after(1)
    assert cloud.describe(fleet)["FleetState"] == "active"
    assert [each["sub-type"] for each in cloud.said("EC2 Fleet State Change")] == [
        "submitted",
        "active",
        "modify_in_progress",
        "modify_succeeded",
    ]


def test_a_lost_member_is_replaced(cloud: Ec2Cloud) -> None:
    fleet = cloud.fleet(spot=2)
    cloud.after(60)
    first, second = cloud.alive(fleet)
    cloud.model.lose(first)
    cloud.after(60)
    assert second in cloud.alive(fleet)
    assert len(cloud.alive(fleet)) == 2
    assert first not in cloud.alive(fleet)


def test_lowering_without_termination_keeps_the_members_and_stops_the_refill(cloud: Ec2Cloud) -> None:
    """Target first, then terminate: the way D8 releases an idle instance."""
    fleet = cloud.fleet(spot=3)
    cloud.after(60)
    victim = cloud.alive(fleet)[1]
    cloud.target(fleet, spot=2, ExcessCapacityTerminationPolicy="no-termination")
    cloud.after(600)
    assert len(cloud.alive(fleet)) == 3
    cloud.client.terminate_instances(InstanceIds=[victim])
    cloud.after(600)
    assert len(cloud.alive(fleet)) == 2
    assert victim not in cloud.alive(fleet)


def test_terminating_before_lowering_makes_the_fleet_refill(cloud: Ec2Cloud) -> None:
    fleet = cloud.fleet(spot=1)
    cloud.after(60)
    cloud.client.terminate_instances(InstanceIds=cloud.alive(fleet))
    cloud.after(60)
    assert len(cloud.alive(fleet)) == 1


def test_lowering_with_termination_warns_spot_victims(cloud: Ec2Cloud) -> None:
    fleet = cloud.fleet(spot=3, on_demand=2)
    cloud.after(60)
    cloud.target(fleet, spot=1, on_demand=1, ExcessCapacityTerminationPolicy="termination")
    assert cloud.describe(fleet)["ActivityStatus"] == "pending_termination"
    cloud.after(1)
    assert len(cloud.said("EC2 Spot Instance Interruption Warning")) == 2
    assert len(cloud.alive(fleet)) == 4
    cloud.after(121)
    assert (len(cloud.alive(fleet)), cloud.describe(fleet)["ActivityStatus"]) == (2, "fulfilled")


def test_a_member_that_is_leaving_anyway_needs_no_further_victim(cloud: Ec2Cloud) -> None:
    fleet = cloud.fleet(spot=3)
    cloud.after(60)
    cloud.model.interrupt(cloud.alive(fleet)[0])
    cloud.target(fleet, spot=2, ExcessCapacityTerminationPolicy="termination")
    cloud.after(600)
    assert len(cloud.said("EC2 Spot Instance Interruption Warning")) == 1
    assert len(cloud.alive(fleet)) == 2


def test_a_new_target_is_tried_at_once_in_spite_of_an_earlier_shortage(cloud: Ec2Cloud) -> None:
    cloud.model.set_shortage("c5.large/us-east-1a", 0)
    fleet = cloud.fleet(spot=1)
    cloud.after(5)
    cloud.model.set_shortage("c5.large/us-east-1a", None)
    cloud.target(fleet, spot=2)
    cloud.after(1)
    assert len(cloud.alive(fleet)) == 2


def test_a_short_pool_delivers_what_it_has_says_so_and_is_tried_again(cloud: Ec2Cloud) -> None:
    cloud.model.set_shortage("c5.large/us-east-1a", 2)
    fleet = cloud.fleet(spot=3)
    cloud.after(59)
    assert (len(cloud.alive(fleet)), cloud.describe(fleet)["ActivityStatus"]) == (2, "error")
    errors = [each for each in cloud.events if each["detail-type"] == "EC2 Fleet Error"]
    assert [each["detail"]["sub-type"] for each in errors] == ["allLaunchSpecsTemporarilyBlacklisted"]
    assert errors[0]["resources"][0].endswith(f"fleet/{fleet}")
    cloud.model.set_shortage("c5.large/us-east-1a", None)
    cloud.after(2)
    assert (len(cloud.alive(fleet)), cloud.describe(fleet)["ActivityStatus"]) == (3, "fulfilled")


def test_a_fleet_with_an_obstacle_launches_nothing_says_why_and_continues_when_it_is_gone(cloud: Ec2Cloud) -> None:
    dead = LaunchObstacle("launchSpecUnusable", "The image id '[ami-1]' does not exist")
    cloud.model.set_obstacle("c5.large/us-east-1a", dead)
    fleet = cloud.fleet(spot=1, on_demand=1)
    cloud.after(5)
    assert cloud.alive(fleet) == []
    assert {each["description"] for each in cloud.said("EC2 Fleet Information")} == {dead.description}
    history = cloud.client.describe_fleet_history(FleetId=fleet, StartTime=START, EventType="service-error")
    assert history["HistoryRecords"][0]["EventInformation"]["EventSubType"] == "launchSpecUnusable"
    cloud.model.set_obstacle("c5.large/us-east-1a", None)
    cloud.after(60)
    assert len(cloud.alive(fleet)) == 2


def test_what_we_give_back_can_be_bought_again_but_not_what_was_reclaimed(cloud: Ec2Cloud) -> None:
    cloud.model.set_shortage("c5.large/us-east-1a", 2)
    fleet = cloud.fleet(spot=2)
    cloud.after(60)
    one, two = cloud.alive(fleet)
    cloud.client.terminate_instances(InstanceIds=[one])
    cloud.after(60)
    assert len(cloud.alive(fleet)) == 2
    cloud.model.interrupt(two, 5)
    cloud.after(600)
    assert len(cloud.alive(fleet)) == 1


def test_on_demand_has_its_own_shortage(cloud: Ec2Cloud) -> None:
    cloud.model.set_shortage("c5.large/us-east-1a", 0)
    cloud.model.set_shortage("c5.large/us-east-1b/on-demand", 0)
    assert cloud.fleet("c5.large", "us-east-1a", on_demand=1)
    assert cloud.fleet("c5.large", "us-east-1b", on_demand=1)
    cloud.after(10)
    assert [each["Placement"]["AvailabilityZone"] for each in cloud.instances()] == ["us-east-1a"]


def test_the_spot_quota_counts_vcpus_per_class(cloud: Ec2Cloud) -> None:
    cloud.model.set_spot_quota("P", 40)  # p3.8xlarge has 32 vCPUs, p3.2xlarge 8
    large, small = cloud.fleet("p3.8xlarge", spot=2), cloud.fleet("p3.2xlarge", spot=1)
    other = cloud.fleet("c5.9xlarge", spot=3)
    cloud.after(10)
    assert [len(cloud.alive(fleet)) for fleet in (large, small, other)] == [1, 1, 3]
    assert [each["sub-type"] for each in cloud.said("EC2 Fleet Error")] == ["spotInstanceCountLimitExceeded"]
    cloud.model.set_spot_quota("P", None)
    cloud.after(60)
    assert len(cloud.alive(large)) == 2


def test_of_several_pools_the_cheapest_that_can_deliver_is_taken() -> None:
    prices = {"us-east-1a": 0.03, "us-east-1b": 0.01, "us-east-1c": 0.02}
    cloud = Ec2Cloud(prices=lambda name, zone, at: prices[zone])
    cloud.model.set_shortage("c5.large/us-east-1b", 1)
    cloud.client.create_fleet(**fleet_request([("c5.large", zone) for zone in prices], spot=2))
    cloud.after(1)
    assert [each["Placement"]["AvailabilityZone"] for each in cloud.instances()] == ["us-east-1b", "us-east-1c"]


def test_unknown_fleets_are_not_found(cloud: Ec2Cloud) -> None:
    unknown = "fleet-00000000-0000-0000-0000-000000000000"
    with refused("InvalidFleetId.NotFound"):
        cloud.client.describe_fleets(FleetIds=[unknown])
    with refused("InvalidFleetId.NotFound"):
        cloud.target(unknown, spot=1)
    with refused("InvalidFleetId.NotFound"):
        cloud.client.describe_fleet_instances(FleetId=unknown)
    reply = cloud.client.delete_fleets(FleetIds=[unknown], TerminateInstances=True)
    assert reply["UnsuccessfulFleetDeletions"][0]["Error"]["Code"] == "fleetIdDoesNotExist"


def test_fleets_are_found_by_state_but_not_by_tag(cloud: Ec2Cloud) -> None:
    tags = [{"ResourceType": "fleet", "Tags": [{"Key": "argosy:pool", "Value": "c5.large/us-east-1a"}]}]
    one, two = cloud.fleet(TagSpecifications=tags), cloud.fleet()
    cloud.after(1)
    cloud.client.delete_fleets(FleetIds=[two], TerminateInstances=True)
    live = cloud.client.describe_fleets(Filters=[{"Name": "fleet-state", "Values": ["active"]}])["Fleets"]
    assert [each["FleetId"] for each in live] == [one]
    assert live[0]["Tags"] == [{"Key": "argosy:pool", "Value": "c5.large/us-east-1a"}]
    with refused("InvalidParameterValue", "tag:argosy:pool"):
        cloud.client.describe_fleets(Filters=[{"Name": "tag:argosy:pool", "Values": ["x"]}])


def test_a_deleted_fleet_takes_its_instances_with_it_or_leaves_them(cloud: Ec2Cloud) -> None:
    ended, left = cloud.fleet(spot=2), cloud.fleet(spot=1)
    cloud.after(60)
    reply = cloud.client.delete_fleets(FleetIds=[ended], TerminateInstances=True)
    assert reply["SuccessfulFleetDeletions"][0]["CurrentFleetState"] == "deleted_terminating"
    cloud.client.delete_fleets(FleetIds=[left, left], TerminateInstances=False)
    cloud.after(60)
    assert cloud.describe(ended)["FleetState"] == "deleted"
    assert (cloud.describe(left)["FleetState"], len(cloud.alive(left))) == ("deleted_running", 1)
    with refused("FleetNotInModifiableState"):
        cloud.target(left, spot=1)
    assert cloud.client.delete_fleets(FleetIds=[ended], TerminateInstances=True)["SuccessfulFleetDeletions"]


def test_the_history_matches_the_events(cloud: Ec2Cloud) -> None:
    cloud.model.set_shortage("c5.large/us-east-1a", 1)
    fleet = cloud.fleet(spot=2)
    cloud.after(40)
    cloud.client.terminate_instances(InstanceIds=cloud.alive(fleet))
    cloud.after(10)
    reply = cloud.client.describe_fleet_history(FleetId=fleet, StartTime=START)
    told = [(each["EventType"], each["EventInformation"]["EventSubType"]) for each in reply["HistoryRecords"]]
    assert told == [
        ("fleet-change", "submitted"),
        ("fleet-change", "active"),
        ("instance-change", "launched"),
        ("service-error", "allLaunchSpecsTemporarilyBlacklisted"),
        ("instance-change", "terminated"),
    ]
    errors = cloud.client.describe_fleet_history(FleetId=fleet, StartTime=START, EventType="service-error")
    assert len(errors["HistoryRecords"]) == 1
    later = cloud.client.describe_fleet_history(FleetId=fleet, StartTime=START + 45)
    assert later["HistoryRecords"] == []


def test_a_fleet_event_describes_its_instance_in_json_inside_a_string(cloud: Ec2Cloud) -> None:
    cloud.fleet("p3.2xlarge", "us-east-1c", spot=1)
    cloud.after(1)
    (detail,) = cloud.said("EC2 Fleet Instance Change")
    described = json.loads(detail["description"])
    assert (described["instanceType"], described["availabilityZone"]) == ("p3.2xlarge", "us-east-1c")
    assert detail["sub-type"] == "launched"
