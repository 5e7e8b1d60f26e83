"""The requests to EventBridge Scheduler for a schedule, and its refusals."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy.aws.schedule_clock import AwsScheduleClock, ScheduleTarget
from argosy.model.schedules.record import Overlap, Schedule, ScheduleState
from tests.fakes.aws import ScriptedClient

NOW = 1_800_000_000.0
TARGET = ScheduleTarget(
    "argosy",
    "arn:aws:lambda:us-east-1:123456789012:function:argosy-api",
    "arn:aws:iam::123456789012:role/argosy-schedules",
)
DONE = {"ScheduleArn": "arn:aws:scheduler:us-east-1:123456789012:schedule/argosy/nightly"}


def error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": 409}}, "x")


def schedule(**fields: Any) -> Schedule:
    given = {
        "expression": "cron(0 3 * * ? *)",
        "zone": "Europe/Berlin",
        "start_within_s": 600.0,
        "begins": NOW,
        **fields,
    }
    return Schedule(
        name="nightly", spec={}, overlap=Overlap.SKIP, created_at=NOW, changed_at=NOW, **{**given, **fields}
    )


def clock(**scripts: Any) -> tuple[AwsScheduleClock, ScriptedClient]:
    client = ScriptedClient("scheduler", **scripts)
    return AwsScheduleClock(lambda: client, TARGET, lambda: NOW), client


def test_it_fires_the_api_with_the_time_and_tries_no_longer_than_the_schedule_may_start() -> None:
    told, client = clock(create_schedule=DONE)
    told.set(schedule())
    [request] = client.requests("create_schedule")
    assert (request["GroupName"], request["Name"], request["State"]) == ("argosy", "nightly", "ENABLED")
    assert request["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert request["Target"]["RetryPolicy"] == {"MaximumEventAgeInSeconds": 600, "MaximumRetryAttempts": 185}
    assert request["Target"]["RoleArn"] == TARGET.role_arn
    assert json.loads(request["Target"]["Input"]) == {
        "action": "FireSchedule",
        "name": "nightly",
        "scheduledTime": "<aws.scheduler.scheduled-time>",
    }
    assert "StartDate" not in request


def test_one_that_is_there_is_changed() -> None:
    told, client = clock(create_schedule=error("ConflictException"), update_schedule=DONE)
    told.set(schedule(state=ScheduleState.PAUSED))
    [request] = client.requests("update_schedule")
    assert request["State"] == "DISABLED"


def test_a_rate_starts_at_its_next_time() -> None:
    told, client = clock(create_schedule=DONE)
    told.set(schedule(expression="rate(2 hours)", begins=NOW - 3600))
    assert client.requests("create_schedule")[0]["StartDate"] == datetime.fromtimestamp(NOW + 3600, UTC)


def test_a_refusal_is_the_callers() -> None:
    told, _ = clock(create_schedule=error("ValidationException"), delete_schedule=error("AccessDeniedException"))
    with pytest.raises(ClientError, match="ValidationException"):
        told.set(schedule())
    with pytest.raises(ClientError, match="AccessDenied"):
        told.remove("nightly")


def test_one_that_is_gone_is_removed() -> None:
    told, client = clock(delete_schedule=error("ResourceNotFoundException"))
    told.remove("nightly")
    assert client.requests("delete_schedule") == [{"GroupName": "argosy", "Name": "nightly"}]
