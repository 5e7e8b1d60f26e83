"""The parts of a spec that belong to services and daemons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from argosy.model.run_terms import MAX_PORT, RESERVED_PORTS, START_FIRST, STOP_FIRST, port_of
from argosy.model.services.ports import MOST_TASK_PORTS
from argosy.model.services.targets import MOST_TARGETS
from argosy.spec.faults import Fault
from argosy.spec.fields import Strict, Text, refused

DIRECT, BY_SHELL = "CMD", "CMD-SHELL"


def _health_command(words: list[str]) -> list[str]:
    if words[0] not in (DIRECT, BY_SHELL):
        raise refused("must begin with CMD, then a program and its arguments, or with CMD-SHELL, then one text for sh")
    if words[0] == BY_SHELL and len(words) != 2:
        raise refused("must have exactly one text after CMD-SHELL")
    if not any(word.strip() for word in words[1:2]):
        raise refused(f"must name a program after {words[0]}")
    return words


def _not_reserved(port: int) -> int:
    if port in RESERVED_PORTS:
        raise refused(f"is reserved on every instance: ECS's agent keeps {', '.join(map(str, RESERVED_PORTS))}")
    return port


def _no_port_twice(ports: list[PortSpec]) -> list[PortSpec]:
    for name in ("container", "host"):
        given = [getattr(each, name) for each in ports if getattr(each, name) is not None]
        twice = next((port for index, port in enumerate(given) if port in given[:index]), None)
        if twice is not None:
            raise refused(f"names the {name} port {twice} twice")
    return ports


# The limits are ECS's own (API reference, HealthCheck).
class HealthSpec(Strict):
    """How ECS's agent asks a container whether it can serve, repeatedly."""

    command: Annotated[list[Text], Field(min_length=2, max_length=100), AfterValidator(_health_command)] = Field(
        description="[CMD, program, argument...], or [CMD-SHELL, text for sh -c]. It runs in the container; exit code 0"
        " means healthy."
    )
    interval_seconds: int = Field(default=30, ge=5, le=300, description="Seconds between two checks.")
    timeout_seconds: int = Field(default=5, ge=2, le=60, description="Seconds after which a check has failed.")
    retries: int = Field(
        default=3,
        ge=1,
        le=10,
        description="Consecutive failures that make the container unhealthy. A task that stays so for another retries x"
        " intervalSeconds is replaced.",
    )
    start_seconds: int = Field(
        default=0, ge=0, le=300, description="Seconds after the container's start during which failures do not count."
    )


class PortSpec(Strict):
    """A port at which each task is reached."""

    container: int = Field(
        ge=1,
        le=MAX_PORT,
        description="Port of the program in its container. ARGOSY_PORT_ and this number holds it: a process"
        " of local mode listens on another one.",
    )
    host: Annotated[int, AfterValidator(_not_reserved)] | None = Field(
        default=None,
        ge=1,
        le=MAX_PORT,
        description="Port of the instance that forwards to it. Default: a free one. If set, no two tasks share an"
        " instance.",
    )


Ports = Annotated[list[PortSpec], Field(min_length=1, max_length=MOST_TASK_PORTS), AfterValidator(_no_port_twice)]


OptionalPorts = Annotated[
    Ports | None,
    Field(description="For a service: the ports at which its tasks are reached; `argosy env endpoints` lists them."),
]
OptionalHealth = Annotated[
    HealthSpec | None,
    Field(
        description="For a service: the check that a task can serve. Default: it counts as healthy once it has"
        " run for service.update.healthySeconds."
    ),
]


def serving_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """The agreement of a health command with ports."""
    given = data.get("container")
    container = given if isinstance(given, Mapping) else {}
    yield from _timing_faults(container.get("health"))
    yield from _held_twice(container)


def _timing_faults(health: Any) -> Iterator[Fault]:
    """Docker would start the next check while one is still running."""
    if not isinstance(health, Mapping):
        return
    interval, timeout = health.get("intervalSeconds", 30), health.get("timeoutSeconds", 5)
    if isinstance(interval, int) and isinstance(timeout, int) and timeout > interval:
        yield Fault("container.health.timeoutSeconds", f"must be at most intervalSeconds, which is {interval}")


def _held_twice(container: Mapping[str, Any]) -> Iterator[Fault]:
    ports, held = container.get("ports"), container.get("hostPorts")
    if not isinstance(ports, list) or not isinstance(held, list):
        return
    for number, each in enumerate(ports):
        host = each.get("host") if isinstance(each, Mapping) else None
        if isinstance(host, int) and any(_is_tcp(port, host) for port in held):
            yield Fault(f"container.ports[{number}].host", f"is {host}, which container.hostPorts holds already")


def _is_tcp(given: Any, number: int) -> bool:
    try:
        return port_of(given) == (number, "tcp")
    except ValueError:
        return False  # reported as a fault of the field


class DaemonUpdateSpec(Strict):
    """How tasks of a daemon are replaced by those of another revision."""

    min_healthy_percent: int = Field(
        default=80,
        ge=0,
        le=100,
        description="Percent of the matching instances, rounded up, that keep a healthy task during an update; at most"
        " all but one.",
    )
    order: Literal["stop-first", "start-first"] = Field(
        default=STOP_FIRST,
        description="Whether the old task on an instance stops before the new one starts or once it is healthy.",
    )
    healthy_seconds: int = Field(
        default=15, ge=1, le=3600, description="Seconds after which a running task counts as healthy."
    )
    progress_seconds: int = Field(
        default=600, ge=10, le=86_400, description="Seconds without progress after which a deployment counts as stuck."
    )
    rollback: bool = Field(
        default=True, description="Whether a failed deployment rolls back to the revision of the last completed one."
    )


