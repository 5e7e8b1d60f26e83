"""The answer of local mode's ExecuteCommand, written and read.

The answer names a process, or an engine and its container, and nothing to execute: the user's own program starts the
user's own command, with the user's own rights. So the server at the endpoint can start nothing here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

STREAM = "argosy-local:"  # in place of the address of a session
_CONTAINER = re.compile(r"argosy-[0-9a-f]{32}", re.ASCII)
_ENGINES = ("podman", "docker")


@dataclass(frozen=True, slots=True)
class WayIn:
    """pid: of the task's program, which is a process of this machine; 0 = it is a container of `engine`."""

    pid: int = 0
    engine: str = ""
    container: str = ""

    def as_session(self) -> tuple[str, str]:
        """Address and token of a session of ECS Exec."""
        return STREAM, json.dumps(asdict(self))

    @classmethod
    def of_session(cls, session: Mapping[str, Any]) -> WayIn | None:
        """None for a session of another ECS. Raises ValueError for an answer that local mode does not give."""
        if session.get("streamUrl") != STREAM:
            return None
        told = json.loads(str(session.get("tokenValue")))
        if not isinstance(told, dict) or told.keys() != {"pid", "engine", "container"}:
            raise ValueError("not a way into a task")
        found = cls(**told)
        is_process = type(found.pid) is int and found.pid > 1 and not (found.engine or found.container)
        is_container = found.pid == 0 and found.engine in _ENGINES and bool(_CONTAINER.fullmatch(str(found.container)))
        if not (is_process or is_container):
            raise ValueError("not a way into a task")
        return found
