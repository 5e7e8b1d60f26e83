"""Watchdog and teardown against small fakes of EC2, ECS, DynamoDB, EventBridge and S3: what ends, and what survives."""

# ruff: noqa: N803 - the fakes take boto3's own argument names

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from argosy.aws import cell_records, teardown, watchdog
from argosy.aws.dynamodb import DynamoStore
from argosy.aws.shutdown import TEMPLATE_TAG, ec2_client, free
from tests.fakes.aws import refusal
from tests.fakes.ending import (
    NOW,
    FakeEc2,
    FakeTable,
    Unreachable,
    beaten_at,
    busy_ec2,
    never_beaten,
    tags,
    target,
)


def test_ours_are_ended_and_strangers_survive() -> None:
    ec2 = busy_ec2()
    result = free(ec2, "main")
    assert sorted(result.terminated) == ["i-1", "i-2", "i-orphan"]
    assert result.foreign == ["i-foreign"]
    assert (target(ec2, "fleet-1"), target(ec2, "fleet-dev")) == (0, 5)
    assert ec2.instances["i-dev"]["State"]["Name"] == "running"


def test_the_fleets_are_lowered_before_anything_is_ended_or_they_would_refill() -> None:
    ec2 = busy_ec2()
    free(ec2, "main")
    assert ec2.calls[0] == "modify fleet-1"
    assert ec2.calls[1].startswith("terminate")


def test_the_next_pass_is_clean_once_all_are_gone() -> None:
    ec2 = busy_ec2()
    assert not free(ec2, "main").clean
    assert not free(ec2, "main").clean  # still shutting down
    ec2.settle()
    assert free(ec2, "main").clean


def test_one_fleet_and_one_instance_that_refuse_do_not_save_the_others() -> None:
    ec2 = busy_ec2()
    ec2.refuses = {"fleet-1", "i-1"}
    result = free(ec2, "main")
    assert sorted(result.terminated) == ["i-2", "i-orphan"]
    assert len(result.problems) == 2
    assert not result.clean


@pytest.mark.parametrize("state", ["submitted", "active", "modifying"])
def test_a_fleet_that_can_launch_is_lowered_even_while_it_is_being_changed(state: str) -> None:
    ec2 = FakeEc2()
    ec2.add_fleet("fleet-1", target=3, state=state)
    free(ec2, "main")
    assert target(ec2, "fleet-1") == 0


def test_a_deleted_fleet_is_left_alone() -> None:
    ec2 = FakeEc2()
    ec2.add_fleet("fleet-1", target=3, state="deleted_running")
    assert free(ec2, "main").clean
    assert ec2.calls == []


# --- watchdog ---------------------------------------------------------------------------------------------------------


