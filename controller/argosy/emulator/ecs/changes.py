"""Changes of tasks and container instances: every transition, its version and its event."""

from __future__ import annotations

from functools import partial

from argosy.emulator.ecs.ledger import EcsLedger
from argosy.emulator.ecs.records import ContainerInstance, EcsTask
from argosy.emulator.ecs.resources import give_back
from argosy.emulator.ecs.views import emit_instance, emit_task
from argosy.emulator.readings import QUEUE_STUCK
from argosy.model.readings import ROOM_BACK_EARLY

QUEUE_SLEEPS_S = (900.0, 1_200.0)


def changed_task(ledger: EcsLedger, task: EcsTask) -> None:
    """The task has changed: a higher version and an event."""
    task.version += 1
    emit_task(ledger, task)


def changed_instance(ledger: EcsLedger, instance: ContainerInstance) -> None:
    """The instance has changed: a higher version and an event."""
    instance.version += 1
    emit_instance(ledger, instance)


def changed_resources(ledger: EcsLedger, instance: ContainerInstance) -> None:
    """Tasks have taken or freed some of the instance's resources."""
    if ledger.tells_resources:
        changed_instance(ledger, instance)
    else:
        instance.version += 1


def assign(ledger: EcsLedger, task: EcsTask) -> None:
    """A new task on its instance: PENDING, waiting for the agent to ask."""
    cluster = ledger.clusters[task.cluster]
    cluster.tasks[task.arn] = task
    task.instance.tasks[task.arn] = task
    task.instance.to_start[task.arn] = task
    if task.started_by:
        cluster.by_started_by.setdefault(task.started_by, {})[task.arn] = task
    emit_task(ledger, task)
    changed_resources(ledger, task.instance)
    call_agent(ledger, task.instance)


def want_stopped(ledger: EcsLedger, task: EcsTask, stop_code: str, reason: str) -> None:
    """desiredStatus STOPPED, once; a task that the agent never received ends at once."""
    if task.desired_status == "STOPPED":
        return
    task.desired_status = "STOPPED"
    task.stop_code, task.stopped_reason = stop_code, reason
    task.stopping_at = ledger.now()
    task.tags = []  # "Any tags associated with the task will be deleted" [model]
    if task.instance.to_start.pop(task.arn, None) is not None:
        stopped(ledger, task)
        return
    task.instance.to_stop[task.arn] = task
    if gives_room_back_early(ledger):
        give_back(task)
        changed_resources(ledger, task.instance)
    changed_task(ledger, task)
    call_agent(ledger, task.instance)


def running(ledger: EcsLedger, task: EcsTask) -> None:
    """The agent reports it; a task that is STOPPED stays STOPPED."""
    task.last_status = "RUNNING"
    task.started_at = ledger.now()
    changed_task(ledger, task)
    changed_resources(ledger, task.instance)


def stopped(ledger: EcsLedger, task: EcsTask, reason: str | None = None) -> None:
    """lastStatus STOPPED: final; its resources are free, and in an hour it is forgotten."""
    now, instance = ledger.now(), task.instance
    if task.stop_code is None:
        ran = task.started_at is not None
        task.stop_code = "EssentialContainerExited" if ran else "TaskFailedToStart"
        task.stopped_reason = reason or ("Essential container in task exited" if ran else "Task failed to start")
    task.last_status = task.desired_status = "STOPPED"
    task.stopped_at = now
    task.stopping_at = now if task.stopping_at is None else task.stopping_at
    if task.started_at is not None and task.execution_stopped_at is None:
        task.execution_stopped_at = now
    for container in task.containers:
        container.last_status = "STOPPED"
    for waiting in (instance.tasks, instance.to_start, instance.to_stop):
        waiting.pop(task.arn, None)
    give_back(task)
    ledger.leaves(ledger.clusters[task.cluster], task)
    changed_task(ledger, task)
    changed_resources(ledger, instance)
    if instance.to_start and gives_room_back_early(ledger):
        _wake_queue(ledger, instance)


def gone(ledger: EcsLedger, instance: ContainerInstance, stop_code: str, reason: str) -> None:
    """The instance is INACTIVE for good, and so are its tasks: without exit codes, because no agent saw them end."""
    if instance.status == "INACTIVE":
        return
    instance.status, instance.agent_connected = "INACTIVE", False
    for task in list(instance.tasks.values()):
        if task.stop_code is None:
            task.stop_code, task.stopped_reason = stop_code, reason
        stopped(ledger, task)
    ledger.leaves(ledger.clusters[instance.cluster], instance)
    changed_instance(ledger, instance)


def gives_room_back_early(ledger: EcsLedger) -> bool:
    """Whether successors wait in the agent's queue for tasks that are stopping."""
    return bool(ledger.readings & {ROOM_BACK_EARLY, QUEUE_STUCK})


def _wake_queue(ledger: EcsLedger, instance: ContainerInstance) -> None:
    """The end of a task in front wakes the agent's queue, or every second one does."""
    instance.queue_sleeps = QUEUE_STUCK in ledger.readings and not instance.queue_sleeps
    if not instance.queue_sleeps:
        call_agent(ledger, instance)
        return
    shortest, longest = QUEUE_SLEEPS_S
    asleep_s = shortest + ledger.ordinal() * 37 % (longest - shortest)
    ledger.wakes.append((ledger.now() + asleep_s, partial(call_agent, ledger, instance)))


def call_agent(ledger: EcsLedger, instance: ContainerInstance) -> None:
    """There is work for this agent, if it listens."""
    if instance.agent_connected:
        for tell in ledger.on_work:
            tell(instance.arn)
