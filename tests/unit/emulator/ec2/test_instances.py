"""Do simulated instances, their tags, prices and types behave as on EC2?"""

from __future__ import annotations

from typing import Any

import pytest

from argosy.emulator.ec2.fleet_targets import spot_class
from argosy.messages.eventbridge import to_event
from argosy.model.events import HostStateChanged, InterruptionWarned, RebalanceAdvised
from tests.fakes.ec2_cloud import NAMED, START, ZONES, Ec2Cloud
from tests.fakes.ecs_clouds import refused


@pytest.fixture
def cloud() -> Ec2Cloud:
    return Ec2Cloud()


def running(cloud: Ec2Cloud, **targets: int) -> list[str]:
    """Ids of running instances of one fleet."""
    fleet = cloud.fleet(**(targets or {"spot": 1}))
    cloud.after(60)
    return cloud.alive(fleet)


def state(cloud: Ec2Cloud, instance_id: str) -> str:
    return str(cloud.instances(InstanceIds=[instance_id])[0]["State"]["Name"])


# --- life and death ------------------------------------------------------------------------------------------------


def test_an_interruption_is_warned_of_and_comes_after_the_notice(cloud: Ec2Cloud) -> None:
    (instance,) = running(cloud)
    cloud.model.interrupt(instance)
    cloud.model.interrupt(instance)
    assert cloud.said("EC2 Spot Instance Interruption Warning") == [
        {"instance-id": instance, "instance-action": "terminate"}
    ]
    cloud.after(119)
    assert state(cloud, instance) == "running"
    cloud.after(1)
    assert state(cloud, instance) == "shutting-down"
    cloud.after(1)
    ended = cloud.instances(InstanceIds=[instance])[0]
    assert (ended["State"]["Name"], ended["StateReason"]["Code"]) == ("terminated", "Server.SpotInstanceTermination")
    cloud.model.interrupt(instance)
    assert len(cloud.said("EC2 Spot Instance Interruption Warning")) == 1


def test_on_demand_is_not_interrupted(cloud: Ec2Cloud) -> None:
    (instance,) = running(cloud, on_demand=1)
    with pytest.raises(ValueError, match="on-demand"):
        cloud.model.interrupt(instance)


def test_a_rebalance_recommendation_is_only_advice(cloud: Ec2Cloud) -> None:
    (instance,) = running(cloud)
    cloud.model.recommend_rebalance(instance)
    cloud.after(600)
    assert cloud.said("EC2 Instance Rebalance Recommendation") == [{"instance-id": instance}]
    assert state(cloud, instance) == "running"


def test_callbacks_come_when_an_instance_runs_and_when_it_is_gone(cloud: Ec2Cloud) -> None:
    heard: list[tuple[str, str]] = []
    cloud.model.on_running.append(lambda each: heard.append(("running", each.instance_id)))
    cloud.model.on_terminated.append(lambda each: heard.append(("terminated", each.instance_id)))
    (instance,) = running(cloud)
    cloud.model.lose(instance)
    cloud.after(1)
    assert heard == [("running", instance), ("terminated", instance)]


def test_an_instance_terminated_while_pending_never_runs(cloud: Ec2Cloud) -> None:
    fleet = cloud.fleet(spot=1)
    cloud.after(0)
    (instance,) = cloud.alive(fleet)
    cloud.client.terminate_instances(InstanceIds=[instance])
    cloud.after(40)
    own = [e["state"] for e in cloud.said("EC2 Instance State-change Notification") if e["instance-id"] == instance]
    assert own == ["pending", "shutting-down", "terminated"]


def test_termination_is_all_or_nothing_and_harmless_to_repeat(cloud: Ec2Cloud) -> None:
    one, two = running(cloud, spot=2)
    with refused("InvalidInstanceID.NotFound", "i-0badbadbadbadbad0"):
        cloud.client.terminate_instances(InstanceIds=[one, "i-0badbadbadbadbad0"])
    with refused("InvalidInstanceID.NotFound", "do not exist"):
        cloud.client.terminate_instances(InstanceIds=["i-0badbadbadbadbad0", "i-0badbadbadbadbad1"])
    with refused("InvalidInstanceID.Malformed"):
        cloud.client.terminate_instances(InstanceIds=["web-1"])
    assert state(cloud, one) == "running"
    for before in ("running", "shutting-down"):
        (change,) = cloud.client.terminate_instances(InstanceIds=[one])["TerminatingInstances"]
        assert (change["PreviousState"]["Name"], change["CurrentState"]["Name"]) == (before, "shutting-down")
    assert state(cloud, two) == "running"


def test_a_thousand_instances_end_at_once_and_no_more(cloud: Ec2Cloud) -> None:
    running(cloud, spot=1_001)
    pages = cloud.client.get_paginator("describe_instances").paginate()
    ids = [each["Instances"][0]["InstanceId"] for page in pages for each in page["Reservations"]]
    with refused("InvalidParameterValue", "1000"):
        cloud.client.terminate_instances(InstanceIds=ids)
    assert len(cloud.client.terminate_instances(InstanceIds=ids[:1_000])["TerminatingInstances"]) == 1_000


