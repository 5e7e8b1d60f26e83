"""The requests for an environment of a trial, sent to the api one after the other.

A request without an answer is repeated, and so is one that came too early. A request that is refused for another reason
is given up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from argosy.model.damage import FAULTS
from argosy.model.inbox import SubmitRequest
from tests.harness.simulation.audit.facts import TrialFacts
from tests.harness.simulation.controllers.deployment import SimulatedDeployment
from tests.harness.simulation.injection.boundary import Crash
from tests.harness.simulation.users.front_desk import FrontDesk
from tests.harness.simulation.world.members import UNNAMED, Arrival
from tests.harness.simulation.world.workload import SimulatedJob

JSON = dict[str, Any]

DENIED, CONFLICT, TOO_MANY = 403, 409, 429
MENDED_BY_TIME = ("is being deleted", "is corrupt", "is being changed by")
MOST_TRIES = 100  # seconds after such a refusal


@dataclass(slots=True)
class _SentRequest:
    """action: of the api; fields: its arguments; revision: the number that the trial gave it, 0 = none."""

    action: str
    fields: Mapping[str, Any]
    revision: int = 0
    asked: int = 0


class EnvironmentDesk:
    """For the environment of that name. facts: receives the jobs of deployments, which belong to the trial once there
    is
    such a run, and thaws.
    """

    def __init__(self, deployment: SimulatedDeployment, name: str, facts: TrialFacts) -> None:
        self._deployment, self._name, self._facts = deployment, name, facts
        self._desk = FrontDesk(deployment, self._named)
        self._wishes: deque[_SentRequest] = deque()
        self._job: Callable[[SubmitRequest], SimulatedJob] | None = None
        self.came = UNNAMED
        """How its user comes in."""
        self._numbers: dict[int, int] = {}
        """Of revisions: the api's number by the trial's."""
        self._newest = 0

    @property
    def is_waiting(self) -> bool:
        """Whether something has not been answered yet."""
        return bool(self._wishes) and not self._deployment.is_torn_down

    def create(self, revision: int, spec: JSON) -> None:
        self._wishes.append(_SentRequest("CreateEnvironment", {"spec": spec}, revision))

    def update(self, revision: int, spec: JSON) -> None:
        self._wishes.append(_SentRequest("UpdateEnvironment", {"name": self._name, "spec": spec}, revision))

    def deploy(self, revision: int, token: str, job: Callable[[SubmitRequest], SimulatedJob]) -> None:
        """job: of the run that the api has made up."""
        fields = {"name": self._name, "clientToken": token, "job": job}
        self._wishes.append(_SentRequest("StartDeployment", fields, revision))

    def roll_back(self, token: str, job: Callable[[SubmitRequest], SimulatedJob]) -> None:
        """job: of the run that the api has made up."""
        self._wishes.append(_SentRequest("RollBackDeployment", {"name": self._name, "clientToken": token, "job": job}))

    def change(self, action: str, **fields: Any) -> None:
        self._wishes.append(_SentRequest(action, {"name": self._name, **fields}))

    def stranger(self, request: JSON, came: Arrival) -> bool:
        """Whether a request of another user, who comes in like this, is accepted."""
        try:
            return bool(self._desk.ask(request, came)["statusCode"] == 200)
        except (Crash, ClientError, BotoCoreError, *FAULTS):
            return False

    def act(self) -> None:
        """Send the requests that are due. A deployment that is being torn down gets no requests."""
        while self.is_waiting:
            wish = self._wishes[0]
            if not self._is_done(wish):
                return
            self._wishes.popleft()

    def _is_done(self, wish: _SentRequest) -> bool:
        request = self._request(wish)
        if request is None:
            return True
        wish.asked += 1
        self._facts.thaws_asked[self._name] += wish.action == "ThawEnvironment"
        try:
            answer = self._desk.ask(request, self.came)
        except (Crash, ClientError, BotoCoreError, *FAULTS):
            return False
        if answer["statusCode"] == 400 and not _is_about_queues(answer["body"]["error"]):
            raise ValueError(f"the api refuses {wish.action}: {answer['body']}")
        if answer["statusCode"] == 200:
            self._learn(wish, answer["body"].get("revision"))
        if answer["statusCode"] == DENIED and self.came.queue:  # the owner has removed the queue
            self.came = self.came._replace(queue="")
            return False
        if answer["statusCode"] >= TOO_MANY:  # AWS has not said who it is
            return False
        return answer["statusCode"] != CONFLICT or self._is_given_up(wish, answer["body"]["error"]["message"])

    def _is_given_up(self, wish: _SentRequest, why: str) -> bool:
        """After a conflict. If the previous request got no answer, it checks whether the request took effect."""
        if any(words in why for words in MENDED_BY_TIME):
            return wish.asked >= MOST_TRIES
        if wish.action == "UpdateEnvironment" and wish.asked < MOST_TRIES:
            return not self._look()
        if wish.action == "CreateEnvironment" and wish.asked > 1 and self._look():
            self._learn(wish, self._newest)
        return True

    def _look(self) -> bool:
        """Whether the newest revision is known now."""
        try:
            answer = self._desk.ask({"action": "DescribeEnvironment", "name": self._name})
        except (Crash, ClientError, BotoCoreError, *FAULTS):
            return False
        if answer["statusCode"] == 200:
            self._newest = int(answer["body"]["latestRevision"])
        return bool(answer["statusCode"] == 200)

    def _request(self, wish: _SentRequest) -> JSON | None:
        """None if the revision that it refers to was refused."""
        request: JSON = {"action": wish.action, **wish.fields}
        if "job" in request:
            self._job = request.pop("job")
        if wish.action == "StartDeployment":
            if wish.revision not in self._numbers:
                return None
            request["revision"] = self._numbers[wish.revision]
        elif wish.action == "UpdateEnvironment":
            request["baseRevision"] = max(1, self._newest)  # the refusal names the newest revision
        return request

    def _learn(self, wish: _SentRequest, number: int | None) -> None:
        if wish.revision and number is not None:
            self._numbers[wish.revision] = self._newest = number

    def _named(self, submit: SubmitRequest) -> None:
        """The api is about to store a deployment with this run. Its spec has the expected values, because a user
        without an answer may mistake an earlier revision for their own.
        """
        if self._job is not None:
            job = self._job(submit)
            self._facts.offered[submit.run_id] = replace(job, run_id=submit.run_id, spec=submit.spec)
            self._deployment.members.came[submit.run_id] = self.came


def _is_about_queues(error: JSON) -> bool:
    """Whether its queue was removed, or a limit of it is below one task."""
    paths = {each["path"].removeprefix("spec.") for each in error.get("fieldList", ())}
    return bool(paths) and paths <= {"queue", "resources"}
