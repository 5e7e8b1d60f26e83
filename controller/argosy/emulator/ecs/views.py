"""Public views of the records: the API's shapes (datetimes) and the events' details (ISO strings)."""

from __future__ import annotations

from typing import Any

from argosy.emulator.ecs.container_health import task_health
from argosy.emulator.ecs.ledger import EcsLedger
from argosy.emulator.ecs.records import (
    UNKNOWN,
    ContainerInstance,
    EcsCluster,
    EcsContainer,
    EcsTask,
    PhysicalGpu,
    TaskDefinition,
)
from argosy.emulator.ecs.resources import remaining
from argosy.emulator.region import utc, with_iso_times

JSON = dict[str, Any]

_SEVEREST_FIRST = ("IMPAIRED", "INSUFFICIENT_DATA", "INITIALIZING")
_TASK_TIMES = (
    ("createdAt", "created_at"),
    ("startedAt", "started_at"),
    ("stoppingAt", "stopping_at"),
    ("stoppedAt", "stopped_at"),
    ("executionStoppedAt", "execution_stopped_at"),
    ("pullStartedAt", "pull_started_at"),
    ("pullStoppedAt", "pull_stopped_at"),
)
_NOT_IN_TASK_EVENTS = frozenset({"tags", "healthStatus", "inferenceAccelerators"})
_NOT_IN_INSTANCE_EVENTS = frozenset(
    {"tags", "registeredAt", "runningTasksCount", "pendingTasksCount", "attachments", "gpuDevices"}
)


def task_view(ledger: EcsLedger, task: EcsTask) -> JSON:
    """A Task of DescribeTasks, tags included."""
    cluster_arn, definitions = ledger.arn("cluster", task.cluster), task.definition.containers
    view: JSON = {
        "attachments": [],
        "attributes": [_attribute(pair) for pair in _cpu_architecture(task.instance)],
        "availabilityZone": task.instance.zone,
        "clusterArn": cluster_arn,
        "containerInstanceArn": task.instance.arn,
        "containers": [_container(task, each) for each in task.containers],
        "cpu": str(task.needs.cpu_units),
        "desiredStatus": task.desired_status,
        "enableExecuteCommand": task.enable_execute_command,
        "group": task.group,
        "healthStatus": task_health({each.name: _health(task, each) for each in task.containers}, definitions),
        "inferenceAccelerators": [],
        "lastStatus": task.last_status,
        "launchType": "EC2",
        "memory": str(task.needs.memory_mib),
        "overrides": task.overrides,
        "tags": list(task.tags),
        "taskArn": task.arn,
        "taskDefinitionArn": task.definition.arn,
        "version": task.version,
    }
    if task.last_status != "PENDING" or task.handed_over:
        view["connectivity"] = "CONNECTED"
    for name, at in _TASK_TIMES:
        time = getattr(task, at)
        if time is not None:
            view[name] = utc(time)
    optional = {"startedBy": task.started_by, "stopCode": task.stop_code, "stoppedReason": task.stopped_reason}
    view.update({name: value for name, value in optional.items() if value is not None})
    return view


def instance_view(ledger: EcsLedger, instance: ContainerInstance) -> JSON:
    """A ContainerInstance of DescribeContainerInstances, tags included."""
    running = sum(task.last_status == "RUNNING" for task in instance.tasks.values())
    return {
        "agentConnected": instance.agent_connected,
        "attachments": [],
        "attributes": [_attribute(pair) for pair in instance.attributes.items()],
        "containerInstanceArn": instance.arn,
        "ec2InstanceId": instance.ec2_instance_id,
        "pendingTasksCount": len(instance.tasks) - running,
        "registeredAt": utc(instance.registered_at),
        "registeredResources": [dict(each) for each in instance.registered],
        "remainingResources": remaining(instance),
        "runningTasksCount": running,
        "status": instance.status,
        "tags": list(instance.tags),
        "version": instance.version,
        "versionInfo": dict(instance.version_info),
        **({"gpuDevices": [_device(gpu) for gpu in instance.gpus.values()]} if instance.shares_gpus else {}),
    }


def _device(gpu: PhysicalGpu) -> JSON:
    return {
        "gpuId": gpu.id,
        "sharingMode": gpu.mode,
        "totalMemoryInMiB": gpu.total_mib,
        "remainingMemoryInMiB": gpu.free_mib,
        "containerCount": gpu.containers,
    }


def cluster_view(cluster: EcsCluster) -> JSON:
    """A Cluster of DescribeClusters, tags and settings included."""
    live = [task for instance in cluster.instances.values() for task in instance.tasks.values()]
    running = sum(task.last_status == "RUNNING" for task in live)
    return {
        "activeServicesCount": 0,
        "capacityProviders": [],
        "clusterArn": cluster.arn,
        "clusterName": cluster.name,
        "defaultCapacityProviderStrategy": [],
        "pendingTasksCount": len(live) - running,
        "registeredContainerInstancesCount": sum(each.status != "INACTIVE" for each in cluster.instances.values()),
        "runningTasksCount": running,
        "settings": list(cluster.settings),
        "statistics": [],
        "status": cluster.status,
        "tags": list(cluster.tags),
    }


