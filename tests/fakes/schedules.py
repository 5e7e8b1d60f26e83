"""The api with a clock of schedules that remembers its calls, and with its announcements."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from argosy.model.schedules.record import Schedule
from tests.builders import NOW
from tests.fakes.api import SPEC, Desk

NIGHTLY = {"name": "nightly", "expression": "cron(0 3 * * ? *)", "zone": "Europe/Berlin", "spec": SPEC}


class SetClock:
    """Raises `fails`, if that is set, instead of taking note."""

    def __init__(self) -> None:
        self.told: dict[str, Schedule] = {}
        self.fails: Exception | None = None

    def set(self, schedule: Schedule) -> None:
        if self.fails is not None:
            raise self.fails
        self.told[schedule.name] = schedule

    def remove(self, name: str) -> None:
        self.told.pop(name, None)


class ScheduleDesk(Desk):
    """`announced`: (detail-type, detail) of every event."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = SetClock()
        self.announced: list[tuple[str, dict[str, Any]]] = []
        self.api.clock = self.clock
        self.api.announce = lambda what, detail: self.announced.append((what, detail))

    def every(self, minutes: int = 10, **fields: Any) -> dict[str, Any]:
        """A schedule `often`, made now."""
        rate = {"name": "often", "expression": f"rate({minutes} minutes)", "spec": SPEC}
        return self.body("CreateSchedule", **{**rate, **fields})

    def fire(self, name: str, time: float, late_s: float = 5.0) -> dict[str, Any]:
        """Deliver a time that much later."""
        self.time = max(self.time, time + late_s)
        return self.body("FireSchedule", name=name, scheduledTime=stamp(time))

    def shown(self, name: str = "often") -> dict[str, Any]:
        return self.body("DescribeSchedule", name=name)

    def verdicts(self, name: str = "often") -> list[str]:
        """The oldest first."""
        return [each["verdict"] for each in reversed(self.shown(name)["fires"])]

    def run_ids(self) -> list[str]:
        return [each["runId"] for each in self.body("ListRuns")["runs"]]


def stamp(time: float) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%dT%H:%M:%SZ}"


def nth(number: int, minutes: int = 10) -> float:
    """The number-th time of `often`, from 1."""
    return NOW + number * 60 * minutes
