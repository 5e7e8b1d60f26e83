"""A user's request to the api: it is answered or refused, and what is accepted breaks no answer and no tick.

An accepted request is folded into the controller's state, a tick is decided from it, and then every action that reads
has to answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from argosy.api.access.entrance import READS
from argosy.catalogue.lookup import load_catalogue
from argosy.model.moment import Moment
from argosy.scheduler.decide import decide
from tests.builders import BUILT, NOW, POLICY, instance_id
from tests.fakes.api import SPEC
from tests.fakes.schedules import NIGHTLY, ScheduleDesk, stamp
from tests.harness.simulation.world.members import Members

JSON = dict[str, Any]
INPUTS_A_STATE = 500  # then a fresh one: what an input leaves behind must not slow the next ones down
REPLY_LIMIT = 6_000_000  # bytes: Lambda's
STATUS_CODES = {200, 400, 403, 404, 409, 429}
RUNS_READ = 2  # the newest: the others were read when they were new
SERVICE: JSON = {
    "version": 1,
    "kind": "service",
    "name": "web",
    "container": {"image": "argosy/web"},
    "resources": {"vcpus": 0.5, "memory": 256},
    "service": {"desired": 3},
}
DOCUMENT: JSON = {
    "version": 1,
    "limits": {"usdPerHour": 10},
    "queues": {"a": {"weight": 3, "guarantee": {"vcpus": 2}}, "b": {"within": "owners", "cap": {"vcpus": 8}}},
}
EXPRESSIONS = (
    "attribute:ecs.instance-type =~ (g5|p3).* and attribute:ecs.availability-zone != us-east-1d",
    "not(task:group == database) or task:startedBy in [a, 'b c', \"d\"]",
    "runningTasksCount >= 1 && registeredAt < 2018-06-18T22:28:28+00:00",
    "agentVersion < 1.14.5 || !agentConnected == false",
    "ec2InstanceId in ['i-1', 'i-4'] and attribute:stack !exists",
    "attribute:color !~ [^a-z]+(red|green)?",
)
UNSTORED = {model.__name__ for model in READS} | {"ValidateRun", "PlanRun"}


class Requests:
    """The api's answers to JSON texts; half of them through the entrance of a queue."""

    def __init__(self, inputs_a_state: int = INPUTS_A_STATE) -> None:
        self.desk, self.left, self._most = ScheduleDesk(), 0, inputs_a_state
        self.accepted = 0

    def __call__(self, data: bytes) -> None:
        try:
            request = json.loads(data)
        except (ValueError, RecursionError):
            return
        if not self.left:
            self.desk, self.left = open_desk(), self._most
        self.left -= 1
        self.desk.time += 1
        alias = "q-default" if self.left % 2 else ""
        reply = self.desk.api.handle(request, f"request-{self.left}", alias)
        assert reply["statusCode"] in STATUS_CODES, reply
        assert len(json.dumps(reply, allow_nan=False)) < REPLY_LIMIT
        if reply["statusCode"] == 200 and request.get("action") not in UNSTORED:
            self.accepted += 1
            self.desk.fold_in()
            decide(Moment(self.desk.state, load_catalogue(), self.desk.time, POLICY))
            all_answer(self.desk)


def open_desk() -> ScheduleDesk:
    """One run in the controller's state (its id is in `requests`) and one in the inbox; a service, and a schedule."""
    desk = ScheduleDesk()
    desk.api.identities = Members()
    desk.submit()
    desk.body("CreateEnvironment", spec=SERVICE)
    desk.body("StartDeployment", name="web", clientToken="d-1")
    desk.body("CreateSchedule", **NIGHTLY)
    desk.fold_in()
    desk.submit(token="t-2", name="waiting")
    BUILT.clear()
    return desk


def all_answer(desk: ScheduleDesk) -> None:
    """Every action that reads, about what there is."""
    for request in _reads(desk):
        reply = desk.api.handle(request, "read")
        assert reply["statusCode"] == 200, (request, reply)
        assert len(json.dumps(reply, allow_nan=False)) < REPLY_LIMIT


def _reads(desk: ScheduleDesk) -> Iterator[JSON]:
    for run in desk.body("ListRuns", maxResults=RUNS_READ)["runs"]:
        about = {"runId": run["runId"]}
        yield {"action": "DescribeRun", **about, "include": ["tasks", "statuses", "cost", "standing"]}
        yield {"action": "DescribeTask", **about, "index": 0}
        yield from (
            {"action": name, **about} for name in ("ExplainRun", "DescribeHistory", "ListAttempts", "ListTasks")
        )
    for form in ("objects", "columns"):
        yield {"action": "DescribeCluster", "form": form, "include": ["attempts", "history"]}
    for each in desk.body("ListEnvironments")["environments"]:
        yield {"action": "DescribeEnvironment", "name": each["name"], "include": ["specs", "endpoints"]}
    for each in desk.body("ListSchedules")["schedules"]:
        yield {"action": "DescribeSchedule", "name": each["name"], "times": 100}
    yield from ({"action": name} for name in ("ListChanges", "ListTasks", "ListInstances", "DescribeSharing"))