class DaemonSpec(Strict):
    """On which instances a task of a daemon runs, and how its tasks are updated."""

    instances: Annotated[str, Field(min_length=1, max_length=4096)] | None = Field(
        default=None,
        description="The instances: a cluster query expression about attributes. Default: all.",
    )
    update: DaemonUpdateSpec = Field(
        default_factory=DaemonUpdateSpec, description="How tasks are replaced by those of another revision."
    )


def daemon_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """The agreement of a daemon's fields."""
    if data.get("run") is not None and data.get("result") != "none":
        yield Fault("result", "must be none with kind: daemon: its tasks leave no results")
    yield from _order_faults(data)


def _order_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    daemon, container = data.get("daemon"), data.get("container")
    update = daemon.get("update") if isinstance(daemon, Mapping) else None
    ports = container.get("hostPorts") if isinstance(container, Mapping) else None
    if ports and isinstance(update, Mapping) and update.get("order") == START_FIRST:
        sentence = "must be stop-first where container.hostPorts are given: two tasks cannot hold one port"
        yield Fault("daemon.update.order", sentence)


SERVICE_LIMIT = 10_000  # tasks of one service


class UpdateSpec(Strict):
    """How tasks of a service are replaced by those of another revision."""

    min_healthy_percent: int = Field(
        default=100,
        ge=0,
        le=100,
        description="Percent of the desired tasks, rounded up, that stay healthy.",
    )
    max_over_percent: int = Field(
        default=25,
        ge=0,
        le=100,
        description="Percent of the desired tasks, rounded up, that may run in addition during an update. With 0, a"
        " task is stopped before its replacement starts.",
    )
    healthy_seconds: int = Field(
        default=15,
        ge=1,
        le=3600,
        description="Seconds that a task must run, or pass its health command, before it counts as healthy.",
    )
    progress_seconds: int = Field(
        default=600, ge=10, le=86_400, description="Seconds without progress after which a deployment counts as stuck."
    )
    rollback: bool = Field(
        default=True, description="Whether a failed deployment rolls back to the revision of the last completed one."
    )


class ServiceSpec(Strict):
    """How many tasks of a service are kept running, and how they are updated."""

    desired: int = Field(ge=0, le=SERVICE_LIMIT, description="Number of tasks to run.")
    update: UpdateSpec = Field(
        default_factory=UpdateSpec, description="How tasks are replaced by those of another revision."
    )
    target_group: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")] | None = Field(
        default=None,
        description="Name of a target group in the deployment's setting targetGroups: each task is registered there"
        " with the first of container.ports while it serves.",
    )
    drain_seconds: int | None = Field(
        default=None,
        ge=0,
        le=3600,
        description="Seconds from when the target group sends a task no new requests until it gets SIGTERM. Default:"
        " 30. A spot warning leaves at most 80.",
    )


def service_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """The agreement of a service's fields."""
    if data.get("service") is None:
        yield Fault("service", "is required with kind: service; its field desired says how many tasks are to run")
    if data.get("run") is not None and data.get("result") != "none":
        yield Fault("result", "must be none with kind: service: its tasks leave no results")
    yield from _update_faults(data.get("service"))
    yield from _target_faults(data)


def _target_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    service, container = data.get("service"), data.get("container")
    if not isinstance(service, Mapping):
        return
    if service.get("targetGroup") is None:
        if service.get("drainSeconds") is not None:
            yield Fault("service.drainSeconds", "is only possible with service.targetGroup, which it waits for")
        return
    if not (isinstance(container, Mapping) and container.get("ports")):
        yield Fault("service.targetGroup", "needs container.ports: the first of them is registered")
    desired = service.get("desired")
    if isinstance(desired, int) and desired > MOST_TARGETS:
        yield Fault("service.desired", f"must be at most {MOST_TARGETS:,} with service.targetGroup")


def target_group_faults(data: Mapping[str, Any], groups: Mapping[str, str], cells: Sequence[str]) -> Iterator[Fault]:
    """groups: ARNs of the deployment's target groups. One takes instances of its own Region only."""
    service, capacity = data.get("service"), data.get("capacity")
    name = service.get("targetGroup") if isinstance(service, Mapping) else None
    if not isinstance(name, str):
        return
    if name not in groups:
        known = f"there are {', '.join(sorted(groups))}" if groups else "it has none"
        yield Fault("service.targetGroup", f"{name[:32]!r} is not in the deployment's setting targetGroups: {known}")
        return
    region = groups[name].split(":")[3]
    given = capacity.get("cells") if isinstance(capacity, Mapping) else None
    if set(given if isinstance(given, list) and given else cells) - {region}:
        yield Fault("service.targetGroup", f"{name!r} is in {region}: set capacity.cells to [{region}]")


def base_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """The fields that a service's on-demand base requires."""
    given = data.get("capacity")
    capacity = given if isinstance(given, Mapping) else {}
    if capacity.get("onDemandBase") and capacity.get("purchase", "spot") != "spot":
        yield Fault("capacity.onDemandBase", "is only possible with purchase: spot, from which it moves tasks")


def _update_faults(service: Any) -> Iterator[Fault]:
    update = service.get("update") if isinstance(service, Mapping) else None
    if not isinstance(update, Mapping):
        return
    if update.get("minHealthyPercent", 100) == 100 and update.get("maxOverPercent", 25) == 0:
        yield Fault(
            "service.update", "could never replace a task: set maxOverPercent above 0, or minHealthyPercent below 100"
        )