def test_a_terminated_instance_is_visible_for_an_hour(cloud: Ec2Cloud) -> None:
    (instance,) = running(cloud)
    cloud.client.terminate_instances(InstanceIds=[instance])
    cloud.after(3600)
    assert state(cloud, instance) == "terminated"
    cloud.after(1)
    with refused("InvalidInstanceID.NotFound"):
        cloud.instances(InstanceIds=[instance])


def test_our_own_parsers_read_the_events(cloud: Ec2Cloud) -> None:
    (instance,) = running(cloud)
    cloud.model.recommend_rebalance(instance)
    cloud.model.interrupt(instance)
    facts = [to_event(message) for message in cloud.events]
    assert HostStateChanged(instance, "running", START + 30) in facts
    assert RebalanceAdvised(instance, START + 60) in facts
    assert InterruptionWarned(instance, START + 60) in facts


# --- describing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("instance-state-name", ["running"], 3),
        ("instance-state-name", ["pending", "terminated"], 0),
        ("instance-lifecycle", ["spot"], 2),
        ("instance-type", ["c5.*"], 3),
        ("instance-type", ["c5.?large"], 0),
        ("availability-zone", ["us-east-1a"], 3),
        ("tag:aws:ec2:fleet-id", ["fleet-*"], 3),
        ("tag:argosy:stage", ["main"], 1),
        ("tag-key", ["argosy:*"], 1),
    ],
)
def test_instances_are_filtered(cloud: Ec2Cloud, name: str, values: list[str], expected: int) -> None:
    first, *_ = running(cloud, spot=2, on_demand=1)
    cloud.client.create_tags(Resources=[first], Tags=[{"Key": "argosy:stage", "Value": "main"}])
    assert len(cloud.instances(Filters=[{"Name": name, "Values": values}])) == expected


def test_filters_must_all_hold_and_be_known(cloud: Ec2Cloud) -> None:
    running(cloud, spot=1, on_demand=1)
    spot, zone = (
        {"Name": "instance-lifecycle", "Values": ["spot"]},
        {"Name": "availability-zone", "Values": ["nowhere"]},
    )
    assert cloud.instances(Filters=[spot, zone]) == []
    with refused("InvalidParameterValue", "colour"):
        cloud.instances(Filters=[{"Name": "colour", "Values": ["red"]}])


def test_instances_are_paged(cloud: Ec2Cloud) -> None:
    ids = running(cloud, spot=12)
    pages = list(cloud.client.get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 5}))
    assert [len(page["Reservations"]) for page in pages] == [5, 5, 2]
    assert sorted(r["Instances"][0]["InstanceId"] for page in pages for r in page["Reservations"]) == sorted(ids)
    with refused("InvalidParameterValue", "5 to 1000"):
        cloud.instances(MaxResults=4)
    with refused("InvalidParameterCombination"):
        cloud.instances(InstanceIds=ids[:1], MaxResults=5)
    with refused("InvalidNextToken"):
        cloud.instances(NextToken="nonsense")


# --- tags ----------------------------------------------------------------------------------------------------------


def test_tags_of_instances_and_fleets_are_added_and_described(cloud: Ec2Cloud) -> None:
    fleet = cloud.fleet(spot=1)
    cloud.after(1)
    (instance,) = cloud.alive(fleet)
    cloud.client.create_tags(Resources=[instance, fleet], Tags=[{"Key": "a", "Value": "b"}])
    by_key = [{"Name": "key", "Values": ["a"]}]
    rows = cloud.client.describe_tags(Filters=by_key)["Tags"]
    assert {(row["ResourceId"], row["ResourceType"], row["Value"]) for row in rows} == {
        (instance, "instance", "b"),
        (fleet, "fleet", "b"),
    }
    fleets_only = [{"Name": "tag:a", "Values": ["b"]}, {"Name": "resource-type", "Values": ["fleet"]}]
    assert [row["ResourceId"] for row in cloud.client.describe_tags(Filters=fleets_only)["Tags"]] == [fleet]


def test_bad_tags_are_refused(cloud: Ec2Cloud) -> None:
    (instance,) = running(cloud)
    with refused("InvalidParameterValue", "aws:"):
        cloud.client.create_tags(Resources=[instance], Tags=[{"Key": "aws:x", "Value": ""}])
    many = [{"Key": str(number), "Value": ""} for number in range(51)]
    with refused("TagLimitExceeded"):
        cloud.client.create_tags(Resources=[instance], Tags=many)
    with refused("InvalidInstanceID.NotFound"):
        cloud.client.create_tags(Resources=[instance, "i-0badbadbadbadbad0"], Tags=many[:1])
    assert all(tag["Key"] != "0" for tag in cloud.instances()[0]["Tags"])


