"""What happened to one task or instance? All that world and controllers did is kept, and searched on demand."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Iterator
from typing import Any

JSON = dict[str, Any]

KEPT = 50_000  # entries
LINE_WIDTH = 400  # characters of a line that are shown
_SHOWN = (
    "instance-id",
    "state",
    "taskArn",
    "lastStatus",
    "desiredStatus",
    "stopCode",
    "stoppedReason",
    "ec2InstanceId",
    "status",
    "agentConnected",
    "version",
    "containerInstanceArn",
    "sub-type",
)


class AuditTrail:
    """The latest events and calls. It keeps references: nothing is turned into text until it is asked for."""

    def __init__(self) -> None:
        self._kept: deque[tuple[float, str, Any]] = deque(maxlen=KEPT)

    def add(self, at: float, what: str, about: Any) -> None:
        self._kept.append((at, what, about))

    def about(self, names: Collection[str], start: float) -> list[str]:
        """The lines that mention one of the names (an ARN, an instance id, a run's index); times count from `start`."""
        return list(self._lines(frozenset(names), start))

    def _lines(self, names: frozenset[str], start: float) -> Iterator[str]:
        for at, what, about in self._kept:
            text = about if isinstance(about, str) else json.dumps(about, default=str)
            if any(name in text for name in names):
                yield f"{at - start:9.2f} s  {what}: {text[:LINE_WIDTH]}"


def short(message: JSON) -> JSON:
    """The members of an event that tell what happened."""
    detail = message["detail"]
    return {name: detail[name] for name in _SHOWN if name in detail}
