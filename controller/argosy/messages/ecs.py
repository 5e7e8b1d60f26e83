"""Parsers for the description of an ECS task or container instance.

Pure parsers of one shape in two dialects: the API's answers (aware datetimes) and the `detail` of an event (ISO
strings); epoch seconds are read as well. Every field except the ARN may be missing, and unknown fields are ignored
(aws.md 9.2, 9.3). A field of the wrong type, or with a value that the columns of the state cannot hold, raises one of
UNREADABLE: the message is poison. Texts and lists are cut to the size that an item of the store can hold. JSON can
spell half of a surrogate pair, which no UTF-8 text can hold: a name with one is refused, and in a reason it becomes a
question mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from argosy.messages.health import impairment
from argosy.model.attempts import LAUNCH_VARIABLE, AttemptKey
from argosy.model.events import ContainerInstanceSeen, TaskSeen
from argosy.model.exit_codes import SAYS_NOTHING
from argosy.model.instances import GpuDevice
from argosy.model.run_terms import MAX_PORT
from argosy.model.services.ports import TCP, PortBinding

UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
MAX_TEXT = 1_000  # characters kept of a reason; ECS's own are shorter
MAX_ARN = 2_048  # IAM's limit
MAX_PORTS = 100  # of a container: ECS's limit
MAX_GPUS = 32  # bits of a gpu_mask
MAX_ATTRIBUTES = 200  # an agent registers about fifty; ECS allows ten custom ones
MAX_ATTRIBUTE = 128  # characters of a name or value: ECS's limit
LATEST_S = 4_102_444_800.0  # the year 2100: later times are not times
_EC2_ID = re.compile(r"i-[0-9a-f]{8,17}", re.ASCII)
_KEY_VARIABLES = ("ARGOSY_RUN_ID", "ARGOSY_TASK_INDEX", "ARGOSY_TASK_ATTEMPT", LAUNCH_VARIABLE)


def epoch_s(time: Any) -> float:
    """A datetime, an ISO string or an epoch as epoch seconds; 0 for an empty value. Raises one of UNREADABLE."""
    if not time:
        return 0.0
    if isinstance(time, str):
        time = datetime.fromisoformat(time)
    at = time.timestamp() if isinstance(time, datetime) else float(time)
    if not 0 <= at < LATEST_S:  # also refuses NaN
        raise ValueError(f"not a time: {at}")
    return at


def key_of_task(task: Mapping[str, Any]) -> AttemptKey | None:
    """The attempt that this task was started for, from the environment in its overrides; None for a foreign task."""
    for override in _container_overrides(task):
        values = {entry.get("name"): entry.get("value") for entry in override.get("environment") or ()}
        run_id, *numbers = (values.get(name) for name in _KEY_VARIABLES)
        if run_id and all(isinstance(number, str) and number.isdecimal() for number in numbers):
            return AttemptKey(storable(str(run_id)), *(_number(int(str(number)), 2**32) for number in numbers))
    return None


def task_seen(task: Mapping[str, Any]) -> TaskSeen:
    """A task of DescribeTasks or RunTask, or the detail of an "ECS Task State Change"."""
    containers = task.get("containers") or ()
    main = _main_container(task, containers)
    exit_code = main.get("exitCode")
    return TaskSeen(
        arn=_arn(task["taskArn"]),
        version=_number(int(task.get("version") or 0), 2**63),
        last_status=_text(task.get("lastStatus")),
        desired_status=_text(task.get("desiredStatus")),
        started_by=_text(task.get("startedBy")),
        key=key_of_task(task),
        exit_code=None if exit_code is None else _exit_code(exit_code),
        stop_code=_text(task.get("stopCode")),
        reason=_reason(_text(task.get("stoppedReason")), _text(main.get("reason"))),
        started_at=epoch_s(task.get("startedAt")),
        stopped_at=epoch_s(task.get("stoppedAt")),
        gpu_ids=_gpus(gpu for container in containers for gpu in container.get("gpuIds") or ()),
        status_reason=_text(task.get("stoppedReason")),
        container_reason=_text(main.get("reason")),
        health=_text(main.get("healthStatus")),
        ports=_ports(main.get("networkBindings") or ()),
        pull_started_at=epoch_s(task.get("pullStartedAt")),
        pull_stopped_at=epoch_s(task.get("pullStoppedAt")),
    )


def container_instance_seen(instance: Mapping[str, Any], cell: str, *, listed: bool = False) -> ContainerInstanceSeen:
    """An instance of DescribeContainerInstances, or the detail of an "ECS Container Instance State Change".

    Without a statement that the agent is connected it counts as disconnected: nothing is placed on a guess.
    """
    resources = {entry.get("name"): entry for entry in instance.get("registeredResources") or ()}
    return ContainerInstanceSeen(
        arn=_arn(instance["containerInstanceArn"]),
        version=_number(int(instance.get("version") or 0), 2**63),
        instance_id=_ec2_id(instance.get("ec2InstanceId")),
        cell=cell,
        status=_text(instance.get("status")),
        agent_connected=instance.get("agentConnected") is True,
        cpu_units=_number(int(resources.get("CPU", {}).get("integerValue") or 0), 2**31),
        memory_mib=_number(int(resources.get("MEMORY", {}).get("integerValue") or 0), 2**31),
        gpu_ids=_gpus(resources.get("GPU", {}).get("stringSetValue") or ()),
        attributes=_attributes(instance.get("attributes") or ()),
        registered_at=epoch_s(instance.get("registeredAt")),
        remaining=_remaining(instance),
        listed=listed,
        impaired=_impaired(instance.get("healthStatus") or {}),
        gpu_devices=_devices(instance.get("gpuDevices") or ()),
    )


def _devices(devices: Iterable[Mapping[str, Any]]) -> tuple[GpuDevice, ...]:
    ids = _gpus(each["gpuId"] for each in devices)
    names = ("remainingMemoryInMiB", "totalMemoryInMiB")
    sizes = ([_number(int(each.get(name) or 0), 2**31) for name in names] for each in devices)
    modes = (_text(each.get("sharingMode")) for each in devices)
    return tuple(GpuDevice(gpu, mode, *mib) for gpu, mode, mib in zip(ids, modes, sizes, strict=True))


def _impaired(health: Mapping[str, Any]) -> str | None:
    """None if ECS was not asked."""
    status = health.get("overallStatus")
    return impairment(health.get("details") or ()) if status == "IMPAIRED" else None if status is None else ""


def _remaining(instance: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """The resources that ECS still has to give (CPU units, MiB, GPUs), whatever uses the rest; None when ECS does not
    say.

    The set of GPUs may or may not hold only the free ids; AWS does not document it (aws.md 13). Without a set all GPUs
    count as free, so that none is lost by mistake.
    """
    said = {entry.get("name"): entry for entry in instance.get("remainingResources") or ()}
    cpu_units, memory_mib = (said.get(name, {}).get("integerValue") for name in ("CPU", "MEMORY"))
    if cpu_units is None or memory_mib is None:
        return None
    free = said.get("GPU", {}).get("stringSetValue")
    registered = {entry.get("name"): entry for entry in instance.get("registeredResources") or ()}
    gpus = registered.get("GPU", {}).get("stringSetValue") or () if free is None else free
    return int(cpu_units), int(memory_mib), len(gpus)


def _arn(arn: Any) -> str:
    """The one field that is required. Raises ValueError."""
    if not isinstance(arn, str) or arn.count(":") < 5 or len(arn) > MAX_ARN:
        raise ValueError(f"not an ARN: {shown(arn)}")
    return storable(arn)


def storable(text: str) -> str:
    """The text, which names something. Raises UnicodeEncodeError for one that the store could not hold."""
    text.encode()
    return text


def shown(value: Any) -> str:
    """A value in the message of a fault. Containers, which may be nested too deeply to be written, by their type."""
    return repr(value[:80]) if isinstance(value, str) else type(value).__name__


def _text(value: Any) -> str:
    """A reason or a status. Raises ValueError for a list or an object."""
    if isinstance(value, str) and value.isascii():
        return value[:MAX_TEXT]
    if isinstance(value, (list, Mapping)):
        raise ValueError(f"not text: {shown(value)}")
    return str(value or "")[:MAX_TEXT].encode(errors="replace").decode()


def _number(value: int, below: int) -> int:
    """Raises ValueError for a number that a column of the state cannot hold."""
    if not 0 <= value < below:
        raise ValueError(f"not between 0 and {below}: {value}")
    return value


def _exit_code(value: Any) -> int:
    """Windows has negative exit codes."""
    return _number(int(value) + 2**31, 2**32) - 2**31


def _ec2_id(value: Any) -> str:
    """Empty for a host that is not an EC2 instance: ECS Anywhere's are called mi-..., and are ignored."""
    return value if isinstance(value, str) and _EC2_ID.fullmatch(value) else ""


