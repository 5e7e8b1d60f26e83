"""The clock of a trial's schedule: it calls the api at each time, sometimes twice or late.

It behaves like EventBridge Scheduler and the queue of an asynchronous invocation: a delivery may come twice and late; a
delivery whose invocation fails is retried twice, and then dropped. The ends of runs are reported in the same way, and
some are not reported at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from argosy.api import reading
from argosy.api.schedules import store as schedule_store
from argosy.model.damage import FAULTS
from argosy.model.inbox import SubmitRequest
from argosy.model.schedules.expressions import next_times
from argosy.model.schedules.record import Overlap, ScheduleState
from tests.harness.simulation.audit.facts import TrialFacts
from tests.harness.simulation.controllers.deployment import SimulatedDeployment
from tests.harness.simulation.injection.boundary import Crash
from tests.harness.simulation.users.front_desk import FrontDesk
from tests.harness.simulation.world.members import UNNAMED
from tests.harness.simulation.world.workload import SimulatedJob

JSON = dict[str, Any]
NAME = "every-so-often"
WITHDRAWN = "argosy/withdrawn"  # an image that no longer exists when some times come
TIMES = 4  # of a schedule in a trial
TRIES = 3  # tries of a delivery: the first, and Lambda's two repeats
LATE_S = 300.0
DOUBLED, LATE, TOLD = 0.4, 0.3, 0.7  # chance of a delivery; chance that a run's end is reported
PAUSED = 0.4  # share of trials in which a user pauses it, and resumes it later
CHANGED, BY_HAND = 0.4, 0.4  # share of trials in which a user changes its rule; starts a run by hand
OWNED = 0.5  # share of trials with members in which one of them owns it, and comes through the entrance of the queue
LONG_S = (60.0, 900.0)  # duration of its programs in half of the trials: then several runs are open
NUMBER = 1_001  # among the runs of the trial's users, for draws
OF_THE_CLOCK = ("FireSchedule", "ReleaseSchedules")
REFUSING = 0.3  # share of trials whose image is withdrawn in the middle
SPEC: JSON = {
    "version": 1,
    "name": NAME,
    "container": {"image": WITHDRAWN, "command": ["work", "${part}"]},
    "resources": {"vcpus": 1, "memory": 512, "gpus": 0},
    "array": {"size": 2},
}


@dataclass(slots=True)
class _Delivery:
    at: float
    request: JSON
    tries: int = 0


class WithdrawnImage:
    """Every image is published, until one is withdrawn."""

    def __init__(self) -> None:
        self.is_withdrawn: Callable[[], bool] = lambda: False

    def resolve(self, image: str) -> str | None:
        return None if image == WITHDRAWN and self.is_withdrawn() else image


class ClockOfSchedules:
    """The clock of one trial. jobs: by run id; the jobs of its runs are added as soon as the api makes up an id."""

    def __init__(
        self, deployment: SimulatedDeployment, jobs: MutableMapping[str, SimulatedJob], facts: TrialFacts
    ) -> None:
        self._deployment, self._world, self._facts = deployment, deployment.world, facts
        self._images = WithdrawnImage()
        self._desk = FrontDesk(deployment, self._named, self._images)
        self._jobs = jobs
        self._made_up: list[str] = []
        """Ids of runs that the api was about to store."""
        self._waiting: list[_Delivery] = []
        self._created_at: float | None = None
        self._told = 0
        """Ends of runs that were examined."""
        self._is_ending = self.is_done = False
        self._came = UNNAMED

    def begin(self, faulty_s: float) -> None:
        """A user creates the schedule soon, and asks again until they get an answer."""
        rule = list(Overlap)[int(4 * self._drawn("overlap"))]
        minutes = max(1, int(faulty_s / TIMES / 60))
        self._wish = {
            "action": "CreateSchedule",
            "name": NAME,
            "expression": f"rate({minutes} minutes)",
            "spec": SPEC | self._whose(),
            "overlap": rule.value,
            "startWithin": 60 * (1 + int(10 * self._drawn("within"))),
        }
        if self._drawn("refuses") < REFUSING:
            ends_at = self._world.now + faulty_s * self._drawn("withdrawn")
            self._images.is_withdrawn = lambda: self._created_at is not None and self._world.now > ends_at
        if self._drawn("is paused") < PAUSED:
            first, last = sorted(self._drawn(what) * faulty_s for what in ("paused", "resumed"))
            self._ask_later(first, "PauseSchedule")
            self._ask_later(last, "ResumeSchedule")
        if self._drawn("is changed") < CHANGED:
            rule = list(Overlap)[int(4 * self._drawn("changed overlap"))]
            self._ask_later(self._drawn("changed at") * faulty_s, "UpdateSchedule", overlap=rule.value)
        for number in range(2 * (self._drawn("is by hand") < BY_HAND)):
            at = self._drawn("by hand at", number) * faulty_s
            self._ask_later(at, "RunScheduleNow", clientToken=f"by-hand-{number}")

    def _ask_later(self, after_s: float, action: str, **fields: Any) -> None:
        self._waiting.append(_Delivery(self._world.now + after_s, {"action": action, "name": NAME, **fields}))

    def _whose(self) -> JSON:
        """The queue and the owner in its spec: its user comes through the entrance of that queue."""
        members = self._deployment.members
        if not members.are_there or self._drawn("owned") >= OWNED:
            return {}
        terms = {"queue": "default", "owner": "alice"}
        self._came = members.of(NUMBER, terms)
        return terms

    def act(self) -> None:
        """Ask for everything that is due by now."""
        if self._created_at is None:
            self._create()
            return
        self._tell_of_ends()
        for delivery in [each for each in self._waiting if each.at <= self._world.now]:
            if self._deliver(delivery):
                self._waiting.remove(delivery)
        if self._is_ending and not self._waiting:
            self._end()

    def end(self) -> None:
        """From now on nothing fails; when all is delivered, the schedule is deleted."""
        self._is_ending = True

    def _create(self) -> None:
        answer = self._ask(self._wish)
        if answer is None:
            self.is_done = self._is_ending  # no answer ever came
            return
        self._created_at = self._world.now
        schedule = schedule_store.read(self._deployment.store, NAME)
        assert schedule is not None
        for time in next_times(schedule.expression, schedule.zone, self._world.now, schedule.begins, TIMES):
            self._plan(time)

    def _plan(self, time: float) -> None:
        request = {"action": "FireSchedule", "name": NAME, "scheduledTime": _stamp(time)}
        copies = 2 if self._drawn("doubled", time) < DOUBLED else 1
        for copy in range(copies):
            late_s = LATE_S * self._drawn("late", time, copy) if self._drawn("is late", time, copy) < LATE else 1.0
            self._waiting.append(_Delivery(time + late_s, request))

    def _deliver(self, delivery: _Delivery) -> bool:
        """Whether it is over: answered, or given up."""
        delivery.tries += 1
        if delivery.request["action"] == "UpdateSchedule":
            known = schedule_store.read(self._deployment.store, NAME)
            assert known is not None
            delivery.request["revision"] = known.revision
        answer = self._ask(delivery.request)
        if answer is not None and delivery.request["action"] == "ResumeSchedule":
            self._check_resumed()
        if answer is not None and (verdict := answer.get("verdict")) is not None:
            self._facts.fires_answered[str(answer["scheduledTime"])] = str(verdict)
        return answer is not None or delivery.tries >= TRIES

    def _check_resumed(self) -> None:
        """What was queued waits for a run that is open, or does not wait any more."""
        schedule = schedule_store.read(self._deployment.store, NAME)
        assert schedule is not None
        if schedule.waits and not any(self._is_open(run_id) for run_id in schedule.runs):
            self._facts.violated(
                "schedule", f"{NAME} was resumed, and a queued firing waits for no run", *schedule.runs
            )

    def _is_open(self, run_id: str) -> bool:
        with suppress(*FAULTS):
            record = reading.run(self._deployment.store, run_id)
            return record is not None and not record.has_ended
        return False

    def _tell_of_ends(self) -> None:
        announced = self._deployment.services.bus.announced
        for number in range(self._told, len(announced)):
            if self._drawn("told", number) < TOLD and announced[number]["DetailType"] == "Run State Change":
                run_id = _run_of(announced[number])
                self._waiting.append(_Delivery(self._world.now, {"action": "ReleaseSchedules", "runId": run_id}))
        self._told = len(announced)

    def _end(self) -> None:
        """Waiting times are started first, so that every time has its verdict."""
        schedule = schedule_store.read(self._deployment.store, NAME)
        assert schedule is not None
        if schedule.state is ScheduleState.PAUSED:
            self._ask({"action": "ResumeSchedule", "name": NAME})
        elif schedule.waits:
            self._ask({"action": "ReleaseSchedules"})
        elif self._ask({"action": "DeleteSchedule", "name": NAME}) is not None:
            self.is_done = True
        for run_id in self._made_up:
            if not self._is_stored(run_id):
                self._jobs.pop(run_id, None)

    def _is_stored(self, run_id: str) -> bool:
        """Also one whose record was torn."""
        with suppress(*FAULTS):
            return reading.run(self._deployment.store, run_id) is not None
        return True

    def _ask(self, request: JSON) -> JSON | None:
        """The body of the answer; None if there was none, or a fault."""
        try:
            answer = self._desk.ask(request, UNNAMED if request["action"] in OF_THE_CLOCK else self._came)
        except (Crash, ClientError, BotoCoreError, *FAULTS):
            return None
        return dict(answer["body"]) if answer["statusCode"] == 200 else None

    def _named(self, submit: SubmitRequest) -> None:
        if submit.run_id not in self._jobs:
            self._made_up.append(submit.run_id)
            lasts = LONG_S if self._drawn("lasts") < 0.5 else (20.0, 240.0)
            self._jobs[submit.run_id] = SimulatedJob(submit.run_id, submit.spec, 2, 0.0, *lasts)
            self._deployment.members.came[submit.run_id] = self._came

    def _drawn(self, *what: object) -> float:
        return self._world.share("schedule", *what)


def _stamp(time: float) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _run_of(entry: JSON) -> str:
    return str(json.loads(entry["Detail"])["runId"])
