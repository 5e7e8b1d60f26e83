"""Watchdog and teardown against small fakes of EC2, ECS, DynamoDB, EventBridge and S3: what ends, and what survives."""

# ruff: noqa: N803 - the fakes take boto3's own argument names

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws

from argosy.aws import teardown, watchdog
from argosy.aws.dynamodb import DynamoStore
from argosy.aws.shutdown import FLEET_TAG, TEMPLATE_TAG, free

NOW = 1_800_000_000.0


def refusal(code: str, operation: str = "Call") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": code}}, operation)


def tags(**pairs: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in pairs.items()]


@dataclass
class FakeEc2:
    """Fleets with their targets and instances with their states; pages of one, so that paging is always exercised."""

    fleets: dict[str, dict[str, Any]] = field(default_factory=dict)
    instances: dict[str, dict[str, Any]] = field(default_factory=dict)
    templates: dict[str, str] = field(default_factory=dict)  # id -> stage
    refuses: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)

    def add_fleet(self, fleet_id: str, *, stage: str = "main", target: int = 0, state: str = "active") -> None:
        self.fleets[fleet_id] = {
            "FleetId": fleet_id,
            "FleetState": state,
            "Tags": tags(**{"argosy:stage": stage, "argosy:pool": "c5.large/us-east-1a"}),
            "TargetCapacitySpecification": {"TotalTargetCapacity": target},
        }

    def add_instance(self, instance_id: str, state: str = "running", age_s: float = 7200.0, **marks: str) -> None:
        self.instances[instance_id] = {
            "InstanceId": instance_id,
            "State": {"Name": state},
            "Tags": tags(**marks),
            "LaunchTime": datetime.fromtimestamp(NOW - age_s, UTC),
        }

    def _page(self, key: str, things: list[Any], token: str | None) -> dict[str, Any]:
        at = int(token or 0)
        more = {"NextToken": str(at + 1)} if at + 1 < len(things) else {}
        return {key: things[at : at + 1], **more}

    def describe_fleets(self, NextToken: str | None = None) -> dict[str, Any]:
        return self._page("Fleets", list(self.fleets.values()), NextToken)

    def describe_launch_templates(self, Filters: Any, NextToken: str | None = None) -> dict[str, Any]:
        stage = Filters[0]["Values"][0]
        found = [{"LaunchTemplateId": id} for id, owner in self.templates.items() if owner == stage]
        return self._page("LaunchTemplates", found, NextToken)

    def describe_instances(self, Filters: Any, NextToken: str | None = None) -> dict[str, Any]:
        wanted = {"Key": Filters[0]["Name"].removeprefix("tag:"), "Value": Filters[0]["Values"][0]}
        states = Filters[1]["Values"]
        found = [
            {"Instances": [i]} for i in self.instances.values() if wanted in i["Tags"] and i["State"]["Name"] in states
        ]
        return self._page("Reservations", found, NextToken)

    def modify_fleet(self, FleetId: str, TargetCapacitySpecification: dict[str, int], **_: Any) -> None:
        self.calls.append(f"modify {FleetId}")
        if FleetId in self.refuses:
            raise refusal("FleetNotInModifiableState")
        self.fleets[FleetId]["TargetCapacitySpecification"] = TargetCapacitySpecification

    def terminate_instances(self, InstanceIds: list[str]) -> None:
        self.calls.append(f"terminate {' '.join(InstanceIds)}")
        if self.refuses & set(InstanceIds):
            raise refusal("InvalidInstanceID.NotFound")
        for instance_id in InstanceIds:
            self.instances[instance_id]["State"] = {"Name": "shutting-down"}

    def settle(self) -> None:
        """What is shutting down is gone."""
        self.instances = {id: i for id, i in self.instances.items() if i["State"]["Name"] != "shutting-down"}


