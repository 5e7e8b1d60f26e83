"""Which ended attempts may be due to the end of their instances?

Not stored: to a controller that starts again, ECS shows a failure again, and a missing result is looked up again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from argosy.model.events import TaskSeen


@dataclass(frozen=True, slots=True)
class OpenEnd:
    """An attempt that ended with a failure. It keeps its row until it is known whether the user is charged."""

    seen: TaskSeen
    heard_at: float  # epoch seconds
    known_at: float  # if its instance still runs then, it did not cause the end
    pause_s: float = 0.0  # until its task may start again


@dataclass(frozen=True, slots=True)
class MissingResult:
    """An attempt that ended with exit code 0 and wrote no result. Its task stays VERIFYING until then."""

    attempt: int
    instance: str
    heard_at: float  # epoch seconds, when its result was looked up
    known_at: float  # as above


class GpuKill(NamedTuple):
    """A task that shared a GPU and was ended by SIGKILL. ended_at: epoch seconds; seconds: how long it ran."""

    name: str
    ended_at: float
    seconds: float


@dataclass(slots=True)
class OpenEnds:
    """All of them, and when EC2 was last asked about their instances."""

    failures: dict[int, OpenEnd] = field(default_factory=dict)  # by attempt row
    missing_results: dict[tuple[str, int], MissingResult] = field(default_factory=dict)  # by run and task index
    ran_at: dict[str, float] = field(default_factory=dict)  # instance -> the last time at which EC2 reported it running
    killed: dict[tuple[str, int], GpuKill] = field(default_factory=dict)  # by instance and mask of the GPU: the latest

    def __bool__(self) -> bool:
        return bool(self.failures or self.missing_results)

    def keep(self, row: int, seen: TaskSeen, heard_at: float, known_at: float) -> None:
        """Keep a failure, or a later sighting of it."""
        earlier = self.failures.setdefault(row, OpenEnd(seen, heard_at, known_at))
        if seen.version > earlier.seen.version:
            self.failures[row] = replace(earlier, seen=seen)

    def heard(self) -> list[tuple[TaskSeen, float]]:
        """The failures as facts, with their times: the time that each has to wait does not begin again."""
        return [(each.seen, each.heard_at) for each in self.failures.values()]

    def copy(self) -> OpenEnds:
        """A copy with the same entries, which never change."""
        return OpenEnds(dict(self.failures), dict(self.missing_results), dict(self.ran_at), dict(self.killed))
