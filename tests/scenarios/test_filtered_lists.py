"""While a simulated run works, fails and is interrupted, every list of tasks and instances agrees with the controller's
state: one filter after another, in pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.api.actions import Api
from argosy.api.admission.specs import DeploymentLimits, Sources
from argosy.model.attempts import AttemptStatus
from argosy.model.instances import InstanceStatus
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from tests.builders import CELL, RUN_ID
from tests.fakes.api import Definitions, Images, Items, Wake
from tests.scenarios.controlled import Controlled, failing

TASKS = 40


def listed(api: Api, action: str, what: str, **filters: Any) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    request = {"action": action, "maxResults": 7, **filters}
    while True:
        reply = api.handle(request, "r")
        assert reply["statusCode"] == 200, reply
        rows += reply["body"][what]
        if reply["body"]["nextToken"] is None:
            return rows
        request = {**request, "nextToken": reply["body"]["nextToken"]}


def where_tasks_are(state: State) -> dict[int, str]:
    """Index -> instance of the attempt that is alive, else of the last one."""
    run = state.runs[RUN_ID]
    places = {index: bytes(run.tasks["instance"][index]).decode() for index in range(TASKS)}
    table = state.attempts
    for row in table.of_run(run.number).tolist():
        places[int(table["index"][row])] = bytes(table["instance"][row]).decode()
    return places


def check_tasks(api: Api, state: State) -> None:
    statuses = [TaskStatus(each).name for each in state.runs[RUN_ID].tasks.statuses().tolist()]
    for status in TaskStatus:
        rows = listed(api, "ListTasks", "tasks", status=[status.name])
        assert [each["index"] for each in rows] == [i for i, name in enumerate(statuses) if name == status.name]
    places = where_tasks_are(state)
    for instance in state.instances:
        expected = [index for index in range(TASKS) if places[index] == instance]
        rows = listed(api, "ListTasks", "tasks", runId=RUN_ID, instance=instance)
        assert [(each["index"], each["instance"]) for each in rows] == [(index, instance) for index in expected]
    rows = listed(api, "ListTasks", "tasks", cell=CELL)
    assert [each["index"] for each in rows] == [index for index in range(TASKS) if places[index]]


def check_instances(api: Api, state: State) -> None:
    for status in InstanceStatus:
        rows = listed(api, "ListInstances", "instances", status=[status.value])
        assert [each["instanceId"] for each in rows] == sorted(
            each.id for each in state.instances.values() if each.status is status
        )
    rows = listed(api, "ListInstances", "instances", where="attribute:ecs.instance-type == c5.xlarge")
    assert {each["instanceId"] for each in rows} == {
        each.id for each in state.instances.values() if each.arn and each.alive
    }
    busy = {each["instanceId"] for each in listed(api, "ListInstances", "instances", where="runningTasksCount > 0")}
    table = state.attempts
    at_work = {bytes(table["instance"][row]).decode() for row in table.placed().tolist()}
    assert busy == {name for name in at_work if state.instances[name].alive}


def test_lists_say_at_every_moment_what_the_controller_knows() -> None:
    cluster = Controlled()
    failing(cluster, 3, 17)
    cluster.submit(TASKS, retryStrategy={"attempts": 2})
    api = Api(
        store=cluster.store,
        wake=Wake(),
        sources=Sources(Images(), Items(), Definitions()),
        limits=DeploymentLimits("s3://results/", frozenset({"results"}), {}),
        cluster="argosy",
        cells=[CELL],
        now=cluster.world.clock,
    )
    engine, interrupted = cluster.controllers[0], ""
    seen: set[str] = set()
    while not cluster.step():
        state = engine.state
        assert state is not None
        if RUN_ID not in state.runs:
            continue
        running = state.attempts.has_status(AttemptStatus.RUNNING).nonzero()[0].tolist()
        if running and not interrupted:
            interrupted = bytes(state.attempts["instance"][running[0]]).decode()
            cluster.world.interrupt(interrupted, notice_s=4.0)
        statuses = {TaskStatus(each).name for each in state.runs[RUN_ID].tasks.statuses().tolist()}
        if statuses - seen or cluster.ticks % 5 == 0:
            check_tasks(api, state)
            check_instances(api, state)
        seen |= statuses
    assert interrupted
    assert seen >= {"PENDING", "RUNNING", "SUCCEEDED", "FAILED"}
    assert [each["index"] for each in listed(api, "ListTasks", "tasks", runId=RUN_ID, failed=True)] == [3, 17]
    assert [each["index"] for each in listed(api, "ListTasks", "tasks", runId=RUN_ID, status=["FAILED"])] == [3, 17]
