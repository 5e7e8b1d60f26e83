"""Does every view answer, whatever is stored?

Between two steps a reader sometimes asks one of the api's questions, at any moment: while requests wait in the inbox,
tasks start and documents change. `views`: each is answered, or refused as unknown; none raises, and a page's token
leads to the next page; past use of queues is shown only where it is remembered. A damaged document excuses a refusal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.harness.simulation.audit.facts import TrialFacts
from tests.harness.simulation.controllers.deployment import SimulatedDeployment
from tests.harness.simulation.users.front_desk import FrontDesk
from tests.harness.simulation.world.world import share

JSON = dict[str, Any]
READS = 0.25  # chance at each step of the trial
UNKNOWN = 404
_SPEC: JSON = {"version": 1, "name": "plan", "run": ["true"], "result": "none", "array": {"size": 2}}
_OF_RUNS: Sequence[JSON] = (
    {"action": "DescribeRun", "include": ["tasks", "statuses", "cost", "standing"], "maxResults": 3},
    {"action": "ExplainRun"},
    {"action": "ExplainRun"},
    {"action": "ExplainRun", "index": 0},
    {"action": "DescribeHistory"},
    {"action": "DescribeTask", "index": 0},
    {"action": "ListAttempts"},
    {"action": "ListTasks", "maxResults": 3},
)
_OF_ALL: Sequence[JSON] = (
    {"action": "ListRuns", "maxResults": 3},
    {"action": "DescribeCluster", "form": "columns", "include": ["attempts", "history"]},
    {"action": "DescribeCluster"},
    {"action": "ListTasks", "status": ["PENDING", "FAILED"], "failed": True},
    {"action": "ListInstances", "type": "c5.*", "where": "runningTasksCount >= 0", "maxResults": 1},
    {"action": "DescribeSharing"},
    {"action": "ListEnvironments"},
    {"action": "DescribeEnvironment", "name": "service", "include": ["specs", "endpoints"]},
    {"action": "ListSchedules"},
    {"action": "DescribeSchedule", "name": "every-so-often"},
    {"action": "PlanRun", "spec": _SPEC},
)


class Reader:
    """Of one trial. jobs: by run id, as `Trial.jobs`. asked: how many questions it has asked."""

    def __init__(self, deployment: SimulatedDeployment, jobs: Mapping[str, Any], facts: TrialFacts) -> None:
        self._desk = FrontDesk(deployment, lambda submit: None)
        self._jobs, self._facts, self._seed = jobs, facts, deployment.world.seed
        self.asked = 0

    def step(self) -> None:
        self.asked += 1
        if self._drawn("reads") >= READS:
            return
        request = dict(self._one_of(_OF_RUNS if self._drawn("subject") < 0.5 else _OF_ALL))
        if request in _OF_RUNS:
            request["runId"] = self._one_of(sorted(self._jobs))
        self._ask(request)

    def _ask(self, request: JSON) -> None:
        facts, name = self._facts, str(request["action"])
        try:
            answer = self._desk.read(request)
        except Exception as fault:  # noqa: BLE001 - whatever it is, a view must not raise
            if not facts.damaged:
                facts.violated("views", f"{name} raises {type(fault).__name__}: {fault}", str(request.get("runId")))
            return
        if answer["statusCode"] not in (200, UNKNOWN) and not facts.damaged:
            facts.violated("views", f"{name} is refused: {answer['body']}", str(request.get("runId")))
        elif answer["statusCode"] == 200 and answer["body"].get("nextToken") and "nextToken" not in request:
            self._ask({**request, "nextToken": answer["body"]["nextToken"]})
        elif answer["statusCode"] == 200 and name == "DescribeSharing" and not facts.damaged:
            shown = any(each["lately"] for each in answer["body"]["queues"])
            if shown and not facts.stored.sharing.recent.at:
                facts.violated("views", "DescribeSharing shows what queues used lately, and nothing is remembered")

    def _one_of(self, choices: Sequence[Any]) -> Any:
        return choices[int(len(choices) * self._drawn("choice"))]

    def _drawn(self, what: str) -> float:
        return share(self._seed, "reader", what, self.asked)