def busy_ec2() -> FakeEc2:
    ec2 = FakeEc2(templates={"lt-ours": "main", "lt-theirs": "dev"})
    ec2.add_fleet("fleet-1", target=2)
    ec2.add_fleet("fleet-2")
    ec2.add_fleet("fleet-dev", stage="dev", target=5)
    ours = {"argosy:stage": "main"}
    ec2.add_instance("i-1", **ours, **{FLEET_TAG: "fleet-1"})
    ec2.add_instance("i-2", "pending", **ours, **{FLEET_TAG: "fleet-2"})
    ec2.add_instance("i-orphan", **ours, **{FLEET_TAG: "fleet-deleted", TEMPLATE_TAG: "lt-ours"})
    ec2.add_instance("i-foreign", **ours)
    ec2.add_instance("i-dev", **{"argosy:stage": "dev", FLEET_TAG: "fleet-dev"})
    return ec2


def target(ec2: FakeEc2, fleet_id: str) -> int:
    return int(ec2.fleets[fleet_id]["TargetCapacitySpecification"]["TotalTargetCapacity"])


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


def test_a_deleted_fleet_is_left_alone() -> None:
    ec2 = FakeEc2()
    ec2.add_fleet("fleet-1", target=3, state="deleted_running")
    assert free(ec2, "main").clean
    assert ec2.calls == []


# --- watchdog ---------------------------------------------------------------------------------------------------------


@dataclass
class FakeTable:
    """The two items of partition CONTROL."""

    items: dict[str, dict[str, Any]] = field(default_factory=dict)
    gone: bool = False

    def get_item(self, TableName: str, Key: Any, ConsistentRead: bool) -> dict[str, Any]:
        assert ConsistentRead
        item = self.items.get(Key["sk"]["S"])
        return {"Item": item} if item else {}

    def put_item(self, TableName: str, Item: Any) -> None:
        if self.gone:
            raise refusal("ResourceNotFoundException")
        self.items[Item["sk"]["S"]] = Item

    def delete_item(self, TableName: str, Key: Any, ConditionExpression: str, ExpressionAttributeValues: Any) -> None:
        if self.gone:
            raise refusal("ResourceNotFoundException")
        assert ConditionExpression == "reason = :ours"
        item = self.items.get(Key["sk"]["S"], {})
        if item.get("reason") != ExpressionAttributeValues[":ours"]:
            raise refusal("ConditionalCheckFailedException")
        del self.items[Key["sk"]["S"]]


def beaten_at(moment: float) -> FakeTable:
    """The lease tells nothing: somebody takes it and dies with it, again and again."""
    return FakeTable({"LEASE": {"until": {"N": str(NOW + 60)}}, "HEARTBEAT": {"at": {"N": str(moment)}}})


def never_beaten() -> FakeTable:
    return FakeTable({"LEASE": {"until": {"N": str(NOW + 60)}}})


