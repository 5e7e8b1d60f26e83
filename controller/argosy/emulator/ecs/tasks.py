"""ECS tasks: describing, listing, stopping, commands in their containers, and the agents' reports about them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from argosy.emulator.ecs.changes import changed_task, running, stopped, want_stopped
from argosy.emulator.ecs.ledger import EcsLedger
from argosy.emulator.ecs.records import EcsCluster, EcsContainer, EcsTask
from argosy.emulator.ecs.views import exec_agent, task_view
from argosy.emulator.operations import OperationGroup, Refusal, operation
from argosy.emulator.paging import limit_of, page
from argosy.emulator.region import epoch_s

JSON = dict[str, Any]

MAX_DESCRIBED = 100
_OTHER_FILTERS = ("family", "containerInstance", "serviceName", "daemonName")
# In AWS's words, as its users report them: https://github.com/aws-containers/amazon-ecs-exec-checker/issues/43
NOT_ENABLED = (
    "The execute command failed because execute command was not enabled when the task was run or the execute command "
    "agent isn\u2019t running. Wait and try again or run a new task with execute command enabled and try again."
)
NOT_CONNECTED = "The execute command failed due to an internal error. Try again later."
ONLY_INTERACTIVE = "Interactive is the only mode supported currently."


class TaskOperations(OperationGroup[EcsLedger]):
    """Operations on tasks that exist."""

    @operation
    def describe_tasks(self, request: JSON) -> JSON:
        """Up to 100 by id or ARN; unknown and forgotten ones are failures MISSING. Tags only when included."""
        cluster, names = self.ledger.cluster(request), request["tasks"]
        if not names:
            raise Refusal("InvalidParameterException", "Tasks cannot be empty.")
        if len(names) > MAX_DESCRIBED:
            raise Refusal("InvalidParameterException", f"Tasks can not have more than {MAX_DESCRIBED} elements.")
        views: list[JSON] = []
        failures: list[JSON] = []
        for name in dict.fromkeys(names):
            task = self.ledger.find_task(cluster, name)
            if task is None:
                prefix = self.ledger.arn("task", f"{cluster.name}/")
                failures.append({"arn": name if name.startswith("arn:") else prefix + name, "reason": "MISSING"})
            else:
                views.append(task_view(self.ledger, task))
        if "TAGS" not in (request.get("include") or ()):
            for view in views:
                view["tags"] = []
        return {"tasks": views, "failures": failures}

    @operation
    def list_tasks(self, request: JSON) -> JSON:
        """By *desired* status, RUNNING unless another is requested; PENDING is never a desired status."""
        cluster, desired = self.ledger.cluster(request), request.get("desiredStatus") or "RUNNING"
        limit, family = limit_of(request.get("maxResults")), request.get("family")
        tasks = self._candidates(cluster, request)

        def accepts(task: EcsTask) -> bool:
            return task.desired_status == desired and family in (None, task.definition.family)

        found, token = page(tasks, accepts, request.get("nextToken"), limit)
        reply: JSON = {"taskArns": [task.arn for task in found]}
        return {**reply, "nextToken": token} if token else reply

    @operation
    def stop_task(self, request: JSON) -> JSON:
        """Idempotent: a task that is stopping or stopped is returned unchanged."""
        cluster = self.ledger.cluster(request)
        task = self._known(cluster, request["task"])
        want_stopped(self.ledger, task, "UserInitiated", request.get("reason") or "Task stopped by user")
        return {"task": task_view(self.ledger, task)}

    @operation
    def execute_command(self, request: JSON) -> JSON:
        """A session for one command in a container of a running task, which ECS opens with the agent. It replaces the
        path through Systems Manager: `on_execute` returns its address and token."""
        cluster = self.ledger.cluster(request)
        if not request["interactive"]:
            raise Refusal("InvalidParameterException", ONLY_INTERACTIVE)
        task = self._known(cluster, request["task"])
        container = _container_meant(task, request.get("container"))
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

    @operation
    def submit_task_state_change(self, request: JSON) -> JSON:
        """The agent's report; a status never goes back, and STOPPED is final."""
        cluster = self.ledger.cluster(request)
        task = self._known(cluster, request.get("task") or "")
        if task.last_status == "STOPPED":
            return {"acknowledgment": "ACCEPT"}
        task.handed_over = True  # an agent that reports a task has it
        task.instance.to_start.pop(task.arn, None)
        for name in ("pullStartedAt", "pullStoppedAt", "executionStoppedAt"):
            if request.get(name) is not None:
                setattr(task, _snake(name), epoch_s(request[name]))
        for change in request.get("containers") or ():
            _apply(_container(task, change.get("containerName")), change)
        self._advance(task, str(request.get("status") or ""), request.get("reason"))
        return {"acknowledgment": "ACCEPT"}

    @operation
    def submit_container_state_change(self, request: JSON) -> JSON:
        """The agent's report about one container."""
        cluster = self.ledger.cluster(request)
        task = self._known(cluster, request.get("task") or "")
        if task.last_status != "STOPPED":
            _apply(_container(task, request.get("containerName")), request)
            changed_task(self.ledger, task)
        return {"acknowledgment": "ACCEPT"}

    def _advance(self, task: EcsTask, status: str, reason: str | None) -> None:
        if status == "STOPPED":
            stopped(self.ledger, task, reason)
        elif status == "RUNNING" and task.last_status != "RUNNING":
            running(self.ledger, task)
        elif status in ("", "RUNNING", "PENDING", "MANIFEST_PULLED"):
            changed_task(self.ledger, task)
        else:
            raise Refusal("InvalidParameterException", f"Invalid task status {status!r}.")

    def _known(self, cluster: EcsCluster, name: str) -> EcsTask:
        task = self.ledger.find_task(cluster, name)
        if task is None:
            raise Refusal("InvalidParameterException", "The referenced task was not found.")
        return task

    def _candidates(self, cluster: EcsCluster, request: JSON) -> Iterable[EcsTask]:
        """In order of creation. `startedBy` must be the only filter [model]; desiredStatus is not counted as one, since
        its default applies in any case (aws.md 2.3)."""
        started_by = request.get("startedBy")
        if started_by is not None:
            if any(request.get(name) for name in _OTHER_FILTERS):
                raise Refusal("InvalidParameterException", "startedBy must be the only filter that you use.")
            return cluster.by_started_by.get(started_by, {}).values()
        if request.get("serviceName"):
            raise Refusal("ServiceNotFoundException", "Service not found.")
        if not request.get("containerInstance"):
            return cluster.tasks.values()
        instance = self.ledger.find_instance(cluster, request["containerInstance"])
        if instance is None:
            raise Refusal("InvalidParameterException", "The referenced container instance was not found.")
        return [task for task in cluster.tasks.values() if task.instance is instance]


def _container_meant(task: EcsTask, name: str | None) -> EcsContainer:
    if name is None and len(task.containers) != 1:
        raise Refusal("InvalidParameterException", "Container name must be specified.")
    return task.containers[0] if name is None else _container(task, name)


def _container(task: EcsTask, name: str | None) -> EcsContainer:
    for container in task.containers:
        if container.name == name:
            return container
    raise Refusal("InvalidParameterException", f"The task has no container named {name!r}.")


def _apply(container: EcsContainer, change: JSON) -> None:
    container.last_status = change.get("status") or container.last_status
    container.exit_code = change.get("exitCode", container.exit_code)
    container.reason = change.get("reason", container.reason)
    container.runtime_id = change.get("runtimeId", container.runtime_id)
    container.image_digest = change.get("imageDigest", container.image_digest)
    container.network_bindings = list(change.get("networkBindings") or container.network_bindings)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
