"""The ports of this machine at which a task's container is reached.

A process of this machine cannot have the port that its definition names for itself, as a container can: several tasks
would want the same one. So it gets another port, in the variable that its definition names for that, and only on the
loopback interface is it reachable.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from argosy.model.services.ports import PORT_VARIABLE

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class PortOfTask:
    """is_endpoint: the task gets it, and it leads to the container; others are only reserved."""

    container: int
    host: int
    protocol: str
    is_endpoint: bool

    def as_binding(self) -> dict[str, Any]:
        """As the agent reports it."""
        return {
            "bindIP": LOOPBACK,
            "containerPort": self.container,
            "hostPort": self.host,
            "protocol": self.protocol,
        }


def free_port() -> int:
    """A port without a listener now. Raises OSError."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def bound(definition: Mapping[str, Any], choose: Callable[[], int]) -> Iterator[PortOfTask]:
    """The ports of a container definition. Host port 0 stands for one of the agent's choice. Raises OSError."""
    told = {each["name"] for each in definition.get("environment", ())}
    for each in definition.get("portMappings", ()):
        container, host = int(each["containerPort"]), int(each.get("hostPort") or 0)
        is_endpoint = f"{PORT_VARIABLE}{container}" in told
        yield PortOfTask(container, host or choose(), str(each.get("protocol") or "tcp"), is_endpoint)


def told_ports(ports: Sequence[PortOfTask]) -> dict[str, str]:
    """The port of a process, if its definition passes one to it at all."""
    return {f"{PORT_VARIABLE}{each.container}": str(each.host) for each in ports if each.is_endpoint}
