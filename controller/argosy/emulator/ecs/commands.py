"""The answer of ExecuteCommand: ECS opens a session with the agent in a container.

It replaces the path through Systems Manager: `on_execute` returns the session's address and token.
"""

from __future__ import annotations

from typing import Any

from argosy.emulator.ecs.ledger import EcsLedger
from argosy.emulator.ecs.records import EcsContainer, EcsTask
from argosy.emulator.ecs.views import exec_agent
from argosy.emulator.operations import OperationGroup, Refusal, operation

JSON = dict[str, Any]

# In AWS's words, as its users report them: https://github.com/aws-containers/amazon-ecs-exec-checker/issues/43
NOT_ENABLED = (
    "The execute command failed because execute command was not enabled when the task was run or the execute command "
    "agent isn\u2019t running. Wait and try again or run a new task with execute command enabled and try again."
)
NOT_CONNECTED = "The execute command failed due to an internal error. Try again later."
ONLY_INTERACTIVE = "Interactive is the only mode supported currently."


class ExecOperations(OperationGroup[EcsLedger]):
    """The one operation of ECS Exec."""

    @operation
    def execute_command(self, request: JSON) -> JSON:
        """A session for one command in a container of a running task."""
        cluster = self.ledger.cluster(request)
        if not request["interactive"]:
            raise Refusal("InvalidParameterException", ONLY_INTERACTIVE)
        task = self.ledger.find_task(cluster, request["task"])
        if task is None:
            raise Refusal("InvalidParameterException", "The referenced task was not found.")
        container = _container(task, request.get("container"))
        if not task.enable_execute_command or exec_agent(task, container)["lastStatus"] != "RUNNING":
            raise Refusal("InvalidParameterException", NOT_ENABLED)
        opened = self.ledger.on_execute(task.arn, container.name)
        if opened is None:
            raise Refusal("TargetNotConnectedException", NOT_CONNECTED)
        stream_url, token = opened
        return {
            "clusterArn": cluster.arn,
            "containerArn": container.arn,
            "containerName": container.name,
            "interactive": True,
            "session": {
                "sessionId": f"ecs-execute-command-{self.ledger.new_id()[:17]}",
                "streamUrl": stream_url,
                "tokenValue": token,
            },
            "taskArn": task.arn,
        }


def _container(task: EcsTask, name: str | None) -> EcsContainer:
    if name is None and len(task.containers) == 1:
        return task.containers[0]
    for each in task.containers:
        if each.name == name:
            return each
    why = "Container name must be specified." if name is None else f"The task has no container named {name!r}."
    raise Refusal("InvalidParameterException", why)