def look(table: FakeTable, **regions: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    said: list[dict[str, Any]] = []
    records = cell_records.read(table, "t")
    assert records is not None
    answer = watchdog.look(now=NOW, alive_at=records.heartbeat, ec2=regions, stage="main", say=said.append)
    return answer, said


def test_a_living_controller_is_left_in_peace() -> None:
    ec2 = busy_ec2()
    answer, said = look(beaten_at(NOW - watchdog.DEAD_AFTER_S), home=ec2)
    assert answer == {"acted": False, "silentSeconds": 3600}
    assert (said, ec2.calls) == ([], [])


def test_a_controller_that_is_between_two_invocations_is_left_in_peace() -> None:
    table = beaten_at(NOW - 60)
    del table.items["LEASE"]  # given back at the end of the time of the one before
    ec2 = busy_ec2()
    assert not look(table, home=ec2)[0]["acted"]
    assert ec2.calls == []


def test_before_the_first_tick_is_through_silence_counts_from_the_oldest_instance_of_any_cell() -> None:
    young, away = FakeEc2(templates={"lt-ours": "main"}), FakeEc2(templates={"lt-ours": "main"})
    ours = {"argosy:stage": "main", TEMPLATE_TAG: "lt-ours"}
    young.add_instance("i-1", age_s=600.0, **ours)
    young.add_instance("i-strange", age_s=1e6, **{"argosy:stage": "main"})  # whose age is nobody's business
    answer, _ = look(never_beaten(), home=young, away=away)
    assert answer == {"acted": False, "silentSeconds": 600}
    away.add_instance("i-2", age_s=watchdog.DEAD_AFTER_S + 1, **ours)
    assert look(never_beaten(), home=young, away=away)[0] == {"acted": True, "freed": 2}


def test_a_cell_that_cannot_be_reached_is_told_when_nothing_old_is_seen_elsewhere() -> None:
    ec2 = FakeEc2()
    ec2.add_fleet("fleet-1", target=2)
    with pytest.raises(watchdog.WatchdogFailed, match="away: Could not connect"):
        look(never_beaten(), home=ec2, away=Unreachable())
    assert ec2.calls == []


@pytest.mark.parametrize("table", [beaten_at(NOW - watchdog.DEAD_AFTER_S - 1), never_beaten()], ids=["old", "never"])
def test_instances_of_a_dead_controller_are_ended_in_every_cell(table: FakeTable) -> None:
    home, away = busy_ec2(), busy_ec2()
    answer, said = look(table, home=home, away=away)
    assert answer == {"acted": True, "freed": 6}
    assert [record["region"] for record in said] == ["home", "away"]
    assert said[0]["InstancesFreedByWatchdog"] == 3
    assert said[0]["foreign"] == ["i-foreign"]


def test_at_rest_the_watchdog_finds_nothing_to_do_and_says_nothing() -> None:
    assert look(never_beaten(), home=FakeEc2()) == ({"acted": False, "silentSeconds": 0}, [])
    assert look(beaten_at(NOW - 1e6), home=FakeEc2()) == ({"acted": False, "freed": 0}, [])


def test_a_cell_that_cannot_be_reached_is_told_after_the_others_were_freed() -> None:
    away = busy_ec2()
    with pytest.raises(watchdog.WatchdogFailed, match=r"home: Could not connect"):
        look(FakeTable(), home=Unreachable(), away=away)
    assert target(away, "fleet-1") == 0


def test_an_instance_that_refuses_is_told() -> None:
    ec2 = busy_ec2()
    ec2.refuses = {"i-1"}
    with pytest.raises(watchdog.WatchdogFailed, match="i-1"):
        look(FakeTable(), home=ec2)


def look_at_cell(table: FakeTable, ec2: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    said: list[dict[str, Any]] = []
    records = cell_records.read(table, "t")
    answer = watchdog.look_at_cell("eu-west-1", records, now=NOW, ec2=ec2, stage="main", say=said.append)
    return answer, said


def test_a_cell_that_home_names_and_works_with_is_left_in_peace() -> None:
    ec2 = busy_ec2()
    assert not look_at_cell(beaten_at(NOW - 60).open("us-east-1", "eu-west-1"), ec2)[0]["acted"]
    assert ec2.calls == []


def closed() -> FakeTable:
    table = beaten_at(NOW - 60)
    table.close("eu-west-1", cell_records.LEFT_OUT)
    return table


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (FakeTable(gone=True), "home's table is gone"),
        (beaten_at(NOW - 60).open("us-east-1"), "home does not know this cell"),
        (closed(), f"the cell is closed: {cell_records.LEFT_OUT}"),
        (beaten_at(NOW - watchdog.DEAD_AFTER_S - 1).open("eu-west-1"), watchdog.DEAD),
    ],
    ids=["no-home", "unknown", "closed", "dead-controller"],
)
def test_a_cell_that_is_nobodys_is_freed_by_its_own_watchdog(table: FakeTable, why: str) -> None:
    ec2 = busy_ec2()
    answer, (said,) = look_at_cell(table, ec2)
    assert answer == {"acted": True, "freed": 3}
    assert (said["region"], said["message"]) == ("eu-west-1", why)
    assert target(ec2, "fleet-1") == 0


def test_a_table_that_cannot_be_read_proves_nothing() -> None:
    class Denied(FakeTable):
        def query(self, TableName: str, ConsistentRead: bool, **condition: Any) -> dict[str, Any]:
            raise refusal("AccessDeniedException")

    ec2 = busy_ec2()
    with pytest.raises(ClientError, match="AccessDenied"):
        look_at_cell(Denied(), ec2)
    assert ec2.calls == []


# --- teardown ---------------------------------------------------------------------------------------------------------


