"""The schedules of moto's EventBridge Scheduler, which stores them but never fires one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StoredSchedule:
    """One of them. Times in epoch seconds, `age_s` in seconds."""

    group: str
    name: str
    expression: str
    zone: str
    start: float | None
    """From when it may fire; a rate counts from here."""
    created_at: float
    age_s: float
    """How long delivery of a time is tried."""
    function: str
    """Name of the function that it calls; "" = something else."""
    text: str
    """The payload of that call."""

    def payload(self, time: str) -> bytes:
        """For the function, at one of its times (ISO 8601)."""
        return self.text.replace("<aws.scheduler.scheduled-time>", time).encode()


class MotoSchedules:
    """The enabled schedules of one account and Region."""

    def __init__(self, account: str, region: str) -> None:
        from moto.scheduler.models import scheduler_backends

        self._backend: Any = scheduler_backends[account][region]

    def __call__(self) -> Iterator[StoredSchedule]:
        for group in list(self._backend.schedule_groups.values()):
            for each in list(group.schedules.values()):
                if each.state == "ENABLED":
                    yield _stored(each)


def _stored(each: Any) -> StoredSchedule:
    arn, target = str(each.target["Arn"]), each.target
    return StoredSchedule(
        group=each.group_name,
        name=each.name,
        expression=each.schedule_expression,
        zone=each.schedule_expression_timezone,
        start=None if each.start_date is None else float(each.start_date),
        created_at=float(each.creation_date),
        age_s=float(target["RetryPolicy"].get("MaximumEventAgeInSeconds", 86_400)),
        function=arn.rpartition(":function:")[2] if ":function:" in arn else "",
        text=target.get("Input") or json.dumps({}),
    )
