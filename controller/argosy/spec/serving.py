"""How is a service's container asked whether it is healthy, and at which ports is it reached?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from argosy.model.ports import MOST_TASK_PORTS
from argosy.model.run_terms import MAX_PORT, RESERVED_PORTS, port_of
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
    """How ECS's agent asks a container whether it can serve, again and again."""

    command: Annotated[list[Text], Field(min_length=2, max_length=100), AfterValidator(_health_command)] = Field(
        description="[CMD, program, argument...], or [CMD-SHELL, text for sh -c]. It runs in the container; exit code 0"
        " means healthy."
    )
    interval_seconds: int = Field(default=30, ge=5, le=300, description="Seconds from one run of it to the next.")
    timeout_seconds: int = Field(default=5, ge=2, le=60, description="Seconds after which a run of it has failed.")
    retries: int = Field(
        default=3,
        ge=1,
        le=10,
        description="Failures in a row that make the container unhealthy. A task that stays so for another retries x"
        " intervalSeconds is replaced.",
    )
    start_seconds: int = Field(
        default=0, ge=0, le=300, description="Seconds from the container's start in which failures do not count."
    )


class PortSpec(Strict):
    """A port at which each task is reached."""

    container: int = Field(
        ge=1,
        le=MAX_PORT,
        description="Where the program listens, in its container. It is told as ARGOSY_PORT_ and this number: a process"
        " of local mode listens on another one.",
    )
    host: Annotated[int, AfterValidator(_not_reserved)] | None = Field(
        default=None,
        ge=1,
        le=MAX_PORT,
        description="Port of the instance that leads there. Default: a free one. With it, no two tasks share an"
        " instance.",
    )


Ports = Annotated[list[PortSpec], Field(min_length=1, max_length=MOST_TASK_PORTS), AfterValidator(_no_port_twice)]


OptionalPorts = Annotated[
    Ports | None,
    Field(description="Of a service: the ports at which its tasks are reached; `argosy env endpoints` lists them."),
]
OptionalHealth = Annotated[
    HealthSpec | None,
    Field(
        description="Of a service: how a task is asked whether it can serve. Default: it counts as healthy once it has"
        " run for service.update.healthySeconds."
    ),
]


def serving_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """What a health command and ports must agree on."""
    given = data.get("container")
    container = given if isinstance(given, Mapping) else {}
    yield from _timing_faults(container.get("health"))
    yield from _held_twice(container)


def _timing_faults(health: Any) -> Iterator[Fault]:
    """Docker would begin the next run while one still goes on."""
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
