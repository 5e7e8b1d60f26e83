"""Schedules of EventBridge Scheduler: one for each of Argosy's, in the deployment's group.

Each calls the api function, asynchronously and at least once, with its intended time. The spec stays in the table, so
changing it needs no call.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from argosy.aws.errors import AWS_ERRORS, FailureKind, classify
from argosy.model.schedules.record import Schedule, ScheduleState

TIME = "<aws.scheduler.scheduled-time>"  # EventBridge puts the time in its place
MOST_RETRIES = 185  # the most that it allows; how long it retries is bounded by the age
SHORTEST_AGE_S, LONGEST_AGE_S = 60, 86_400


@dataclass(frozen=True, slots=True)
class ScheduleTarget:
    """What is called: the api function, by the role that may call nothing else; and the group of the schedules."""

    group: str
    function_arn: str
    role_arn: str


class AwsScheduleClock:
    """`ports.ScheduleClock` over a boto3 client of EventBridge Scheduler, which is made when it is needed."""

    def __init__(self, scheduler: Callable[[], Any], target: ScheduleTarget, now: Callable[[], float]) -> None:
        self._scheduler, self._target, self._now = scheduler, target, now

    def set(self, schedule: Schedule) -> None:
        """Raises boto3's errors."""
        scheduler, request = self._scheduler(), self._request(schedule)
        try:
            scheduler.create_schedule(**request)
        except AWS_ERRORS as error:
            if classify(error).kind is not FailureKind.CONFLICT:
                raise
            scheduler.update_schedule(**request)

    def remove(self, name: str) -> None:
        """Raises boto3's errors."""
        try:
            self._scheduler().delete_schedule(GroupName=self._target.group, Name=name)
        except AWS_ERRORS as error:
            if classify(error).kind is not FailureKind.NOT_FOUND:
                raise

    def _request(self, schedule: Schedule) -> dict[str, Any]:
        age_s = min(max(int(schedule.start_within_s), SHORTEST_AGE_S), LONGEST_AGE_S)
        asked = {"action": "FireSchedule", "name": schedule.name, "scheduledTime": TIME}
        request: dict[str, Any] = {
            "GroupName": self._target.group,
            "Name": schedule.name,
            "ScheduleExpression": schedule.expression,
            "ScheduleExpressionTimezone": schedule.zone,
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "State": "DISABLED" if schedule.state is ScheduleState.PAUSED else "ENABLED",
            "Target": {
                "Arn": self._target.function_arn,
                "RoleArn": self._target.role_arn,
                "Input": json.dumps(asked),
                "RetryPolicy": {"MaximumEventAgeInSeconds": age_s, "MaximumRetryAttempts": MOST_RETRIES},
            },
        }
        if schedule.expression.startswith("rate") and (times := schedule.next_times(self._now(), 1)):
            # A rate counts from here; without it, from whenever AWS takes it up.
            request["StartDate"] = datetime.fromtimestamp(times[0], UTC)
        return request
