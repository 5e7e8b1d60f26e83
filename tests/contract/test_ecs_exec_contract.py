"""Does ExecuteCommand open a session, or refuse one, as on ECS?"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.ecs_clouds import CLUSTER, EcsCloud, refused, simulation_and_model

ROLE = "arn:aws:iam::123456789012:role/argosy-task"
NOT_ENABLED = "execute command was not enabled when the task was run or the execute command agent isn"


def execute(cloud: EcsCloud, arn: str, **more: Any) -> dict[str, Any]:
    request = {"command": "ls -l", "interactive": True, **more}
    reply: dict[str, Any] = cloud.client.execute_command(cluster=CLUSTER, task=arn, **request)
    return reply


def started(cloud: EcsCloud, *, enabled: bool = True, status: str = "RUNNING", **definition: Any) -> str:
    cloud.register()
    cloud.define(taskRoleArn=ROLE, **definition)
    arn = str(cloud.run(enableExecuteCommand=enabled)["tasks"][0]["taskArn"])
    if status == "STOPPED":
        cloud.report(arn, "RUNNING")
    if status != "PENDING":
        cloud.report(arn, status)
    return arn


def agent(cloud: EcsCloud, arn: str) -> Any:
    return cloud.task(arn)["containers"][0].get("managedAgents")


def test_a_session_leads_to_the_container_that_was_meant() -> None:
    cloud, model = simulation_and_model()
    asked: list[tuple[str, str]] = []

    def opened(task_arn: str, container: str) -> tuple[str, str]:
        asked.append((task_arn, container))
        return "wss://there", "token"

    model.ledger.on_execute = opened
    arn = started(cloud)
    reply = execute(cloud, arn)
    assert asked == [(arn, "main")]
    assert (reply["taskArn"], reply["containerName"], reply["interactive"]) == (arn, "main", True)
    assert reply["clusterArn"].endswith(":cluster/argosy")
    assert reply["containerArn"] == cloud.task(arn)["containers"][0]["containerArn"]
    session = reply["session"]
    assert (session["streamUrl"], session["tokenValue"]) == ("wss://there", "token")
    assert session["sessionId"].startswith("ecs-execute-command-")


def test_the_agent_of_exec_is_as_alive_as_its_container(cloud: EcsCloud) -> None:
    arn = started(cloud, status="PENDING")
    assert [each["lastStatus"] for each in agent(cloud, arn)] == ["PENDING"]
    cloud.report(arn, "RUNNING")
    [running] = agent(cloud, arn)
    assert (running["name"], running["lastStatus"]) == ("ExecuteCommandAgent", "RUNNING")
    assert running["lastStartedAt"] == cloud.task(arn)["startedAt"]
    cloud.report(arn, "STOPPED")
    assert [each["lastStatus"] for each in agent(cloud, arn)] == ["STOPPED"]


def test_events_show_the_agent_as_recorded_events_do(virtual: EcsCloud) -> None:
    """Like everything in an event they are JSON: tests/data/eventbridge.json."""
    started(virtual)
    assert virtual.events is not None
    shown = [
        each["detail"]["containers"][0]["managedAgents"] for each in virtual.events if "lastStatus" in each["detail"]
    ]
    assert json.loads(json.dumps(shown[-1])) == [{"name": "ExecuteCommandAgent", "status": "RUNNING"}]


def test_the_agent_cannot_work_in_a_root_that_is_read_only(cloud: EcsCloud) -> None:
    arn = started(cloud, container={"readonlyRootFilesystem": True})
    assert [each["lastStatus"] for each in agent(cloud, arn)] == ["STOPPED"]
    with refused("InvalidParameterException", NOT_ENABLED):
        execute(cloud, arn)


def test_a_task_that_was_started_without_has_no_agent(cloud: EcsCloud) -> None:
    arn = started(cloud, enabled=False)
    assert agent(cloud, arn) is None
    with refused("InvalidParameterException", NOT_ENABLED):
        execute(cloud, arn)


@pytest.mark.parametrize("status", ["PENDING", "STOPPED"])
def test_a_task_that_does_not_run_is_refused(cloud: EcsCloud, status: str) -> None:
    arn = started(cloud, status=status)
    with refused("InvalidParameterException", NOT_ENABLED):
        execute(cloud, arn)


def test_an_unconnected_agent_is_reported(cloud: EcsCloud) -> None:
    """Nothing in this cloud runs containers."""
    with refused("TargetNotConnectedException"):
        execute(cloud, started(cloud))


def test_tasks_clusters_and_containers_that_do_not_exist_are_refused(cloud: EcsCloud) -> None:
    arn = started(cloud)
    with refused("InvalidParameterException", "not found"):
        execute(cloud, arn[:-4] + "0000")
    with refused("ClusterNotFoundException"):
        cloud.client.execute_command(cluster="other", task=arn, command="ls", interactive=True)
    with refused("InvalidParameterException", "no container named"):
        execute(cloud, arn, container="sidecar")


def test_of_several_containers_one_has_to_be_named(cloud: EcsCloud) -> None:
    sizes = {"image": "argosy/digits", "cpu": 128, "memory": 128}
    arn = started(cloud, containers=[{"name": "main", **sizes}, {"name": "beside", **sizes}])
    with refused("InvalidParameterException", "must be specified"):
        execute(cloud, arn)


def test_only_interactive_sessions_exist(cloud: EcsCloud) -> None:
    with refused("InvalidParameterException", "Interactive is the only mode"):
        execute(cloud, started(cloud), interactive=False)


def test_a_task_without_a_role_cannot_be_started_with_exec(cloud: EcsCloud) -> None:
    cloud.register()
    cloud.define()
    with refused("InvalidParameterException", "taskRoleArn"):
        cloud.run(enableExecuteCommand=True)
