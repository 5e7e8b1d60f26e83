"""Shared parts of scenarios of services: a cluster, requests, and the running tasks."""

from __future__ import annotations

from typing import Any

from argosy.model.inbox import EnvironmentRequest
from argosy.model.runs import Run
from argosy.model.services.environments import DeploymentStatus, Environment
from argosy.model.state import State
from argosy.spec.parse import parse_spec, to_json
from argosy.spec.terms import terms_of_form
from tests.builders import submit_request
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled

FOR_EVER_S = 1e9


def service(**fields: Any) -> Controlled:
    return Controlled(work_s=FOR_EVER_S, **fields)


def form(desired: int, command: str = "serve", capacity: dict[str, Any] | None = None, **update: Any) -> dict[str, Any]:
    spec = {
        "version": 1,
        "kind": "service",
        "name": "web",
        "container": {"image": "argosy/web", "command": [command]},
        "resources": {"vcpus": 0.5, "memory": 512},
        "service": {"desired": desired, "update": update},
        **({"capacity": capacity} if capacity else {}),
    }
    return to_json(parse_spec(spec))


def ask(cluster: Controlled, change: str, **fields: Any) -> None:
    cluster.put(EnvironmentRequest("web", cluster.world.now, change, **fields), f"web#{change}#{cluster.world.now}")


def deploy(cluster: Controlled, revision: int, spec: dict[str, Any]) -> None:
    run_id = f"web-261121-0627{revision:02d}-k3f9"
    now = cluster.world.now
    submit = submit_request(run_id, now, spec, spec["array"]["size"], "argosy/web", f"s3://results/{run_id}/", False)
    if revision == 1:
        ask(cluster, "create", revision=1, desired=terms_of_form(spec).service.desired)  # type: ignore[union-attr]
    else:
        ask(cluster, "update", revision=revision)
    ask(cluster, "deploy", revision=revision, token=f"{revision}@{now}", submit=submit)


def state_of(cluster: Controlled) -> State:
    state = cluster.controllers[0].state
    assert state is not None
    return state


def web(cluster: Controlled) -> Environment:
    return state_of(cluster).environments["web"]


def status(cluster: Controlled) -> DeploymentStatus | None:
    env = state_of(cluster).environments.get("web")
    return env.deployment.status if env and env.deployment else None


def running(cluster: Controlled) -> dict[str, int]:
    """By revision's run, its RUNNING ECS tasks."""
    found: dict[str, int] = {}
    arns = cluster.ecs.list_tasks(cluster=cluster.world.cluster, desiredStatus="RUNNING")["taskArns"]
    tasks = cluster.ecs.describe_tasks(cluster=cluster.world.cluster, tasks=arns)["tasks"] if arns else []
    for task in tasks:
        if task["lastStatus"] == "RUNNING":
            run_id = variables(task)["ARGOSY_RUN_ID"]
            found[run_id] = found.get(run_id, 0) + 1
    return found


def variables(task: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in task["overrides"]["containerOverrides"][0]["environment"]}


def ending(cluster: Controlled, after_s: float, index: int = 0, attempts: int = 1, exit_code: int = 3) -> None:
    """The first attempts of a task end by themselves."""

    def behaviour(task: dict[str, Any], instance: Any) -> TaskBehaviour:
        told = variables(task)
        ends = int(told["ARGOSY_TASK_INDEX"]) == index and int(told["ARGOSY_TASK_ATTEMPT"]) <= attempts
        return TaskBehaviour(after_s, exit_code=exit_code) if ends else TaskBehaviour(FOR_EVER_S)

    cluster.world.workload = behaviour


def until(cluster: Controlled, condition: Any, limit_s: float = 1800.0) -> None:
    began = cluster.world.now
    cluster.tick()
    while not condition():
        cluster.step()
        assert cluster.world.now - began < limit_s, (status(cluster), running(cluster))


def run_of(cluster: Controlled, revision: int = 1) -> Run:
    found = web(cluster).revision(revision)
    assert found is not None
    return state_of(cluster).runs[found.run_id]


def up(cluster: Controlled, desired: int, **update: Any) -> None:
    deploy(cluster, 1, form(desired, **update))
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)


def up_partly(cluster: Controlled) -> None:
    """Two healthy tasks, then a third one that crashes at once: no deployment is concerned."""
    deploy(cluster, 1, form(1))
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    ask(cluster, "scale", desired=3)
    until(cluster, lambda: sum(running(cluster).values()) >= 2)