@dataclass
class FakeEcs:
    registered: list[str] = field(default_factory=list)
    error: Exception | None = None

    def list_container_instances(self, cluster: str) -> dict[str, Any]:
        if self.error:
            raise self.error
        return {"containerInstanceArns": list(self.registered)}

    def deregister_container_instance(self, cluster: str, containerInstance: str, force: bool) -> None:
        assert force
        self.registered.remove(containerInstance)


@dataclass
class FakeEvents:
    disabled: list[str] = field(default_factory=list)
    gone: bool = False

    def disable_rule(self, Name: str) -> None:
        if self.gone:
            raise refusal("ResourceNotFoundException")
        self.disabled.append(Name)


@dataclass
class FakeS3:
    keys: list[str] = field(default_factory=list)
    gone: bool = False

    def list_object_versions(self, Bucket: str, MaxKeys: int) -> dict[str, Any]:
        if self.gone:
            raise refusal("NoSuchBucket")
        return {"Versions": [{"Key": key, "VersionId": "null"} for key in self.keys[:2]]}

    def delete_objects(self, Bucket: str, Delete: dict[str, Any]) -> None:
        for entry in Delete["Objects"]:
            self.keys.remove(entry["Key"])


class Regions(dict[str, Any]):
    """Makes the EC2 client of a Region, as the teardown does. home: that of us-east-1."""

    def __init__(self, home: Any, **others: Any) -> None:
        super().__init__({"us-east-1": home, **{name.replace("_", "-"): ec2 for name, ec2 in others.items()}})

    def __call__(self, region: str) -> Any:
        return self[region]


def cell(**changes: Any) -> teardown.DeployedCell:
    return replace(
        teardown.DeployedCell(
            stage="main",
            region="us-east-1",
            home="us-east-1",
            cluster="argosy",
            table="argosy-state",
            tick_rule="argosy-tick",
            empty_bucket=None,
            ec2=Regions(home=busy_ec2()),
            ecs=FakeEcs(),
            dynamodb=FakeTable(),
            events=FakeEvents(),
            s3=FakeS3(),
        ),
        **changes,
    )


def deleting(killed_at: float = NOW) -> dict[str, Any]:
    return {"RequestType": "Delete", "Data": {"KilledAt": str(killed_at)}}


def done(
    there: teardown.DeployedCell, now: float, *, deadline: float = 1.0, clock: Callable[[], float] = lambda: 0.0
) -> bool:
    return teardown.answer(deleting(), there, now, deadline=deadline, clock=clock)["IsComplete"]


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_creating_and_updating_touch_nothing(request_type: str) -> None:
    there, event = cell(), {"RequestType": request_type}
    assert teardown.begin(event, there, NOW) == {"PhysicalResourceId": "teardown-main-us-east-1"}
    assert teardown.complete(event, there, NOW, deadline=0.0, clock=lambda: 0.0)
    assert (there.dynamodb.items, there.events.disabled, there.ec2("us-east-1").calls) == ({}, [], [])


def test_deleting_throws_the_kill_switch_and_turns_the_tick_off() -> None:
    there = cell()
    answer = teardown.begin({"RequestType": "Delete"}, there, NOW)
    assert answer == {"PhysicalResourceId": "teardown-main-us-east-1", "Data": {"KilledAt": str(NOW)}}
    assert "destroyed" in there.dynamodb.items["KILL"]["reason"]["S"]
    assert there.events.disabled == ["argosy-tick"]


def test_a_table_and_a_rule_that_are_gone_already_do_not_stop_it() -> None:
    there = cell(dynamodb=FakeTable(gone=True), events=FakeEvents(gone=True))
    assert "Data" in teardown.begin({"RequestType": "Delete"}, there, NOW)


def test_another_fault_of_aws_fails_the_deletion_at_its_start() -> None:
    class Refusing(FakeEvents):
        def disable_rule(self, Name: str) -> None:
            raise refusal("AccessDeniedException")

    with pytest.raises(ClientError, match="AccessDenied"):
        teardown.begin({"RequestType": "Delete"}, cell(events=Refusing()), NOW)


