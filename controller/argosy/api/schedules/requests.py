"""Models of the requests about schedules, one for each action."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from argosy.api.requests import TOKEN_LIMIT, printable
from argosy.model.schedules.record import DEFAULT_START_WITHIN_S
from argosy.spec.fields import Strict, refused

SCHEDULE_PAGE_LIMIT = 50  # each is read with its spec
MOST_TIMES = 100  # to come, of one schedule
# EventBridge Scheduler retries for a minute to a day (RetryPolicy.MaximumEventAgeInSeconds).
START_WITHIN_S = (60, 86_400)

ScheduleName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")]  # as of a run; EventBridge takes 64 characters
OverlapRule = Literal["skip", "allow", "replace", "queue"]
StartWithin = Annotated[int, Field(ge=START_WITHIN_S[0], le=START_WITHIN_S[1])]
Zone = Annotated[str, Field(min_length=1, max_length=50)]  # EventBridge's limit
ExpressionText = Annotated[str, Field(min_length=1, max_length=256)]  # EventBridge's limit


def _moment(text: str) -> str:
    try:
        datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError as fault:
        raise refused("must be a time such as 2026-11-24T03:00:00Z") from fault
    return text


class CreateSchedule(Strict):
    """Start a run at every time of an expression. The same request again changes nothing. expression: as of EventBridge
    Scheduler, `cron(0 3 * * ? *)`, `rate(6 hours)` or `at(2026-12-24T18:00:00)`. overlap: the treatment of a time while
    a run of the schedule is open. startWithin: seconds after which a time that was not delivered is missed."""

    action: Literal["CreateSchedule"]
    name: ScheduleName
    expression: ExpressionText
    zone: Zone = "UTC"
    spec: dict[str, Any]
    overlap: OverlapRule = "skip"
    start_within: StartWithin = int(DEFAULT_START_WITHIN_S)


class UpdateSchedule(Strict):
    """Change what is given, if the schedule is still at this revision; what is left out stays."""

    action: Literal["UpdateSchedule"]
    name: ScheduleName
    revision: int = Field(ge=1)
    expression: ExpressionText | None = None
    zone: Zone | None = None
    spec: dict[str, Any] | None = None
    overlap: OverlapRule | None = None
    start_within: StartWithin | None = None


class DescribeSchedule(Strict):
    """One schedule with its spec, its next times (`times` of them) and its last twenty verdicts."""

    action: Literal["DescribeSchedule"]
    name: ScheduleName
    times: int = Field(default=5, ge=1, le=MOST_TIMES)


class ListSchedules(Strict):
    """The schedules by name, without their specs. A page may have fewer than requested, and still a token."""

    action: Literal["ListSchedules"]
    max_results: int = Field(default=20, ge=1, le=SCHEDULE_PAGE_LIMIT)
    next_token: str | None = None


class PauseSchedule(Strict):
    """Start no run until the schedule is resumed."""

    action: Literal["PauseSchedule"]
    name: ScheduleName


class ResumeSchedule(Strict):
    """Start runs again from now on; missed times stay missed."""

    action: Literal["ResumeSchedule"]
    name: ScheduleName


class RunScheduleNow(Strict):
    """Start a run of the schedule now, even while it is paused or another run is open."""

    action: Literal["RunScheduleNow"]
    name: ScheduleName
    client_token: Annotated[str, Field(min_length=1, max_length=TOKEN_LIMIT), AfterValidator(printable)] | None = None


class DeleteSchedule(Strict):
    """Start no more runs. Runs that were started stay."""

    action: Literal["DeleteSchedule"]
    name: ScheduleName


class FireSchedule(Strict):
    """For the clock: one of its times has come. The same time again is answered with the first one's verdict."""

    action: Literal["FireSchedule"]
    name: ScheduleName
    scheduled_time: Annotated[str, AfterValidator(_moment)]

    @property
    def time(self) -> float:
        """Epoch seconds, whole ones. Without a zone it is UTC."""
        moment = datetime.fromisoformat(self.scheduled_time)
        return float(int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()))


class ReleaseSchedules(Strict):
    """A run has ended: start the firings that wait for it. run_id: the ended run, if known."""

    action: Literal["ReleaseSchedules"]
    run_id: str | None = None
