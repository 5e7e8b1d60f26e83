"""Every action of environments and schedules, called with the AWS CLI: `aws lambda invoke` against local mode."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from argosy.api.environments.actions import ACTIONS as OF_ENVIRONMENTS
from argosy.api.schedules.actions import ACTIONS as OF_SCHEDULES
from tests.fakes.local_mode import local_aws
from tests.fakes.waiting import until
from tests.readmes import local_options

pytestmark = pytest.mark.e2e

JSON = dict[str, Any]
Ask = Callable[..., JSON]
SERVICE: JSON = {
    "version": 1,
    "kind": "service",
    "name": "web",
    "run": "exec sleep 100000",
    "result": "none",
    "resources": {"vcpus": 0.5, "memory": 128},
    "service": {"desired": 1, "update": {"healthySeconds": 1}},
}
STUCK = {"minHealthyPercent": 100, "maxOverPercent": 0}
DAEMON: JSON = {**{name: value for name, value in SERVICE.items() if name != "service"}, "kind": "daemon"}
RUN: JSON = {
    "version": 1,
    "name": "tick",
    "run": ["python", "-c", "print(1)"],
    "result": "stdout",
    "array": {"size": 1},
}
NIGHTLY: JSON = {"name": "nightly", "expression": "cron(0 3 * * ? *)", "zone": "Europe/Berlin", "spec": RUN}
PATIENCE_S = 90.0
ASKED: set[str] = set()
"""Actions that were answered with what was asked for."""


@pytest.fixture(scope="module")
def invoke(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """The function's answer to an action, as a user's shell gets it.

    The AWS CLI's own program runs in this process: importing it costs six times as much as one invocation, and making
    its table of commands as much as one.
    """
    clidriver = pytest.importorskip("awscli.clidriver", reason="the AWS CLI is not installed")
    folder, count = tmp_path_factory.mktemp("replies"), itertools.count()
    driver = clidriver.create_clidriver()
    with local_aws(local_options()) as aws:

        def invoked(action: str, **fields: Any) -> JSON:
            request, reply = folder / f"request-{next(count)}.json", folder / f"reply-{next(count)}.json"
            request.write_text(json.dumps({"action": action, **fields}))
            words = ["--function-name", "argosy-api", "--payload", f"fileb://{request}", str(reply)]
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                status = driver.main(["--endpoint-url", aws.endpoint_url, "lambda", "invoke", *words])
            assert status == 0, said.getvalue()
            assert '"StatusCode": 200' in said.getvalue()  # local mode's threads print there too
            answer: JSON = json.loads(reply.read_text())
            if answer.get("statusCode") == 200:
                ASKED.add(action)
            return answer

        yield invoked


@pytest.fixture(scope="module")
def ask(invoke: Ask) -> Ask:
    """The body of an answer; anything but 200 fails the test."""

    def asked(action: str, **fields: Any) -> JSON:
        answer = invoke(action, **fields)
        assert answer["statusCode"] == 200, answer
        return dict(answer["body"])

    return asked


@pytest.fixture(scope="module")
def refused(invoke: Ask) -> Callable[..., tuple[int, str, list[str]]]:
    """Status, code and message of a refusal, and the members that it names."""

    def asked(action: str, **fields: Any) -> tuple[int, str, list[str]]:
        answer = invoke(action, **fields)
        error = answer["body"]["error"]
        assert set(error) >= {"code", "message", "requestId"}, error
        assert error["requestId"]
        named = [f"{each['path']}: {each['message']}" for each in error.get("fieldList", ())]
        return answer["statusCode"], f"{error['code']}: {error['message']}", named

    return asked


def status(ask: Ask, name: str = "web") -> str:
    return str(ask("DescribeEnvironment", name=name)["status"])


def test_a_service_from_its_creation_to_its_end(ask: Ask, refused: Ask) -> None:
    assert ask("CreateEnvironment", spec=SERVICE) == {"name": "web", "revision": 1, "warnings": []}
    assert refused("CreateEnvironment", spec=SERVICE)[0] == 409
    first = ask("StartDeployment", name="web", clientToken="once")
    assert (first["deploying"], first["created"]) == (1, True)
    assert ask("StartDeployment", name="web", clientToken="once")["created"] is False
    until(lambda: status(ask) == "COMPLETED", PATIENCE_S)
    changed = {**SERVICE, "run": "exec sleep 100001"}
    updated = ask("UpdateEnvironment", name="web", baseRevision=1, spec=changed)
    assert (updated["revision"], updated["created"]) == (2, True)
    code, said, _ = refused("UpdateEnvironment", name="web", baseRevision=1, spec=SERVICE)
    assert (code, "web is 2" in said) == (409, True)
    code, said, _ = refused("StartDeployment", name="web", revision=2, clientToken="once")
    assert (code, said.endswith("revision 1")) == (409, True)
    assert ask("StartDeployment", name="web")["deploying"] == 2
    until(lambda: ask("DescribeEnvironment", name="web")["completedRevision"] == 2, PATIENCE_S)
    assert refused("StopDeployment", name="web")[0] == 409
    assert ask("RollBackDeployment", name="web")["deploying"] == 1
    until(lambda: ask("DescribeEnvironment", name="web")["completedRevision"] == 1, PATIENCE_S)
    ask("FreezeEnvironment", name="web", reason="hands off")
    until(lambda: status(ask) == "FROZEN", PATIENCE_S)
    assert ask("DescribeEnvironment", name="web")["statusReason"] == "hands off"
    assert ask("StartDeployment", name="web", revision=2)["frozenByUser"] is True
    until(lambda: ask("DescribeEnvironment", name="web")["targetRevision"] == 2, PATIENCE_S)
    assert status(ask) == "FROZEN"
    ask("ThawEnvironment", name="web")
    until(lambda: ask("DescribeEnvironment", name="web")["completedRevision"] == 2, PATIENCE_S)
    assert ask("ScaleEnvironment", name="web", desired=0)["desired"] == 0
    until(lambda: ask("DescribeEnvironment", name="web")["running"] == 0, PATIENCE_S)
    shown = ask("DescribeEnvironment", name="web", include=["specs"])
    assert [each["spec"]["service"]["desired"] for each in shown["revisions"]] == [1, 1]
    listed = ask("ListEnvironments", maxResults=1)
    assert ([each["name"] for each in listed["environments"]], listed["nextToken"]) == (["web"], None)
    assert ask("DeleteEnvironment", name="web")["status"] == "DELETING"
    until(lambda: not ask("ListEnvironments")["environments"], PATIENCE_S)
    assert refused("DescribeEnvironment", name="web")[0] == 404


def test_a_deployment_under_way_is_stopped(ask: Ask) -> None:
    never = {**SERVICE, "name": "never", "service": {"desired": 1, "update": {"healthySeconds": 600}}}
    ask("CreateEnvironment", spec=never)
    ask("StartDeployment", name="never")
    until(lambda: ask("DescribeEnvironment", name="never")["deployments"], PATIENCE_S)
    ask("StopDeployment", name="never", reason="a bad idea")
    until(lambda: status(ask, "never") == "FROZEN", PATIENCE_S)
    assert ask("DescribeEnvironment", name="never")["deployments"][-1]["status"] == "STOPPED"
    ask("DeleteEnvironment", name="never")


@pytest.mark.parametrize(
    ("action", "fields", "code", "named"),
    [
        ("CreateEnvironment", {"spec": {**SERVICE, "service": {"desired": -1}}}, 400, "service.desired"),
        ("CreateEnvironment", {"spec": {**SERVICE, "service": {"desired": 1, "update": STUCK}}}, 400, "service.update"),
        ("CreateEnvironment", {"spec": {**DAEMON, "resources": {"memory": 9_000_000}}}, 400, "resources.memory"),
        ("CreateEnvironment", {"spec": RUN}, 400, "spec.kind"),
        ("CreateEnvironment", {"spec": SERVICE, "desire": 3}, 400, "desire"),
        ("ScaleEnvironment", {"name": "web", "desired": -1}, 400, "desired"),
        ("ScaleEnvironment", {"name": "Web!", "desired": 1}, 400, "name"),
        ("DescribeEnvironment", {"name": "none"}, 404, ""),
        ("StartDeployment", {"name": "none"}, 404, ""),
        ("RollBackDeployment", {"name": "none"}, 404, ""),
        ("StopDeployment", {"name": "none"}, 404, ""),
        ("FreezeEnvironment", {"name": "none"}, 404, ""),
        ("ThawEnvironment", {"name": "none"}, 404, ""),
        ("DeleteEnvironment", {"name": "none"}, 404, ""),
        ("CreateSchedule", {**NIGHTLY, "expression": "cron(0 3 30 2 ? *)"}, 400, "expression"),
        ("CreateSchedule", {**NIGHTLY, "zone": "Europe/Atlantis"}, 400, "zone"),
        ("CreateSchedule", {**NIGHTLY, "spec": {**RUN, "array": {"size": 0}}}, 400, "array.size"),
        ("CreateSchedule", {**NIGHTLY, "overlap": "maybe"}, 400, "overlap"),
        ("ListSchedules", {"nextToken": "not a token"}, 400, "nextToken"),
        ("ListSchedules", {"maxResults": 0}, 400, "maxResults"),
        ("PauseSchedule", {"name": "none"}, 404, ""),
        ("DeleteSchedule", {"name": "none"}, 404, ""),
    ],
)
def test_what_is_refused_is_one_sentence_that_names_the_member(
    ask: Ask, refused: Ask, action: str, fields: JSON, code: int, named: str
) -> None:
    status_code, said, members = refused(action, **fields)
    assert status_code == code, (said, members)
    if named:
        assert [each.partition(":")[0] for each in members] == [named]


def test_an_action_that_there_is_not_is_refused_with_those_that_there_are(refused: Ask) -> None:
    code, _, members = refused("DeployEnvironment", name="web")
    assert code == 400
    assert "StartDeployment" in members[0]


def test_a_schedule_from_its_creation_to_its_end(ask: Ask, refused: Ask) -> None:
    made = ask("CreateSchedule", **NIGHTLY)
    assert (made["created"], made["armed"], made["revision"]) == (True, True, 1)
    assert ask("CreateSchedule", **NIGHTLY)["created"] is False
    assert refused("CreateSchedule", **{**NIGHTLY, "expression": "cron(0 4 * * ? *)"})[0] == 409
    assert ask("UpdateSchedule", name="nightly", revision=1, overlap="queue")["overlap"] == "queue"
    code, said, _ = refused("UpdateSchedule", name="nightly", revision=1, overlap="skip")
    assert (code, "is at revision 2 and not at 1" in said) == (409, True)
    assert ask("PauseSchedule", name="nightly")["state"] == "PAUSED"
    assert ask("ResumeSchedule", name="nightly")["state"] == "ENABLED"
    started = ask("RunScheduleNow", name="nightly", clientToken="now")["runId"]
    assert ask("RunScheduleNow", name="nightly", clientToken="now")["runId"] == started
    assert ask("DescribeSchedule", name="nightly")["fires"][-1]["runId"] == started
    ask("ReleaseSchedules", runId=started)
    assert len(ask("DescribeSchedule", name="nightly", times=2)["nextTimes"]) == 2
    missed = ask("FireSchedule", name="nightly", scheduledTime="2026-01-01T02:00:00Z")
    assert missed["verdict"] is None
    ask("CreateSchedule", **{**NIGHTLY, "name": "often"})
    first = ask("ListSchedules", maxResults=1)
    second = ask("ListSchedules", maxResults=1, nextToken=first["nextToken"])
    assert [each["name"] for page in (first, second) for each in page["schedules"]] == ["nightly", "often"]
    for name in ("nightly", "often"):
        assert ask("DeleteSchedule", name=name)["state"] == "DELETED"
    assert ask("ListSchedules")["schedules"] == []
    assert refused("DescribeSchedule", name="nightly")[0] == 404


def test_an_open_run_is_changed(ask: Ask, refused: Ask) -> None:
    run_id = ask("SubmitRun", spec={**RUN, "notBefore": "1h"})["runId"]
    changes = {"priority": 5, "budgetUsd": 20, "maxConcurrentTasks": 2}
    asked = {"runId": run_id, "changes": changes, "clientToken": "once", "reason": "it is urgent"}
    assert [ask("UpdateRun", **asked)["created"] for _ in range(2)] == [True, False]

    def taken_in() -> bool:
        return any(each["type"] == "run.updated" for each in ask("ListChanges", runId=run_id)["changes"])

    assert until(taken_in, PATIENCE_S)
    assert ask("DescribeRun", runId=run_id)["changes"] == changes
    code, _, members = refused("UpdateRun", runId=run_id, changes={"array": {"size": 3}})
    assert (code, members[0].partition(":")[0]) == (400, "changes.array")
    ask("CancelRun", runId=run_id)
    until(lambda: ask("DescribeRun", runId=run_id)["status"] == "CANCELLED", PATIENCE_S)
    assert refused("UpdateRun", runId=run_id, changes={"priority": 6})[0] == 409


def test_what_the_clock_asks_wrongly_is_a_fault_and_no_answer(invoke: Ask) -> None:
    """An answer that says no counts as delivered."""
    answer = invoke("FireSchedule", name="nightly", scheduledTime="soon")
    assert "statusCode" not in answer
    assert "must be a time such as 2026-11-24T03:00:00Z" in answer["errorMessage"]


def test_every_action_was_asked() -> None:
    assert {model.__name__ for model in (*OF_ENVIRONMENTS, *OF_SCHEDULES)} <= ASKED