def test_it_is_through_only_when_nothing_is_left_and_the_controller_had_time_to_notice() -> None:
    there = cell(ecs=FakeEcs(["arn:1", "arn:2"]))
    assert not done(there, NOW)
    there.ec2("us-east-1").settle()
    assert there.ecs.registered == []
    assert not done(there, NOW + teardown.QUIET_S - 1)
    there.ec2("us-east-1").fleets["fleet-1"]["TargetCapacitySpecification"] = {
        "TotalTargetCapacity": 1
    }  # a late controller
    assert not done(there, NOW + teardown.QUIET_S)
    assert target(there.ec2("us-east-1"), "fleet-1") == 0
    assert done(there, NOW + teardown.QUIET_S)


def test_a_registered_container_instance_holds_it_up_for_one_more_look() -> None:
    there = cell(ec2=Regions(FakeEc2()), ecs=FakeEcs(["arn:1"]))
    assert not done(there, NOW + teardown.QUIET_S)
    assert done(there, NOW + teardown.QUIET_S)


def test_a_problem_is_printed_and_holds_it_up(capsys: pytest.CaptureFixture[str]) -> None:
    ec2 = busy_ec2()
    ec2.refuses = {"i-1"}
    assert not done(cell(ec2=Regions(ec2)), NOW + teardown.QUIET_S)
    assert "i-1" in capsys.readouterr().out


def test_a_cluster_that_is_gone_is_empty() -> None:
    there = cell(ec2=Regions(FakeEc2()), ecs=FakeEcs(error=refusal("ClusterNotFoundException")))
    assert done(there, NOW + teardown.QUIET_S)


