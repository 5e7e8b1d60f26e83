"""At which ports is a service's task reached?

It has ports in its container and on its instance. A task has few ports, so those of its instance fit into one number, a
column of the attempts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

TCP = "tcp"
MOST_TASK_PORTS = 4  # of one task: 16 bits each
BITS, MASK = 16, 0xFFFF
PORT_VARIABLE = "ARGOSY_PORT_"  # the container's port: where the program listens


class TaskPort(NamedTuple):
    """A port that a spec names. host: 0 = the agent chooses a free one."""

    container: int
    host: int = 0


class PortBinding(NamedTuple):
    """A port of a container, and the instance's port that leads to it."""

    container: int
    host: int


def packed(ports: Sequence[TaskPort], bindings: Iterable[PortBinding]) -> int:
    """The ports of the instance, in the order of the container's in the spec; 0 if one is not bound."""
    hosts = {each.container: each.host for each in bindings}
    return sum((hosts.get(port.container, 0) & MASK) << (BITS * place) for place, port in enumerate(ports))


def unpacked(ports: Sequence[TaskPort], number: int) -> list[PortBinding]:
    """The bound ports."""
    found = [PortBinding(port.container, (number >> (BITS * place)) & MASK) for place, port in enumerate(ports)]
    return [each for each in found if each.host]
