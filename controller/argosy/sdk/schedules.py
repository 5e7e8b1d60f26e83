"""Schedules for Python programs: scheduled runs and the verdict on each time."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from argosy.client.access import Access
from argosy.sdk.errors import explained, faults_of
from argosy.sdk.run import RunHandle
from argosy.sdk.spec_source import given

Spec = str | os.PathLike[str] | Mapping[str, Any]
Rule = Literal["skip", "allow", "replace", "queue"]


@dataclass(frozen=True, slots=True)
class Firing:
    """One time of a schedule. verdict: ran, skipped, queued, paused, late, refused or missed."""

    time: datetime
    verdict: str
    run_id: str | None
    """Of the run that it started, or of the one that was in its way."""
    reason: str | None


@dataclass(frozen=True, eq=False)
class ScheduleView:
    """A schedule at the time of the request. reply: DescribeSchedule's."""

    reply: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.reply["name"])

    @property
    def state(self) -> str:
        """ENABLED or PAUSED."""
        return str(self.reply["state"])

    @property
    def revision(self) -> int:
        """`update` checks it, so that another change in the meantime is not overwritten."""
        return int(self.reply["revision"])

    @property
    def next_times(self) -> list[datetime]:
        """The next five, in UTC."""
        return [datetime.fromisoformat(each) for each in self.reply["nextTimes"]]

    @property
    def fires(self) -> list[Firing]:
        """The last twenty, the newest first."""
        return [_firing(each) for each in self.reply["fires"]]

    def __repr__(self) -> str:
        return f"<argosy schedule {self.name} {self.state} {self.reply['expression']} {self.reply['zone']}>"


def _firing(view: Mapping[str, Any]) -> Firing:
    return Firing(datetime.fromisoformat(view["scheduledTime"]), view["verdict"], view["runId"], view["reason"])


class Schedules:
    """Those of one deployment: `client.schedules`."""

    def __init__(self, access: Access, run: Callable[[Mapping[str, Any]], RunHandle]) -> None:
        self._access, self._run = access, run

    def create(
        self,
        name: str,
        spec: Spec,
        expression: str,
        *,
        zone: str = "UTC",
        overlap: Rule = "skip",
        start_within: int = 1800,
    ) -> ScheduleView:
        """Start a run of a spec at every time. expression: `cron(0 3 * * ? *)`, `rate(6 hours)` or
        `at(2026-12-24T18:00:00)`; start_within: seconds. Its program is uploaded now, as it is.

        Raises `argosy.InvalidSpec` with every fault, and ArgosyError.
        """
        fields = {"name": name, "expression": expression, "zone": zone, "overlap": overlap, "startWithin": start_within}
        return self._with_spec(spec, self._access.api.create_schedule, fields)

    def update(self, schedule: ScheduleView, *, spec: Spec | None = None, **changes: Any) -> ScheduleView:
        """Change the given fields, unless another user has changed the schedule since you read it. changes:
        `expression`, `zone`,
        `overlap`, `startWithin`. Raises as `create` does.
        """
        fields = {"name": schedule.name, "revision": schedule.revision, **changes}
        if spec is not None:
            return self._with_spec(spec, self._access.api.update_schedule, fields)
        with explained():
            return ScheduleView(self._access.api.update_schedule(**fields))

    def show(self, name: str) -> ScheduleView:
        """Raises ArgosyError if there is none."""
        with explained():
            return ScheduleView(self._access.api.schedule(name))

    def names(self) -> list[str]:
        """Of all schedules. Raises ArgosyError."""
        with explained():
            return [str(each["name"]) for each in self._access.api.schedules()["schedules"]]

    def pause(self, name: str) -> ScheduleView:
        """Raises ArgosyError."""
        with explained():
            return ScheduleView(self._access.api.pause_schedule(name))

    def resume(self, name: str) -> ScheduleView:
        """Resume it from now. Raises ArgosyError."""
        with explained():
            return ScheduleView(self._access.api.resume_schedule(name))

    def run_now(self, name: str) -> RunHandle:
        """The run that is started, whatever else is open. Raises ArgosyError."""
        with explained():
            return self._run(self._access.api.run_schedule_now(name, uuid.uuid4().hex))

    def delete(self, name: str) -> None:
        """Its runs stay. Raises ArgosyError."""
        with explained():
            self._access.api.delete_schedule(name)

    def _with_spec(self, spec: Spec, call: Callable[..., Mapping[str, Any]], fields: Mapping[str, Any]) -> ScheduleView:
        from argosy.client.packing.program import pack

        wanted = given(spec)
        with explained(), faults_of(wanted.name):
            return ScheduleView(call(spec=pack(wanted.data, wanted.folder, self._access), **fields))
