"""The state of the emulated ECS of one region, and look-ups in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any

from argosy.emulator.ecs.records import (
    ContainerInstance,
    EcsCluster,
    EcsTask,
    PhysicalGpu,
    RememberedLaunch,
    TaskDefinition,
)
from argosy.emulator.ecs.resources import fullest
from argosy.emulator.operations import Refusal
from argosy.emulator.region import AwsRegion

JSON = dict[str, Any]

STOPPED_TASKS_KEPT_S = 3_600.0  # "at least one hour" [model]; INACTIVE instances are kept as long
# A client token counts for the lower of two times (Amazon ECS API Reference, "Ensuring idempotency", aws.md 2.3):
TOKEN_LIFE_S = 24 * 3_600.0
TOKEN_OUTLIVES_TASK_S = 3_600.0  # "the lifetime of the resource plus one hour", from its creation to STOPPED


class EcsLedger:
    """State, clock, ids and events that all groups of operations share. Hold `lock` while touching it."""

    def __init__(self, region: AwsRegion) -> None:
        self.lock = RLock()
        self.region = region
        self.readings = region.readings
        self.now = region.now
        self.new_id = region.ids("ecs")
        self.clusters: dict[str, EcsCluster] = {}
        self.definitions: dict[str, list[TaskDefinition]] = {}
        self.on_work: list[Callable[[str], None]] = []
        """Called with a container instance's ARN if there is something for its agent; must not block."""
        self.on_definition: list[Callable[[TaskDefinition], None]] = []
        """Called with each task definition that is registered or deregistered."""
        self.on_execute: Callable[[str, str], tuple[str, str] | None] = lambda task_arn, container: None
        """Address and token of a session in a container of a task; None when its agent is not connected. Called under
        the lock; must not block."""
        self.pick_gpu: Callable[[Sequence[PhysicalGpu]], PhysicalGpu] = fullest
        """Which of several GPUs with room gets a task that shares one: AWS does not say."""
        self.tells_resources = True
        """Whether an instance's event is sent whenever tasks take or free its resources, as ECS does."""
        self.wakes: list[tuple[float, Callable[[], None]]] = []
        """Agents whose queues sleep: until when, and how they are woken."""
        self._count = 0
        self._leaving: deque[tuple[float, EcsCluster, EcsTask | ContainerInstance]] = deque()

    def ordinal(self) -> int:
        """The next number in the order of creation."""
        self._count += 1
        return self._count

    def arn(self, kind: str, rest: str) -> str:
        """e.g. arn:aws:ecs:us-east-1:123456789012:task/argosy/0f3..."""
        return self.region.arn("ecs", f"{kind}/{rest}")

    def cluster(self, request: JSON) -> EcsCluster:
        """The cluster that a request names ("default" if it names none). Raises Refusal."""
        name = str(request.get("cluster") or "default")
        found = self.clusters.get(_last_part(name, "cluster", self))
        if found is None or found.status != "ACTIVE":
            raise Refusal("ClusterNotFoundException", "Cluster not found.")
        return found

    def find_task(self, cluster: EcsCluster, name: str) -> EcsTask | None:
        """By ARN or id; None when it is unknown here (or forgotten)."""
        return cluster.tasks.get(name if name.startswith("arn:") else self.arn("task", f"{cluster.name}/{name}"))

    def find_instance(self, cluster: EcsCluster, name: str) -> ContainerInstance | None:
        """By ARN or id; None when it is unknown here (or forgotten)."""
        arn = name if name.startswith("arn:") else self.arn("container-instance", f"{cluster.name}/{name}")
        return cluster.instances.get(arn)

    def instance(self, container_instance_arn: str) -> ContainerInstance:
        """By full ARN, whatever the cluster. Raises KeyError."""
        found = self.known_instance(container_instance_arn)
        if found is None:
            raise KeyError(container_instance_arn)
        return found

    def known_instance(self, container_instance_arn: str) -> ContainerInstance | None:
        """The same; None for one that is forgotten."""
        for cluster in self.clusters.values():
            if container_instance_arn in cluster.instances:
                return cluster.instances[container_instance_arn]
        return None

    def leaves(self, cluster: EcsCluster, record: EcsTask | ContainerInstance) -> None:
        """The record has ended; it is forgotten after STOPPED_TASKS_KEPT_S."""
        self._leaving.append((self.now() + STOPPED_TASKS_KEPT_S, cluster, record))

    def catch_up(self) -> None:
        """Forget what ended long ago. Time only moves forward, so the oldest is always in front."""
        due = [wake for at, wake in self.wakes if at <= self.now()]
        self.wakes = [(at, wake) for at, wake in self.wakes if at > self.now()] if due else self.wakes
        for wake in due:
            wake()
        while self._leaving and self._leaving[0][0] <= self.now():
            _, cluster, record = self._leaving.popleft()
            if isinstance(record, EcsTask):
                _forget_task(cluster, record)
            else:
                _forget_instance(cluster, record)

    def token_expired(self, cluster: EcsCluster, launch: RememberedLaunch) -> bool:
        """Whether the launch's client token may start something new. Of several tasks, the one that stopped last
        counts."""
        now, tasks = self.now(), [cluster.tasks.get(arn) for arn in launch.task_arns]
        ends = [task.stopped_at for task in tasks if task is not None]
        outlived = all(end is not None and now - end >= TOKEN_OUTLIVES_TASK_S for end in ends)
        return now - launch.at >= TOKEN_LIFE_S or outlived


def _forget_task(cluster: EcsCluster, task: EcsTask) -> None:
    """Its token is forgotten with the last task that it started: it has expired by then."""
    cluster.tasks.pop(task.arn, None)
    group = cluster.by_started_by.get(task.started_by or "")
    if group is not None:
        group.pop(task.arn, None)
        if not group:
            del cluster.by_started_by[task.started_by or ""]
    if task.token is not None:
        launch = cluster.launches.get(task.token[1])
        if launch is not None and not any(arn in cluster.tasks for arn in launch.task_arns):
            del cluster.launches[task.token[1]]


def _forget_instance(cluster: EcsCluster, instance: ContainerInstance) -> None:
    cluster.instances.pop(instance.arn, None)
    same = cluster.by_ec2_id.get(instance.ec2_instance_id, [])
    same[:] = [each for each in same if each is not instance]
    if not same:
        cluster.by_ec2_id.pop(instance.ec2_instance_id, None)


def _last_part(name: str, kind: str, ledger: EcsLedger) -> str:
    prefix = ledger.arn(kind, "")
    return name.removeprefix(prefix) if name.startswith("arn:") else name