@pytest.mark.parametrize(
    ("fault", "said"),
    [({"ec2": Regions(Unreachable())}, "us-east-1 cannot be"), ({"ecs": FakeEcs(error=refusal("Down"))}, "not yet")],
    ids=["ec2", "ecs"],
)
def test_a_fault_of_aws_means_not_yet(fault: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The provider framework takes an exception for the end of the deletion."""
    assert not done(cell(**{"ec2": Regions(FakeEc2()), **fault}), NOW + teardown.QUIET_S)
    assert said in capsys.readouterr().out


def test_a_bucket_that_goes_too_is_emptied_page_by_page() -> None:
    there = cell(ec2=Regions(FakeEc2()), empty_bucket="results", s3=FakeS3(["a", "b", "c"]))
    assert done(there, NOW + teardown.QUIET_S)
    assert there.s3.keys == []


def test_emptying_stops_before_the_functions_time_is_up_and_goes_on_next_time() -> None:
    ticks = iter([0.0, 2.0])
    there = cell(ec2=Regions(FakeEc2()), empty_bucket="results", s3=FakeS3(["a", "b", "c"]))
    assert not done(there, NOW + teardown.QUIET_S, clock=lambda: next(ticks))
    assert there.s3.keys == ["c"]
    assert done(there, NOW + teardown.QUIET_S)


def test_a_bucket_that_is_gone_is_empty() -> None:
    assert done(cell(ec2=Regions(FakeEc2()), empty_bucket="results", s3=FakeS3(gone=True)), NOW + teardown.QUIET_S)


def away(table: FakeTable, ec2: FakeEc2 | None = None) -> teardown.DeployedCell:
    return cell(region="eu-west-1", ec2=Regions(Unreachable(), eu_west_1=ec2 or FakeEc2()), dynamodb=table)


def test_a_further_cell_closes_itself_alone_and_stays_closed_when_it_is_through() -> None:
    there = away(FakeTable().open("us-east-1", "eu-west-1"), busy_ec2())
    teardown.begin({"RequestType": "Delete"}, there, NOW)
    assert there.dynamodb.cells() == {"us-east-1": None, "eu-west-1": there.reason}
    assert not done(there, NOW + teardown.QUIET_S)
    there.ec2("eu-west-1").settle()
    assert done(there, NOW + teardown.QUIET_S)
    assert there.dynamodb.cells() == {"us-east-1": None, "eu-west-1": cell_records.DESTROYED}
    assert "KILL" not in there.dynamodb.items  # a cell that cannot be emptied must not stop the others
    assert there.events.disabled == []


def test_a_cell_that_is_created_again_is_opened() -> None:
    table = FakeTable()
    table.close("eu-west-1", cell_records.DESTROYED)
    teardown.begin({"RequestType": "Create"}, away(table), NOW)
    assert table.cells() == {"eu-west-1": None}
    table.close("eu-west-1", cell_records.LEFT_OUT)
    teardown.begin({"RequestType": "Update"}, away(table), NOW)
    assert table.cells() == {"eu-west-1": cell_records.LEFT_OUT}


def test_the_end_of_home_frees_every_recorded_cell_too() -> None:
    """Nobody would steer their fleets any more: the table and the controller go next."""
    left_out = busy_ec2()
    there = cell(dynamodb=FakeTable().open("us-east-1"), ec2=Regions(FakeEc2(), eu_west_1=left_out))
    there.dynamodb.close("eu-west-1", cell_records.LEFT_OUT)
    assert not done(there, NOW + teardown.QUIET_S)
    assert target(left_out, "fleet-1") == 0
    left_out.settle()
    assert done(there, NOW + teardown.QUIET_S)


def test_a_region_that_is_out_of_reach_keeps_no_other_from_being_freed(capsys: pytest.CaptureFixture[str]) -> None:
    """It comes first in the alphabet, and after home in the records."""
    home, last = busy_ec2(), busy_ec2()
    there = cell(
        dynamodb=FakeTable().open("us-east-1", "ap-east-1", "eu-west-1"),
        ec2=Regions(home, ap_east_1=Unreachable(), eu_west_1=last),
        ecs=FakeEcs(["arn:1"]),
    )
    assert not done(there, NOW + teardown.QUIET_S)
    assert (target(home, "fleet-1"), target(last, "fleet-1"), there.ecs.registered) == (0, 0, [])
    home.settle()
    last.settle()
    assert not done(there, NOW + teardown.QUIET_S)  # what runs out there would go on for ever
    assert "ap-east-1 cannot be looked at" in capsys.readouterr().out
    there.dynamodb.close("ap-east-1", cell_records.DESTROYED)
    assert done(there, NOW + teardown.QUIET_S)


def test_what_a_destroyed_cell_still_has_is_freed_while_its_region_answers() -> None:
    left = busy_ec2()
    there = cell(ec2=Regions(FakeEc2(), eu_west_1=left))
    there.dynamodb.close("eu-west-1", cell_records.DESTROYED)
    assert not done(there, NOW + teardown.QUIET_S)
    assert target(left, "fleet-1") == 0


def test_a_region_that_does_not_answer_leaves_the_functions_time_for_the_others() -> None:
    """The watchdog and the guard have 300 s. botocore waits at most 20 s between two attempts."""
    config = ec2_client("eu-west-1").meta.config
    assert config.retries["total_max_attempts"] * config.connect_timeout + 2 * 20 < 300 / 4
    assert config.retries["total_max_attempts"] * config.read_timeout + 2 * 20 < 300 / 2


def test_the_resources_id_is_kept_whatever_it_was() -> None:
    """The provider framework refuses another one on Delete."""
    event = {"RequestType": "Delete", "PhysicalResourceId": "made-otherwise"}
    assert teardown.begin(event, cell(), NOW)["PhysicalResourceId"] == "made-otherwise"


def test_without_homes_table_a_cell_is_torn_down_all_the_same() -> None:
    there = away(FakeTable(gone=True))
    assert "Data" in teardown.begin({"RequestType": "Delete"}, there, NOW)
    assert done(there, NOW + teardown.QUIET_S)


def test_a_fault_while_the_end_is_recorded_means_not_yet() -> None:
    class Throttled(FakeTable):
        def put_item(self, TableName: str, Item: Any) -> None:
            raise refusal("ThrottlingException")

    assert not done(away(Throttled()), NOW + teardown.QUIET_S)


def test_home_keeps_the_switch() -> None:
    there = cell(ec2=Regions(FakeEc2()))
    teardown.begin({"RequestType": "Delete"}, there, NOW)
    assert done(there, NOW + teardown.QUIET_S)
    assert "KILL" in there.dynamodb.items


# --- the entry points, over boto3 -------------------------------------------------------------------------------------


@dataclass
class Context:
    left_ms: int = 900_000

    def get_remaining_time_in_millis(self) -> int:
        return self.left_ms


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A table, a tick that is on and a cluster in moto, and the functions' environment; yields the table's client."""
    for name, value in {
        "ARGOSY_STAGE": "main",
        "ARGOSY_TABLE": "argosy-state",
        "ARGOSY_CLUSTER": "argosy",
        "ARGOSY_TICK_RULE": "argosy-tick",
        "ARGOSY_HOME_REGION": "us-east-1",
        "ARGOSY_CELLS": "us-east-1,eu-west-1",
    }.items():
        monkeypatch.setenv(name, value)
    keys = {"pk": "HASH", "sk": "RANGE"}
    with mock_aws():
        dynamodb = boto3.client("dynamodb")
        dynamodb.create_table(
            TableName="argosy-state",
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys.items()],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in keys],
            BillingMode="PAY_PER_REQUEST",
        )
        boto3.client("events").put_rule(Name="argosy-tick", ScheduleExpression="rate(1 minute)")
        boto3.client("ecs").create_cluster(clusterName="argosy")
        yield dynamodb