def requests() -> list[JSON]:
    """One or more of every action, most of which are accepted by `open_desk`."""
    run_id = open_desk().body("ListRuns")["runs"][-1]["runId"]
    full = {**SPEC, "capacity": {"budgetUsd": 5, "deadline": "10h"}, "placement": {"constraints": [EXPRESSIONS[0]]}}
    return [
        {"action": "SubmitRun", "clientToken": "t-3", "spec": full},
        Members().event({"action": "SubmitRun", "clientToken": "t-6", "spec": SPEC}, "alice", NOW),
        {"action": "ValidateRun", "spec": full},
        {"action": "PlanRun", "spec": SPEC},
        {"action": "DescribeRun", "runId": run_id, "include": ["tasks", "cost"], "maxResults": 10, "nextToken": "NQ"},
        {"action": "ListRuns", "maxResults": 1, "nextToken": "NQ"},
        {"action": "CancelRun", "runId": run_id, "dependents": True, "reason": "enough"},
        {"action": "UpdateRun", "runId": run_id, "changes": {"priority": 5, "deadline": "2h"}, "clientToken": "t-5"},
        {"action": "RetryRun", "runId": run_id, "failed": True, "cancelled": True, "clientToken": "t-4"},
        {"action": "ExplainRun", "runId": run_id, "index": 1},
        {"action": "DescribeTask", "runId": run_id, "index": 1},
        {"action": "DescribeHistory", "runId": run_id, "nextToken": "NQ"},
        {"action": "ListAttempts", "runId": run_id, "nextToken": "NQ"},
        {"action": "DescribeCluster", "form": "columns", "include": ["history"], "historyHours": 2, "until": NOW},
        {"action": "ScaleCluster", "instances": 1, "instanceTypes": ["p3.8xlarge"], "until": NOW + 60},
        {"action": "DrainInstance", "instanceId": instance_id(1), "until": NOW + 600},
        {"action": "ListChanges", "sinceSeconds": 600, "types": ["run"], "maxResults": 10},
        {"action": "ListChanges", "since": "1.1"},
        {"action": "ListTasks", "runId": run_id, "status": ["PENDING", "FAILED"], "failed": False, "maxResults": 2},
        {"action": "ListInstances", "status": ["ACTIVE"], "type": "p3.*", "where": EXPRESSIONS[0], "maxResults": 1},
        {"action": "CreateEnvironment", "spec": {**SERVICE, "name": "other"}},
        {
            "action": "UpdateEnvironment",
            "name": "web",
            "baseRevision": 1,
            "spec": {**SERVICE, "service": {"desired": 4}},
        },
        {"action": "StartDeployment", "name": "web", "revision": 1, "clientToken": "d-2"},
        {"action": "RollBackDeployment", "name": "web", "clientToken": "d-3"},
        {"action": "StopDeployment", "name": "web", "reason": "enough"},
        {"action": "ScaleEnvironment", "name": "web", "desired": 2},
        {"action": "FreezeEnvironment", "name": "web", "reason": "enough"},
        {"action": "ThawEnvironment", "name": "web"},
        {"action": "DeleteEnvironment", "name": "web", "tasks": "leave"},
        {"action": "DescribeEnvironment", "name": "web", "include": ["specs"]},
        {"action": "ListEnvironments", "prefix": "w", "maxResults": 1},
        {"action": "CreateSchedule", **NIGHTLY, "name": "once", "expression": "at(2027-03-28T02:30:00)"},
        {"action": "CreateSchedule", **NIGHTLY, "name": "often", "expression": "rate(5 minutes)", "startWithin": 600},
        {"action": "UpdateSchedule", "name": "nightly", "revision": 1, "expression": "cron(0 4 ? * MON *)"},
        {"action": "DescribeSchedule", "name": "nightly", "times": 3},
        {"action": "ListSchedules", "maxResults": 2, "nextToken": "NQ"},
        {"action": "PauseSchedule", "name": "nightly"},
        {"action": "ResumeSchedule", "name": "nightly"},
        {"action": "RunScheduleNow", "name": "nightly", "clientToken": "s-1"},
        {"action": "DeleteSchedule", "name": "nightly"},
        {"action": "FireSchedule", "name": "nightly", "scheduledTime": stamp(NOW)},
        {"action": "ReleaseSchedules", "runId": run_id},
        {"action": "ApplySharing", "document": DOCUMENT, "revision": 0},
        {"action": "DescribeSharing"},
    ]
