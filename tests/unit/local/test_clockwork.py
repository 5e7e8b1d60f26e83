"""The firings of local mode's clock."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from argosy.local.lambdas.clockwork import ClockSurroundings, Clockwork
from argosy.local.moto.schedules import StoredSchedule

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
ASKED = json.dumps({"action": "FireSchedule", "scheduledTime": "<aws.scheduler.scheduled-time>"})
HOURLY = StoredSchedule("argosy", "hourly", "cron(0 * * * ? *)", "UTC", None, NOW - 60, 1800.0, "argosy-api", ASKED)


class Here:
    """A clock that is set by hand, over schedules that may change."""

    def __init__(self, *schedules: StoredSchedule, since: dict[str, float] | None = None) -> None:
        self.now, self.schedules, self.does_wait = NOW, list(schedules), False
        self.calls: list[dict[str, Any]] = []
        self.complaints: list[str] = []
        around = ClockSurroundings(
            lambda: list(self.schedules),
            {"argosy-api": lambda payload, request_id: self.calls.append(json.loads(payload))},
            "argosy-api",
            lambda: self.does_wait,
            self.complaints.append,
            lambda: self.now,
        )
        self.clock = Clockwork(around, since)

    def at(self, seconds: float) -> list[str]:
        """The times that are fired this many seconds later."""
        self.now, self.calls = NOW + seconds, []
        self.clock.look()
        return [call.get("scheduledTime", call["action"]) for call in self.calls]


def test_each_time_is_fired_once_and_none_before_the_schedule_was_made() -> None:
    here = Here(replace(HOURLY, created_at=NOW + 1))
    assert here.at(5) == []
    assert here.at(3601) == ["2027-01-15T09:00:00Z"]
    assert here.at(3602) == []
    assert here.at(3 * 3600) == ["2027-01-15T10:00:00Z", "2027-01-15T11:00:00Z"]


def test_what_an_earlier_local_mode_missed_is_made_up_for_within_the_time_to_start() -> None:
    since = NOW - 3 * 3600 + 60
    assert Here(HOURLY, since={"hourly": since}).at(60) == ["2027-01-15T08:00:00Z"]
    assert Here(replace(HOURLY, age_s=30.0), since={"hourly": since}).at(60) == []
    assert Here(HOURLY, since={"hourly": NOW}).at(60) == []


def test_a_rate_begins_at_its_start_or_a_period_after_it_was_made() -> None:
    rate = replace(HOURLY, expression="rate(10 minutes)", created_at=NOW)
    here = Here(rate, replace(rate, name="started", start=NOW + 300))
    assert here.at(5) == []
    assert here.at(301) == ["2027-01-15T08:05:00Z"]
    assert here.at(601) == ["2027-01-15T08:10:00Z"]
    assert here.at(901) == ["2027-01-15T08:15:00Z"]


def test_one_that_is_changed_or_gone_fires_no_more_as_it_was() -> None:
    here = Here(HOURLY)
    here.at(5)
    here.schedules = [replace(HOURLY, expression="cron(30 * * * ? *)")]
    assert here.at(6) == []
    assert here.at(3601) == ["2027-01-15T08:30:00Z"]
    here.schedules = []
    assert here.at(3 * 3600) == []


def test_a_schedule_that_cannot_be_fired_is_reported() -> None:
    here = Here(replace(HOURLY, expression="hourly"), replace(HOURLY, name="other", function="no-such"))
    here.at(5)
    here.at(3601)
    assert here.complaints[0].startswith("the schedule hourly cannot be fired: 'hourly' is not a schedule expression")
    assert here.complaints[1] == "the schedule other calls something that is not a function of local mode"


def test_while_a_firing_waits_it_is_asked_every_few_seconds_whether_it_may_start() -> None:
    here = Here()
    assert here.at(0) == []
    here.does_wait = True
    assert [here.at(seconds) for seconds in (1, 2, 7)] == [["ReleaseSchedules"], [], ["ReleaseSchedules"]]


def test_it_ends_when_it_is_stopped() -> None:
    here = Here()
    here.clock.start()
    here.clock.close()
    Here().clock.close()  # also one that has not begun
