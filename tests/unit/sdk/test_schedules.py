"""Schedules from a program."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import argosy
from tests.fakes.api import SPEC
from tests.fakes.cli import RUN_ID, World, api_error, run_view
from tests.fakes.sdk import client_of

VIEW: dict[str, Any] = {
    "name": "nightly",
    "state": "ENABLED",
    "expression": "rate(1 day)",
    "zone": "UTC",
    "revision": 3,
    "nextTimes": ["2026-11-24T03:00:00Z"],
    "fires": [{"scheduledTime": "2026-11-23T03:00:00Z", "verdict": "skipped", "runId": RUN_ID, "reason": "open"}],
}


INVALID = api_error(400, "ValidationException", "1 field is invalid", ("container.image", "is unknown"))


def sent(world: World) -> dict[str, Any]:
    return dict(world.functions.requests[-1])


def test_a_schedule_is_created_from_a_spec() -> None:
    world = World().answers("CreateSchedule", VIEW)
    made = client_of(world).schedules.create("nightly", SPEC, "rate(1 day)", overlap="queue", start_within=60)
    assert sent(world) == {
        "action": "CreateSchedule",
        "name": "nightly",
        "expression": "rate(1 day)",
        "zone": "UTC",
        "overlap": "queue",
        "startWithin": 60,
        "spec": SPEC,
    }
    assert (made.name, made.state, made.revision) == ("nightly", "ENABLED", 3)
    assert made.next_times == [datetime(2026, 11, 24, 3, tzinfo=UTC)]
    [firing] = made.fires
    assert (firing.verdict, firing.run_id, firing.reason) == ("skipped", RUN_ID, "open")
    assert repr(made) == "<argosy schedule nightly ENABLED rate(1 day) UTC>"


def test_an_update_says_which_revision_it_was_made_from() -> None:
    world = World().answers("DescribeSchedule", VIEW).answers("UpdateSchedule", VIEW)
    schedules = client_of(world).schedules
    seen = schedules.show("nightly")
    schedules.update(seen, overlap="allow")
    assert sent(world) == {"action": "UpdateSchedule", "name": "nightly", "revision": 3, "overlap": "allow"}
    schedules.update(seen, spec=SPEC)
    assert sent(world) == {"action": "UpdateSchedule", "name": "nightly", "revision": 3, "spec": SPEC}


def test_the_rest_is_a_call_each() -> None:
    world = World().answers("PauseSchedule", VIEW).answers("ResumeSchedule", VIEW).answers("DeleteSchedule", {})
    world.answers("RunScheduleNow", run_view()).answers("ListSchedules", {"schedules": [VIEW], "nextToken": None})
    schedules = client_of(world).schedules
    assert schedules.pause("nightly").name == schedules.resume("nightly").name == "nightly"
    assert schedules.run_now("nightly").id == RUN_ID
    assert schedules.names() == ["nightly"]
    schedules.delete("nightly")
    assert sent(world) == {"action": "DeleteSchedule", "name": "nightly"}


def test_faults_of_the_spec_are_an_invalid_spec() -> None:
    world = World().answers("CreateSchedule", INVALID)
    with pytest.raises(argosy.InvalidSpec, match="is unknown"):
        client_of(world).schedules.create("nightly", SPEC, "rate(1 day)")
