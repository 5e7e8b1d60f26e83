"""Health of containers and ports of tasks, as ECS registers and shows them."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.messages.ecs import task_seen
from argosy.model.services.ports import PortBinding
from tests.fakes.ecs_clouds import EcsCloud, refused, simulation_and_model

CHECK = {"command": ["CMD-SHELL", "exit 0"], "interval": 5, "timeout": 2, "retries": 1, "startPeriod": 0}


def test_a_definition_keeps_its_health_check_and_its_ports(cloud: EcsCloud) -> None:
    ports = [{"containerPort": 8080, "hostPort": 0, "protocol": "tcp"}]
    arn = cloud.define(container={"healthCheck": CHECK, "portMappings": ports})
    shown = cloud.client.describe_task_definition(taskDefinition=arn)["taskDefinition"]["containerDefinitions"][0]
    assert shown["healthCheck"] == CHECK
    assert shown["portMappings"][0]["containerPort"] == 8080


@pytest.mark.parametrize(
    "check",
    [
        {**CHECK, "interval": 4}, {**CHECK, "timeout": 61}, {**CHECK, "retries": 0}, {**CHECK, "startPeriod": 301},
        {**CHECK, "command": ["/bin/check", "x"]}, {**CHECK, "command": ["CMD"]},
    ],
)  # fmt: skip
def test_the_limits_of_ecs_are_kept(check: dict[str, Any]) -> None:
    cloud, _ = simulation_and_model()  # moto takes anything
    with refused("ClientException", "health check"):
        cloud.define(container={"healthCheck": check})


def test_health_changes_without_an_event_and_without_a_higher_version() -> None:
    cloud, model = simulation_and_model()
    cloud.register()
    cloud.define(container={"healthCheck": CHECK})
    arn = cloud.run()["tasks"][0]["taskArn"]
    cloud.report(arn, "RUNNING")
    before, heard = cloud.task(arn), len(cloud.events or ())
    assert (before["healthStatus"], before["containers"][0]["healthStatus"]) == ("UNKNOWN", "UNKNOWN")
    for status in ("HEALTHY", "UNHEALTHY"):
        model.report_health(arn, "main", status)
        shown = cloud.task(arn)
        assert (shown["healthStatus"], shown["containers"][0]["healthStatus"]) == (status, status)
        assert shown["version"] == before["version"]
        assert task_seen(shown).health == status
    assert len(cloud.events or ()) == heard
    model.set_agent_connected(shown["containerInstanceArn"], connected=False)
    assert cloud.task(arn)["healthStatus"] == "UNKNOWN"
    model.report_health(arn + "x", "main", "HEALTHY")  # a task that ECS has forgotten


def test_the_ports_that_the_agent_chose_are_shown_and_reported(virtual: EcsCloud) -> None:
    virtual.register()
    virtual.define(container={"portMappings": [{"containerPort": 8080}]})
    arn = virtual.run()["tasks"][0]["taskArn"]
    bindings = [{"bindIP": ip, "containerPort": 8080, "hostPort": 32768, "protocol": "tcp"} for ip in ("0.0.0.0", "::")]
    bindings.append({"bindIP": "0.0.0.0", "containerPort": 53, "hostPort": 32769, "protocol": "udp"})
    virtual.report(arn, "RUNNING", networkBindings=bindings)
    assert task_seen(virtual.task(arn)).ports == (PortBinding(8080, 32768),)
    detail = (virtual.events or [])[-1]["detail"]
    if "containers" in detail:
        assert task_seen(detail).ports == (PortBinding(8080, 32768),)


def test_a_port_that_no_column_can_hold_is_poison() -> None:
    task = {"taskArn": "arn:aws:ecs:us-east-1:1:task/a/b", "containers": [{"networkBindings": [
        {"containerPort": 8080, "hostPort": 65_536}]}]}  # fmt: skip
    with pytest.raises(ValueError, match="not between"):
        task_seen(task)
