"""The connection between an ECS agent and ECS, and the effects of its loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from argosy.emulator.ecs.changes import call_agent, changed_instance, gives_room_back_early, gone
from argosy.emulator.ecs.ledger import EcsLedger
from argosy.emulator.ecs.resources import admitted
from argosy.emulator.ecs.views import emit_health, task_view
from argosy.emulator.operations import OperationGroup
from argosy.emulator.region import utc

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AgentWork:
    """Tasks to start (as DescribeTasks shows them) and ARNs of tasks to stop, since the agent last asked."""

    start: list[JSON] = field(default_factory=list)
    stop: list[str] = field(default_factory=list)


class AgentConnection(OperationGroup[EcsLedger]):
    """Not an AWS API: the agent's websocket, and the effects of a broken connection."""

    def agent_work(self, container_instance_arn: str) -> AgentWork:
        """Hand over what is new; nothing while the agent is disconnected, or its instance is no longer known."""
        with self.lock:
            instance = self.ledger.known_instance(container_instance_arn)
            if instance is None or not instance.agent_connected:
                return AgentWork()
            queued = list(instance.to_start.values())
            taken = admitted(instance) if gives_room_back_early(self.ledger) else queued
            for task in taken:
                task.handed_over = True
                del instance.to_start[task.arn]
            instance.queue_sleeps = False
            start = [task_view(self.ledger, task) for task in taken]
            stop = list(instance.to_stop)
            instance.to_stop.clear()
            return AgentWork(start, stop)

    def report_health(self, task_arn: str, container: str, status: str) -> None:
        """Health is reported separately from state changes: it emits no event and does not raise the version
        [containers-roadmap, issues 1019 and 1515]. A task that ECS has forgotten is ignored.
        """
        with self.lock:
            for cluster in self.ledger.clusters.values():
                task = cluster.tasks.get(task_arn)
                for each in task.containers if task is not None else ():
                    if each.name == container:
                        each.health = status
                        each.healths.add(status)

    def set_agent_connected(self, container_instance_arn: str, connected: bool) -> None:
        """Agents disconnect and return several times an hour; their tasks keep running. ECS ignores an agent whose
        instance was
        deregistered.
        """
        with self.lock:
            instance = self.ledger.known_instance(container_instance_arn)
            if instance is None or instance.agent_connected == connected or instance.status == "INACTIVE":
                return
            instance.agent_connected = connected
            changed_instance(self.ledger, instance)
            if instance.to_start or instance.to_stop:
                call_agent(self.ledger, instance)

    def check_health(self, container_instance_arn: str, kind: str, status: str, reason: str | None = None) -> None:
        """Record the result of a check by the agent or by ECS. `kind` is CONTAINER_RUNTIME, AGENT_CONNECTIVITY
        or, of its GPUs, ACCELERATED_COMPUTE; `status` is OK or IMPAIRED. ECS sends a health event when the status
        changes."""
        with self.lock:
            instance = self.ledger.known_instance(container_instance_arn)
            if instance is None:
                return
            now = utc(self.ledger.region.now())
            check: JSON = {"type": kind, "status": status, "lastUpdated": now, "lastStatusChange": now}
            instance.health = [each for each in instance.health if each["type"] != kind]
            instance.health.append({**check, "statusReason": reason} if reason else check)
            emit_health(self.ledger, instance)

    def lose_instance(self, container_instance_arn: str) -> None:
        """The EC2 instance is gone: INACTIVE, its tasks STOPPED as seen in the field (aws.md 9.6). One that was
        deregistered long before is forgotten already."""
        with self.lock:
            instance = self.ledger.known_instance(container_instance_arn)
            if instance is None:
                return
            reason = f"Host EC2 (instance {instance.ec2_instance_id}) terminated."
            gone(self.ledger, instance, "TerminationNotice", reason)