def _gpus(ids: Iterable[Any]) -> tuple[str, ...]:
    found = tuple(_text(gpu)[:MAX_ATTRIBUTE] for gpu in ids)
    if len(found) > MAX_GPUS:
        raise ValueError(f"{len(found)} GPUs")
    return found


def _ports(bindings: Iterable[Mapping[str, Any]]) -> tuple[PortBinding, ...]:
    """Each of the container's TCP ports once: an instance with IPv6 binds it twice."""
    found: dict[int, int] = {}
    for each in bindings:
        container, host = each.get("containerPort"), each.get("hostPort")
        if container and host and str(each.get("protocol") or TCP) == TCP and len(found) < MAX_PORTS:
            found.setdefault(_number(int(container), MAX_PORT + 1), _number(int(host), MAX_PORT + 1))
    return tuple(PortBinding(container, host) for container, host in found.items())


def _attributes(entries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    named = [(_text(entry["name"])[:MAX_ATTRIBUTE], _text(entry.get("value"))[:MAX_ATTRIBUTE]) for entry in entries]
    return dict(named[:MAX_ATTRIBUTES])


def _container_overrides(task: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (task.get("overrides") or {}).get("containerOverrides") or ()


def _main_container(task: Mapping[str, Any], containers: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The container whose end counts for the attempt: the one that Argosy overrides, else the first with an exit
    code."""
    ours = {override.get("name") for override in _container_overrides(task)}
    ordered = sorted(containers, key=lambda each: (each.get("name") not in ours, each.get("exitCode") is None))
    return ordered[0] if ordered else {}


def _reason(stopped: str, container: str) -> str:
    """Both reasons in one line, without repetition. An uninformative stopped reason is left out."""
    if not container or container in stopped:
        return stopped
    if stopped in container or stopped == SAYS_NOTHING:
        return container
    return f"{stopped}: {container}"
