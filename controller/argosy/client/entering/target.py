"""Which container does a user's command enter, and is that allowed?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argosy.client.access import Access
from argosy.client.api import ApiError
from argosy.client.errors import InvalidInput
from argosy.model.arns import cell_of

SETTING = "allowExec"
_ALIVE = ("STARTING", "RUNNING")  # of a task; VERIFYING: its program has ended
_LATER = f"deploy with {SETTING} set to true; this applies to runs prepared afterwards"


class CannotEnter(InvalidInput):
    """This task cannot be entered, now or at all. then: the next command to type, the words after `argosy`."""

    def __init__(self, message: str, then: str) -> None:
        super().__init__(message)
        self.then = then


@dataclass(frozen=True, slots=True)
class RunningContainer:
    """A container that runs. runtime_id: the engine's id for it, as ECS knows it."""

    run_id: str
    index: int
    attempt: int
    task_arn: str
    container: str
    runtime_id: str

    @property
    def region(self) -> str:
        return cell_of(self.task_arn)

    @property
    def label(self) -> dict[str, str]:
        """The variables of its environment."""
        told = {"ARGOSY_RUN_ID": self.run_id, "ARGOSY_TASK_INDEX": self.index, "ARGOSY_TASK_ATTEMPT": self.attempt}
        return {name: str(value) for name, value in told.items()}


def find_target(access: Access, run_id: str, index: int) -> RunningContainer:
    """Raises CannotEnter, and what the api raises for a run that does not exist."""
    reply = _described(access, run_id, index)
    if access.deployment.allow_exec is False:
        raise CannotEnter(f"Commands in tasks are off in this deployment: {_LATER}.", f"logs {run_id} --task {index}")
    alive = _alive(reply, run_id, index)
    arn = str(alive["taskArn"])
    shown = access.client("ecs", cell_of(arn)).describe_tasks(cluster=access.deployment.cluster, tasks=[arn])["tasks"]
    if not shown or shown[0]["lastStatus"] != "RUNNING":
        raise CannotEnter(f"Task {index} is just starting or ending.", f"tasks {run_id} --status running")
    if not shown[0].get("enableExecuteCommand"):
        raise CannotEnter(_why_not(access, shown[0], index), f"logs {run_id} --task {index}")
    name = _container_of(shown[0])
    [runtime_id] = [str(each.get("runtimeId", "")) for each in shown[0]["containers"] if each["name"] == name]
    return RunningContainer(run_id, index, int(alive["attempt"]), arn, name, runtime_id)


def _described(access: Access, run_id: str, index: int) -> dict[str, Any]:
    """DescribeTask's reply."""
    try:
        return access.api.task(run_id, index)
    except ApiError as refusal:
        for path, why in refusal.faults:
            if path == "index":
                raise CannotEnter(f"There is no task {index}: {why}.", f"tasks {run_id} --status running") from refusal
        raise


def _alive(reply: Mapping[str, Any], run_id: str, index: int) -> Mapping[str, Any]:
    """The attempt that runs."""
    status, attempts = reply["status"], reply["attempts"]
    if status == "PENDING":
        raise CannotEnter(f"Task {index} is waiting: it has not started yet.", f"explain {run_id} --task {index}")
    if status not in _ALIVE:
        said = "its program has" if status == "VERIFYING" else "it has"
        raise CannotEnter(
            f"Task {index} is no longer running: {said} ended ({status}).", f"logs {run_id} --task {index}"
        )
    alive = [each for each in attempts if each["outcome"] is None and each["taskArn"]]
    if status == "STARTING" or not alive:
        raise CannotEnter(f"Task {index} is being started.", f"watch {run_id}")
    return alive[-1]  # type: ignore[no-any-return]


def _container_of(task: Mapping[str, Any]) -> str:
    """The container with Argosy's variables; other containers of a user's own definition lack them."""
    from argosy.model.attempts import LAUNCH_VARIABLE  # loads numpy

    overrides = task["overrides"]["containerOverrides"]
    for each in overrides:
        if any(pair["name"] == LAUNCH_VARIABLE for pair in each.get("environment", ())):
            return str(each["name"])
    return str(task["containers"][0]["name"])


def _why_not(access: Access, task: Mapping[str, Any], index: int) -> str:
    """ECS started it without its Exec agent."""
    ecs = access.client("ecs", cell_of(task["taskArn"]))
    definition = ecs.describe_task_definition(taskDefinition=task["taskDefinitionArn"])["taskDefinition"]
    name = _container_of(task)
    if any(each["name"] == name and each.get("readonlyRootFilesystem") for each in definition["containerDefinitions"]):
        return f"Task {index} has a read-only root file system, in which ECS Exec cannot work."
    if not definition.get("taskRoleArn"):
        return f"The definition of task {index} has no task role, which ECS Exec needs."
    return f"Task {index} was started without ECS Exec, because its run was prepared while it was off: {_LATER}."