# --- market --------------------------------------------------------------------------------------------------------


def test_the_price_history_is_a_change_log_with_the_price_in_force_at_its_start() -> None:
    cloud = Ec2Cloud(prices=lambda name, zone, at: 0.5 if at >= START else 0.25)
    cloud.now = START + 100
    asked = {"InstanceTypes": ["p3.2xlarge"], "AvailabilityZone": "us-east-1a", "ProductDescriptions": ["Linux/UNIX"]}
    now = cloud.client.describe_spot_price_history(**asked)["SpotPriceHistory"]
    assert [(row["SpotPrice"], row["AvailabilityZone"]) for row in now] == [("0.500000", "us-east-1a")]
    since = cloud.client.describe_spot_price_history(**asked, StartTime=START - 3_000)["SpotPriceHistory"]
    assert [row["SpotPrice"] for row in since] == ["0.500000", "0.250000"]
    assert since[-1]["Timestamp"].timestamp() <= START - 3_000
    until = cloud.client.describe_spot_price_history(**asked, StartTime=START - 3_000, EndTime=START - 1)
    assert [row["SpotPrice"] for row in until["SpotPriceHistory"]] == ["0.250000"]


def test_prices_come_for_every_pool_asked_for(cloud: Ec2Cloud) -> None:
    types = {"Name": "instance-type", "Values": ["c5.*"]}
    pages = cloud.client.get_paginator("describe_spot_price_history").paginate(Filters=[types])
    rows = [row for page in pages for row in page["SpotPriceHistory"]]
    assert len(rows) == 3 * len(ZONES)
    assert {float(row["SpotPrice"]) for row in rows if row["InstanceType"] == "c5.large"} == {
        NAMED["c5.large"].typical_spot_usd_per_hour
    }
    unknown: dict[str, Any] = {"InstanceTypes": ["c5.huge"]}
    assert cloud.client.describe_spot_price_history(**unknown)["SpotPriceHistory"] == []
    windows = cloud.client.describe_spot_price_history(ProductDescriptions=["Windows"])
    assert windows["SpotPriceHistory"] == []


def test_types_are_described_with_their_gpus(cloud: Ec2Cloud) -> None:
    (p3,) = cloud.client.describe_instance_types(InstanceTypes=["p3.8xlarge"])["InstanceTypes"]
    assert (p3["VCpuInfo"]["DefaultVCpus"], p3["MemoryInfo"]["SizeInMiB"]) == (32, 244 * 1024)
    assert p3["GpuInfo"]["Gpus"][0]["Count"] == 4
    assert len(cloud.client.describe_instance_types()["InstanceTypes"]) == len(NAMED)
    with refused("InvalidInstanceType", "c5.huge"):
        cloud.client.describe_instance_types(InstanceTypes=["c5.large", "c5.huge"])
    with refused("InvalidParameterValue"):
        cloud.client.describe_instance_types(InstanceTypes=["c5.large"] * 101)


def test_offerings_by_region_and_by_zone(cloud: Ec2Cloud) -> None:
    by_type = [{"Name": "instance-type", "Values": ["c5.large"]}]
    region = cloud.client.describe_instance_type_offerings(Filters=by_type)["InstanceTypeOfferings"]
    assert region == [{"InstanceType": "c5.large", "LocationType": "region", "Location": "us-east-1"}]
    zones = cloud.client.describe_instance_type_offerings(LocationType="availability-zone", Filters=by_type)
    assert [row["Location"] for row in zones["InstanceTypeOfferings"]] == list(ZONES)


def test_zones_are_described(cloud: Ec2Cloud) -> None:
    described = cloud.client.describe_availability_zones()["AvailabilityZones"]
    assert [row["ZoneName"] for row in described] == list(ZONES)
    assert len({row["ZoneId"] for row in described}) == 3
    one = cloud.client.describe_availability_zones(ZoneNames=["us-east-1b"])["AvailabilityZones"]
    assert [row["ZoneName"] for row in one] == ["us-east-1b"]
    with refused("InvalidParameterValue"):
        cloud.client.describe_availability_zones(ZoneNames=["us-east-la"])


@pytest.mark.parametrize(
    ("instance_type", "expected"),
    [
        ("c5.large", "Standard"),
        ("p3.2xlarge", "P"),
        ("p5en.48xlarge", "P5"),
        ("g5.xlarge", "G and VT"),
        ("vt1.3xlarge", "G and VT"),
        ("inf2.xlarge", "Inf"),
        ("trn1.2xlarge", "Trn"),
        ("dl1.24xlarge", "DL"),
        ("i3.large", "Standard"),
        ("x2idn.16xlarge", "X"),
        ("f2.6xlarge", "F"),
    ],
)
def test_quota_classes(instance_type: str, expected: str) -> None:
    assert spot_class(instance_type) == expected