def definition_view(ledger: EcsLedger, definition: TaskDefinition) -> JSON:
    """A TaskDefinition of DescribeTaskDefinition."""
    view = {
        **definition.body,
        "taskDefinitionArn": definition.arn,
        "family": definition.family,
        "revision": definition.revision,
        "status": definition.status,
        "registeredAt": utc(definition.registered_at),
        "registeredBy": f"arn:aws:iam::{ledger.region.account}:root",
    }
    if definition.deregistered_at is not None:
        view["deregisteredAt"] = utc(definition.deregistered_at)
    return view


def emit_task(ledger: EcsLedger, task: EcsTask) -> None:
    """An "ECS Task State Change" with the task's present state."""
    detail = {key: value for key, value in task_view(ledger, task).items() if key not in _NOT_IN_TASK_EVENTS}
    for container in detail["containers"]:
        del container["healthStatus"]
        container.pop("gpuSharingStrategy", None)
        for agent in container.get("managedAgents", ()):  # an event names no time, and calls its status otherwise
            agent.pop("lastStartedAt", None)
            agent["status"] = agent.pop("lastStatus")
    _emit(ledger, "ECS Task State Change", task.arn, detail)


def health_view(instance: ContainerInstance) -> JSON:
    """`healthStatus` of a container instance: the most severe status of its checks."""
    statuses = {each["status"] for each in instance.health}
    overall = next((each for each in _SEVEREST_FIRST if each in statuses), "OK")
    return {"overallStatus": overall, "details": list(instance.health)}


def emit_health(ledger: EcsLedger, instance: ContainerInstance) -> None:
    """An "ECS Container Instance Health Change"; unlike a state change it has no version."""
    health = health_view(instance)
    detail: JSON = {
        "clusterArn": ledger.arn("cluster", instance.cluster),
        "containerInstanceArn": instance.arn,
        "capacityProviderName": None,
        "ec2InstanceId": instance.ec2_instance_id,
        "overallStatus": health["overallStatus"],
        "healthChecks": [with_iso_times(each) for each in health["details"]],
    }
    message = ledger.region.message(ledger.new_id(), "aws.ecs", "ECS Container Instance Health Change", instance.arn)
    ledger.region.emit({**message, "detail": detail})


def emit_instance(ledger: EcsLedger, instance: ContainerInstance) -> None:
    """An "ECS Container Instance State Change" with the instance's present state."""
    view = instance_view(ledger, instance)
    detail = {key: value for key, value in view.items() if key not in _NOT_IN_INSTANCE_EVENTS}
    detail["clusterArn"] = ledger.arn("cluster", instance.cluster)
    _emit(ledger, "ECS Container Instance State Change", instance.arn, detail)


def _emit(ledger: EcsLedger, detail_type: str, arn: str, detail: JSON) -> None:
    message = ledger.region.message(ledger.new_id(), "aws.ecs", detail_type, arn)
    ledger.region.emit({**message, "detail": {**with_iso_times(detail), "updatedAt": message["time"]}})


def _container(task: EcsTask, container: EcsContainer) -> JSON:
    view: JSON = {
        "containerArn": container.arn,
        "taskArn": task.arn,
        "name": container.name,
        "image": container.image,
        "lastStatus": container.last_status,
        "networkInterfaces": [],
        "healthStatus": _health(task, container),
        "cpu": container.cpu,
        "networkBindings": list(container.network_bindings),
    }
    optional = {
        "memory": container.memory,
        "memoryReservation": container.memory_reservation,
        "gpuIds": list(container.gpu_ids) or None,
        "gpuSharingStrategy": container.gpu_sharing,
        "exitCode": container.exit_code,
        "reason": container.reason,
        "runtimeId": container.runtime_id,
        "imageDigest": container.image_digest,
        "managedAgents": [exec_agent(task, container)] if task.enable_execute_command else None,
    }
    view.update({name: value for name, value in optional.items() if value is not None})
    return view


def _health(task: EcsTask, container: EcsContainer) -> str:
    """While the agent is away ECS does not hold it (API reference, Task.healthStatus: what "UNKNOWN" means)."""
    return container.health if task.instance.agent_connected else UNKNOWN


def exec_agent(task: EcsTask, container: EcsContainer) -> JSON:
    """The Exec agent in a container: it starts with the container, if it can write to its root."""
    [definition] = [each for each in task.definition.containers if each["name"] == container.name]
    status = container.last_status if container.last_status in ("PENDING", "RUNNING") else "STOPPED"
    if status == "RUNNING" and definition.get("readonlyRootFilesystem"):
        status = "STOPPED"
    started = {} if task.started_at is None else {"lastStartedAt": utc(task.started_at)}
    return {"name": "ExecuteCommandAgent", "lastStatus": status, **started}


def _attribute(pair: tuple[str, str | None]) -> JSON:
    name, value = pair
    return {"name": name} if value is None else {"name": name, "value": value}


def _cpu_architecture(instance: ContainerInstance) -> list[tuple[str, str | None]]:
    name = "ecs.cpu-architecture"
    return [(name, instance.attributes[name])] if name in instance.attributes else []
