"""The functions of watchdog and teardown as Lambda calls them, over boto3."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from moto import mock_aws

from argosy.aws import cell_records, teardown, watchdog
from argosy.aws.dynamodb import DynamoStore
from argosy.model import inbox
from argosy.model.stored.documents import ROOT, STATE
from tests.fakes.ending import (
    NOW,
    deleting,
    tags,
)


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
    assert watchdog.handler({}, Context()) == {"acted": False, "silentSeconds": 0, "woken": False}
    store = DynamoStore(deployed, "argosy-state")
    store.beat(NOW + 0.25)
    assert cell_records.read(deployed, "argosy-state") == cell_records.Records(NOW + 0.25, awaits_tick=True)


@pytest.mark.slow
def test_the_watchdog_wakes_the_controller_where_a_request_waits_unless_all_is_torn_down(deployed: Any) -> None:
    store, events = DynamoStore(deployed, "argosy-state"), boto3.client("events")
    store.beat(time.time())
    store.create({(inbox.INBOX, "1#run"): b"{}"})
    deployed.put_item(TableName="argosy-state", Item={**teardown.KILL, "reason": {"S": "torn down"}})
    events.disable_rule(Name="argosy-tick")
    assert not watchdog.handler({}, Context())["woken"]
    assert events.describe_rule(Name="argosy-tick")["State"] == "DISABLED"
    deployed.delete_item(TableName="argosy-state", Key=teardown.KILL)
    assert watchdog.handler({}, Context())["woken"]
    assert events.describe_rule(Name="argosy-tick")["State"] == "ENABLED"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("age_s", "at_rest", "woken"), [(170.0, False, False), (200.0, False, True), (200.0, True, False)]
)
def test_the_watchdog_enables_the_tick_of_a_controller_that_has_not_left(
    deployed: Any, age_s: float, at_rest: bool, woken: bool
) -> None:
    store, events = DynamoStore(deployed, "argosy-state"), boto3.client("events")
    store.beat(time.time() - age_s, at_rest=at_rest)
    events.disable_rule(Name="argosy-tick")
    assert watchdog.handler({}, Context())["woken"] is woken
    assert (events.describe_rule(Name="argosy-tick")["State"] == "ENABLED") is woken


@pytest.mark.slow
@pytest.mark.parametrize("waits", [False, True], ids=["it failed after its commit", "a request waits"])
def test_the_watchdog_enables_the_tick_of_a_controller_that_has_never_finished_one(deployed: Any, waits: bool) -> None:
    store, events = DynamoStore(deployed, "argosy-state"), boto3.client("events")
    events.disable_rule(Name="argosy-tick")
    assert not watchdog.handler({}, Context())["woken"]
    if waits:
        store.create({(inbox.INBOX, "1#run"): b"{}"})
    else:
        store.commit(0, {(STATE, ROOT): b"a state"}, [])  # and its heartbeat was not answered
    assert watchdog.handler({}, Context())["woken"]
    assert events.describe_rule(Name="argosy-tick")["State"] == "ENABLED"


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
    assert (definition["Namespace"], definition["Dimensions"]) == ("Argosy", [["Cluster"]])  # as the alarm has it
    assert said[definition["Metrics"][0]["Name"]] == len(said["terminated"])
    assert said["terminated"] or said["foreign"]
