"""Which ports of its instance does a task hold, and which can none have?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Port = tuple[int, str]  # (1-65535, "tcp" | "udp")
MAX_PORT = 65_535
# ssh, docker and the agent: https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_PortMapping.html
RESERVED_PORTS = (22, 2375, 2376, 51678, 51679, 51680)


def port_of(given: Any) -> Port:
    """8080 and "8080/tcp" are (8080, "tcp"). Raises ValueError with what is wrong, said of the value."""
    found = re.fullmatch(r"([0-9]{1,5})/(tcp|udp)", given, re.ASCII) if isinstance(given, str) else None
    if found is not None:
        number, protocol = int(found[1]), found[2]
    elif isinstance(given, int) and not isinstance(given, bool):
        number, protocol = given, "tcp"
    else:
        raise ValueError('must be a port such as 8080, "8080/tcp" or "53/udp"')
    if not 1 <= number <= MAX_PORT:
        raise ValueError(f"must be between 1 and {MAX_PORT}")
    if number in RESERVED_PORTS:
        raise ValueError(f"is reserved on every instance: ECS's agent keeps {', '.join(map(str, RESERVED_PORTS))}")
    return number, protocol


def ports_of_spec(spec: Mapping[str, Any]) -> tuple[Port, ...]:
    """The host ports of a validated spec with a `container`, lowest first, so that equal sets are equal."""
    return tuple(sorted(port_of(given) for given in spec.get("container", {}).get("hostPorts", ())))