def look(table: FakeTable, **regions: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    said: list[dict[str, Any]] = []
    answer = watchdog.look(now=NOW, alive_at=watchdog.heartbeat(table, "t"), ec2=regions, stage="main", say=said.append)
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


class Unreachable:
    def describe_fleets(self) -> Any:
        raise EndpointConnectionError(endpoint_url="https://ec2.example")


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
            ec2=busy_ec2(),
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
    assert (there.dynamodb.items, there.events.disabled, there.ec2.calls) == ({}, [], [])


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
    there.ec2.settle()
    assert there.ecs.registered == []
    assert not done(there, NOW + teardown.QUIET_S - 1)
    there.ec2.fleets["fleet-1"]["TargetCapacitySpecification"] = {"TotalTargetCapacity": 1}  # a late controller
    assert not done(there, NOW + teardown.QUIET_S)
    assert target(there.ec2, "fleet-1") == 0
    assert done(there, NOW + teardown.QUIET_S)


def test_a_registered_container_instance_holds_it_up_for_one_more_look() -> None:
    there = cell(ec2=FakeEc2(), ecs=FakeEcs(["arn:1"]))
    assert not done(there, NOW + teardown.QUIET_S)
    assert done(there, NOW + teardown.QUIET_S)


def test_a_problem_is_printed_and_holds_it_up(capsys: pytest.CaptureFixture[str]) -> None:
    ec2 = busy_ec2()
    ec2.refuses = {"i-1"}
    assert not done(cell(ec2=ec2), NOW + teardown.QUIET_S)
    assert "i-1" in capsys.readouterr().out


def test_a_cluster_that_is_gone_is_empty() -> None:
    there = cell(ec2=FakeEc2(), ecs=FakeEcs(error=refusal("ClusterNotFoundException")))
    assert done(there, NOW + teardown.QUIET_S)


def test_a_fault_of_aws_means_not_yet(capsys: pytest.CaptureFixture[str]) -> None:
    """The provider framework takes an exception for the end of the deletion."""
    assert not done(cell(ec2=Unreachable()), NOW + teardown.QUIET_S)
    assert "not yet" in capsys.readouterr().out


def test_a_bucket_that_goes_too_is_emptied_page_by_page() -> None:
    there = cell(ec2=FakeEc2(), empty_bucket="results", s3=FakeS3(["a", "b", "c"]))
    assert done(there, NOW + teardown.QUIET_S)
    assert there.s3.keys == []


def test_emptying_stops_before_the_functions_time_is_up_and_goes_on_next_time() -> None:
    ticks = iter([0.0, 2.0])
    there = cell(ec2=FakeEc2(), empty_bucket="results", s3=FakeS3(["a", "b", "c"]))
    assert not done(there, NOW + teardown.QUIET_S, clock=lambda: next(ticks))
    assert there.s3.keys == ["c"]
    assert done(there, NOW + teardown.QUIET_S)


def test_a_bucket_that_is_gone_is_empty() -> None:
    assert done(cell(ec2=FakeEc2(), empty_bucket="results", s3=FakeS3(gone=True)), NOW + teardown.QUIET_S)


def away(table: FakeTable) -> teardown.DeployedCell:
    return cell(region="eu-west-1", ec2=FakeEc2(), dynamodb=table)


def test_a_cell_that_goes_alone_takes_its_switch_back() -> None:
    there = away(FakeTable())
    teardown.begin({"RequestType": "Delete"}, there, NOW)
    assert done(there, NOW + teardown.QUIET_S)
    assert (there.dynamodb.items, there.events.disabled) == ({}, [])  # and the other cells' tick was never off


def test_the_resources_id_is_kept_whatever_it_was() -> None:
    """The provider framework refuses another one on Delete."""
    event = {"RequestType": "Delete", "PhysicalResourceId": "made-otherwise"}
    assert teardown.begin(event, cell(), NOW)["PhysicalResourceId"] == "made-otherwise"


@pytest.mark.parametrize(
    "table", [FakeTable({"KILL": {"reason": {"S": "an operator's"}}}), FakeTable(gone=True)], ids=["other", "gone"]
)
def test_somebody_elses_switch_stays(table: FakeTable) -> None:
    before = dict(table.items)
    assert done(away(table), NOW + teardown.QUIET_S)
    assert table.items == before


def test_a_fault_while_taking_the_switch_back_means_not_yet() -> None:
    class Throttled(FakeTable):
        def delete_item(self, **_: Any) -> None:
            raise refusal("ThrottlingException")

    assert not done(away(Throttled()), NOW + teardown.QUIET_S)


def test_home_keeps_the_switch() -> None:
    there = cell(ec2=FakeEc2())
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
    assert watchdog.heartbeat(deployed, "argosy-state") is None
    store.beat(NOW + 0.25)
    store.release_lease("somebody")
    assert watchdog.heartbeat(deployed, "argosy-state") == NOW + 0.25


@pytest.mark.slow
def test_what_the_watchdog_says_is_a_metric_too(deployed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ec2 = boto3.client("ec2")
    ec2.create_launch_template(
        LaunchTemplateName="argosy",
        LaunchTemplateData={"ImageId": "ami-12c6146b", "InstanceType": "c5.large"},
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": tags(**{"argosy:stage": "main"})}],
    )
    marks = [{"ResourceType": "instance", "Tags": tags(**{"argosy:stage": "main"})}]
    template = {"LaunchTemplateName": "argosy"}
    ec2.run_instances(MinCount=1, MaxCount=1, LaunchTemplate=template, TagSpecifications=marks)
    DynamoStore(deployed, "argosy-state").beat(NOW - 1e9)
    watchdog.handler({}, Context())
    said = json.loads(capsys.readouterr().out)
    (definition,) = said["_aws"]["CloudWatchMetrics"]
    assert definition["Dimensions"] == [["Cluster"]]
    assert said[definition["Metrics"][0]["Name"]] == len(said["terminated"])
    assert said["terminated"] or said["foreign"]  # moto does not set the tags that AWS reserves for itself