@pytest.mark.slow
def test_the_teardown_functions_work_over_boto3(deployed: Any) -> None:
    begun = teardown.on_event({"RequestType": "Delete"}, Context())
    assert deployed.get_item(TableName="argosy-state", Key=teardown.KILL)["Item"]["reason"]["S"]
    assert boto3.client("events").describe_rule(Name="argosy-tick")["State"] == "DISABLED"
    assert teardown.is_complete({"RequestType": "Delete", **begun}, Context()) == {"IsComplete": False}
    assert teardown.is_complete(deleting(0.0), Context()) == {"IsComplete": True}


@pytest.mark.slow
def test_the_watchdog_function_reads_the_heartbeat_that_the_controllers_store_writes(deployed: Any) -> None:
    assert watchdog.handler({}, Context()) == {"acted": False, "silentSeconds": 0}
    store = DynamoStore(deployed, "argosy-state")
    store.take_lease("somebody", NOW, 60)
    assert cell_records.read(deployed, "argosy-state") == cell_records.Records()
    store.beat(NOW + 0.25)
    store.release_lease("somebody")
    assert cell_records.read(deployed, "argosy-state") == cell_records.Records(NOW + 0.25)


@pytest.mark.slow
def test_the_watchdogs_look_where_cells_are_recorded_and_not_only_where_the_settings_say(
    deployed: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ARGOSY_CELLS", "us-east-1")
    away = boto3.client("ec2", region_name="eu-west-1")
    instance_id = launched(away)
    cell_records.write(deployed, "argosy-state", "eu-west-1", cell_records.LEFT_OUT)
    DynamoStore(deployed, "argosy-state").beat(NOW - 1e9)
    watchdog.handler({}, Context())
    assert instance_id in capsys.readouterr().out
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    DynamoStore(deployed, "argosy-state").beat(time.time())
    instance_id = launched(away, "argosy-gpu")
    watchdog.cell_handler({}, Context())
    assert instance_id in capsys.readouterr().out


def launched(ec2: Any, template: str = "argosy") -> str:
    """Id of an instance with our tag, made from a launch template of ours."""
    ec2.create_launch_template(
        LaunchTemplateName=template,
        LaunchTemplateData={"ImageId": "ami-12c6146b", "InstanceType": "c5.large"},
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": tags(**{"argosy:stage": "main"})}],
    )
    marks = [{"ResourceType": "instance", "Tags": tags(**{"argosy:stage": "main"})}]
    named = {"LaunchTemplateName": template}
    made = ec2.run_instances(MinCount=1, MaxCount=1, LaunchTemplate=named, TagSpecifications=marks)
    return str(made["Instances"][0]["InstanceId"])


@pytest.mark.slow
def test_what_the_watchdog_says_is_a_metric_too(deployed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    launched(boto3.client("ec2"))
    DynamoStore(deployed, "argosy-state").beat(NOW - 1e9)
    watchdog.handler({}, Context())
    said = json.loads(capsys.readouterr().out)
    (definition,) = said["_aws"]["CloudWatchMetrics"]
    assert definition["Dimensions"] == [["Cluster"]]
    assert said[definition["Metrics"][0]["Name"]] == len(said["terminated"])
    assert said["terminated"] or said["foreign"]
