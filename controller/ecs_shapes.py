"""What does an ECS task or container instance say, however it reached us?

Pure parsers of one shape with two dialects: what the API answers (aware datetimes) and the `detail` of an event (ISO
strings); plain epochs are read as well. Every field but the ARN may be missing, unknown ones are ignored
(aws.md 9.2, 9.3). A field of the wrong type raises KeyError, TypeError, ValueError or AttributeError: a poison message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from controller.model.attempts import AttemptKey
from controller.model.events import ContainerInstanceSeen, TaskSeen

LAUNCH_VARIABLE = "ARGOSY_LAUNCH"  # the launch number: internal, beside what tasks are promised
_KEY_VARIABLES = ("ARGOSY_RUN_ID", "ARGOSY_TASK_INDEX", "ARGOSY_TASK_ATTEMPT", LAUNCH_VARIABLE)
_SAYS_NOTHING = "Essential container in task exited"  # the stoppedReason of every ordinary end


def epoch_s(moment: Any) -> float:
    """A datetime, an ISO string or an epoch as epoch seconds; 0 when there is none. Raises ValueError, TypeError."""
    if not moment:
        return 0.0
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    return moment.timestamp() if isinstance(moment, datetime) else float(moment)


def key_of_task(task: Mapping[str, Any]) -> AttemptKey | None:
    """Which attempt this task was started for, from the environment in its overrides; None when it is not ours."""
    for override in _container_overrides(task):
        values = {entry.get("name"): entry.get("value") for entry in override.get("environment") or ()}
        run_id, *numbers = (values.get(name) for name in _KEY_VARIABLES)
        if run_id and all(isinstance(number, str) and number.isdecimal() for number in numbers):
            return AttemptKey(str(run_id), *(int(str(number)) for number in numbers))
    return None


def task_seen(task: Mapping[str, Any]) -> TaskSeen:
    """A task of DescribeTasks or RunTask, or the detail of an "ECS Task State Change"."""
    containers = task.get("containers") or ()
    main = _main_container(task, containers)
    exit_code = main.get("exitCode")
    return TaskSeen(
        arn=_arn(task["taskArn"]),
        version=int(task.get("version") or 0),
        last_status=str(task.get("lastStatus") or ""),
        desired_status=str(task.get("desiredStatus") or ""),
        instance_arn=str(task.get("containerInstanceArn") or ""),
        started_by=str(task.get("startedBy") or ""),
        key=key_of_task(task),
        exit_code=None if exit_code is None else int(exit_code),
        stop_code=str(task.get("stopCode") or ""),
        reason=_reason(str(task.get("stoppedReason") or ""), str(main.get("reason") or "")),
        started_at=epoch_s(task.get("startedAt")),
        stopped_at=epoch_s(task.get("stoppedAt")),
        gpu_ids=tuple(str(gpu) for container in containers for gpu in container.get("gpuIds") or ()),
        status_reason=str(task.get("stoppedReason") or ""),
        container_reason=str(main.get("reason") or ""),
    )


def container_instance_seen(instance: Mapping[str, Any], cell: str) -> ContainerInstanceSeen:
    """An instance of DescribeContainerInstances, or the detail of an "ECS Container Instance State Change".

    An agent that is not said to be connected is taken to be disconnected: nothing is placed by guess.
    """
    resources = {entry.get("name"): entry for entry in instance.get("registeredResources") or ()}
    return ContainerInstanceSeen(
        arn=_arn(instance["containerInstanceArn"]),
        version=int(instance.get("version") or 0),
        instance_id=str(instance.get("ec2InstanceId") or ""),
        cell=cell,
        status=str(instance.get("status") or ""),
        agent_connected=instance.get("agentConnected") is True,
        cpu_units=int(resources.get("CPU", {}).get("integerValue") or 0),
        memory_mib=int(resources.get("MEMORY", {}).get("integerValue") or 0),
        gpu_ids=tuple(str(gpu) for gpu in resources.get("GPU", {}).get("stringSetValue") or ()),
        attributes={str(entry["name"]): str(entry.get("value") or "") for entry in instance.get("attributes") or ()},
        registered_at=epoch_s(instance.get("registeredAt")),
    )


def _arn(arn: Any) -> str:
    """The one field nothing can do without. Raises ValueError."""
    if not isinstance(arn, str) or arn.count(":") < 5:
        raise ValueError(f"not an ARN: {str(arn)[:80]!r}")
    return arn


def _container_overrides(task: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (task.get("overrides") or {}).get("containerOverrides") or ()


def _main_container(task: Mapping[str, Any], containers: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The container whose end is the attempt's: the one we override; else the first that says how it ended."""
    ours = {override.get("name") for override in _container_overrides(task)}
    ordered = sorted(containers, key=lambda each: (each.get("name") not in ours, each.get("exitCode") is None))
    return ordered[0] if ordered else {}


def _reason(stopped: str, container: str) -> str:
    """Both in one line, without saying a thing twice; what says nothing gives way to the container's own reason."""
    if not container or container in stopped:
        return stopped
    if stopped in container or stopped == _SAYS_NOTHING:
        return container
    return f"{stopped}: {container}"
