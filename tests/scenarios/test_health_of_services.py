"""Services with a health command: whether a task serves, the fate of one that does not, and its address."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.api.environments.views import endpoints
from argosy.model.attempts import TaskHealth
from argosy.model.run_record import RunRecord
from argosy.model.services.environments import DeploymentStatus
from argosy.model.services.ports import unpacked
from argosy.spec.parse import parse_spec, to_json
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled
from tests.scenarios.services import FOR_EVER_S, ask, deploy, run_of, running, state_of, status, until, variables, web

HEALTH = {"command": ["CMD-SHELL", "check"], "intervalSeconds": 5, "retries": 2}


def form(desired: int, command: str = "serve", start_s: int = 0, **update: Any) -> dict[str, Any]:
    health = {**HEALTH, "startSeconds": start_s}
    container = {"image": "argosy/web", "command": [command], "health": health, "ports": [{"container": 8080}]}
    spec = {
        "version": 1,
        "kind": "service",
        "name": "web",
        "container": container,
        "resources": {"vcpus": 0.5, "memory": 512},
        "service": {"desired": desired, "update": update},
    }
    return to_json(parse_spec(spec))


def cluster_whose_health(says: Any, **fields: Any) -> Controlled:
    """says: (task's variables, seconds since its start) -> whether the health command succeeds."""
    cluster = Controlled(work_s=FOR_EVER_S, **fields)

    def behaviour(task: dict[str, Any], instance: Any) -> TaskBehaviour:
        told = variables(task)
        return TaskBehaviour(FOR_EVER_S, is_well=lambda age_s: says(told, age_s))

    cluster.world.workload = behaviour
    return cluster


def always(told: dict[str, str], age_s: float) -> bool:
    return True


def never(told: dict[str, str], age_s: float) -> bool:
    return False


def health(cluster: Controlled) -> list[int]:
    table = state_of(cluster).attempts
    return table["health"][table.live()].tolist()


def test_a_deployment_is_not_completed_before_every_task_says_that_it_is_healthy() -> None:
    cluster = cluster_whose_health(lambda told, age_s: age_s >= 100)
    deploy(cluster, 1, form(2, start_s=200, healthySeconds=1))
    until(cluster, lambda: running(cluster).values() and sum(running(cluster).values()) == 2)
    cluster.run_for(40)
    assert status(cluster) is not DeploymentStatus.COMPLETED
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    assert health(cluster) == [TaskHealth.HEALTHY] * 2


def test_health_is_taken_in_although_no_event_tells_of_it_and_the_version_of_the_task_stays() -> None:
    cluster = cluster_whose_health(always)
    deploy(cluster, 1, form(1, healthySeconds=1))
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    told = [each for each in cluster.world.events if each["detail-type"] == "ECS Task State Change"]
    assert not [each for each in told if "healthStatus" in each["detail"] or "healthStatus" in str(each["detail"])]


def test_a_revision_whose_tasks_never_become_healthy_fails_and_is_rolled_back() -> None:
    cluster = cluster_whose_health(lambda told, age_s: told["ARGOSY_RUN_ID"].startswith("web-261121-062701"))
    deploy(cluster, 1, form(3, healthySeconds=1))
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    deploy(cluster, 2, form(3, "other", healthySeconds=1))
    until(cluster, lambda: web(cluster).deployments[1].status is DeploymentStatus.FAILED)
    assert "health command" in web(cluster).deployments[1].reason
    assert web(cluster).deployments[1].failures >= 3
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    assert web(cluster).completed == 1
    assert running(cluster) == {run_of(cluster, 1).id: 3}


def test_an_unhealthy_task_is_replaced_once_its_successor_is_healthy() -> None:
    bad: list[float] = []
    cluster = cluster_whose_health(
        lambda told, age_s: not (bad and told["ARGOSY_TASK_INDEX"] == "1" and told["ARGOSY_TASK_ATTEMPT"] == "1")
    )
    deploy(cluster, 1, form(3, healthySeconds=1, maxOverPercent=34))
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    assert run_of(cluster, 1).attempts == 3
    bad.append(cluster.world.now)
    most = 0

    def is_replaced() -> bool:
        nonlocal most
        most = max(most, sum(running(cluster).values()))
        return run_of(cluster, 1).attempts == 4 and health(cluster) == [TaskHealth.HEALTHY] * 3

    until(cluster, is_replaced)
    assert most == 4, "the successor comes first"
    assert len(web(cluster).deployments) == 1
    cluster.run_for(300)
    assert run_of(cluster, 1).attempts == 4


def test_without_room_for_one_more_the_unhealthy_task_is_stopped_first() -> None:
    bad: list[float] = []
    cluster = cluster_whose_health(lambda told, age_s: not bad or told["ARGOSY_TASK_INDEX"] != "1" or age_s < 60)
    deploy(cluster, 1, form(2, healthySeconds=1, minHealthyPercent=50, maxOverPercent=0))
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    cluster.run_for(60)
    bad.append(cluster.world.now)
    for _ in range(30):
        cluster.tick()
        assert sum(running(cluster).values()) <= 2
    assert run_of(cluster, 1).attempts >= 3


def test_what_ecs_does_not_know_says_nothing() -> None:
    """An agent that is disconnected for a while: its tasks keep running, and their recorded health stays."""
    cluster = cluster_whose_health(always)
    deploy(cluster, 1, form(2, healthySeconds=1))
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    for agent in cluster.world.agents.values():
        agent.disconnect()
    cluster.run_for(200)
    assert health(cluster) == [TaskHealth.HEALTHY] * 2
    for agent in cluster.world.agents.values():
        agent.reconnect()
    cluster.run_for(200)
    assert run_of(cluster, 1).attempts == 2


def test_ecs_is_asked_often_while_a_deployment_runs_and_else_as_often_as_a_sweep_comes() -> None:
    cluster = cluster_whose_health(always)
    deploy(cluster, 1, form(2, healthySeconds=1))
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    cluster.run_for(60)
    looks = set()
    for _ in range(60):
        cluster.tick()
        looks.add(max(state_of(cluster).health_looks.values()))
    assert len(looks) in (5, 6), "ten minutes, and a sweep every two"


def test_of_a_service_without_a_health_command_ecs_is_not_asked() -> None:
    cluster = cluster_whose_health(never)
    spec = form(2, healthySeconds=1)
    del spec["container"]["health"]
    deploy(cluster, 1, spec)
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    cluster.run_for(300)
    assert not state_of(cluster).health_looks
    assert run_of(cluster, 1).attempts == 2


def test_a_frozen_environment_keeps_its_unhealthy_tasks() -> None:
    bad: list[float] = []
    cluster = cluster_whose_health(lambda told, age_s: not bad)
    deploy(cluster, 1, form(2, healthySeconds=1))
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    ask(cluster, "freeze", reason="to look at it")
    cluster.run_for(10)
    bad.append(cluster.world.now)
    cluster.run_for(300)
    assert run_of(cluster, 1).attempts == 2
    assert sum(running(cluster).values()) == 2


@pytest.mark.parametrize("is_well", [True, False])
def test_where_tasks_are_reached_is_known_and_whether_they_are_healthy(is_well: bool) -> None:
    cluster = cluster_whose_health(always if is_well else never)
    deploy(cluster, 1, form(3, start_s=200, healthySeconds=1))
    until(cluster, lambda: sum(running(cluster).values()) == 3)
    cluster.run_for(40)
    state, terms = state_of(cluster), run_of(cluster, 1).terms
    where = [
        (bytes(state.attempts["instance"][row]), binding.container, binding.host)
        for row in state.attempts.live().tolist()
        for binding in unpacked(terms.ports, int(state.attempts["host_ports"][row]))
    ]
    assert len(set(where)) == 3, "no two tasks of an instance share a port"
    assert {(container, host >= 32768) for _, container, host in where} == {(8080, True)}
    assert all(instance.private_ip for instance in state.instances.values())
    env, run = web(cluster), run_of(cluster, 1)
    shown = endpoints(env, {run.id: RunRecord.of(run)}, state, cluster.world.now)
    assert {(each["instance"].encode(), each["containerPort"], each["hostPort"]) for each in shown} == set(where)
    assert {each["privateIp"] for each in shown} == {each.private_ip for each in state.instances.values()}
    assert {(each["revision"], each["healthy"], each["publicIp"]) for each in shown} == {(1, is_well, None)}
    assert endpoints(env, {}, state, cluster.world.now) == []
