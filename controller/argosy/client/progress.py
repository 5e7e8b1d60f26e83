"""How far has a run got, and when will it end at its present rate?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DONE = ("succeeded", "failed", "cancelled")
TERMINAL = frozenset({"SUCCEEDED", "PARTIAL", "FAILED", "CANCELLED"})
CANCELLING = "CANCELLING"  # from the request to the end
RATE_WINDOW_S = 60.0


def finished(tasks: Mapping[str, Any]) -> int:
    """The number of finished tasks: succeeded, failed or cancelled."""
    return sum(int(tasks[status]) for status in DONE)


@dataclass
class ProgressRate:
    """Tasks finished per second over the last minute, and the time to the end at that rate."""

    samples: list[tuple[float, int]] = field(default_factory=list)  # (epoch seconds, tasks finished)
    left: int = 0  # tasks

    def see(self, now: float, view: Mapping[str, Any]) -> None:
        """Add a run view that was read at `now`, in epoch seconds."""
        count = finished(view["tasks"])
        self.left = view["tasks"]["total"] - count
        self.samples.append((now, count))
        while len(self.samples) > 2 and self.samples[1][0] <= now - RATE_WINDOW_S:
            del self.samples[0]

    @property
    def per_s(self) -> float:
        """Tasks per second; 0 until a task has finished under observation."""
        (begin, before), (end, after) = self.samples[0], self.samples[-1]
        return (after - before) / (end - begin) if end > begin else 0.0

    @property
    def left_s(self) -> float | None:
        """Seconds to the end; None while the rate is unknown or nothing is left."""
        return self.left / self.per_s if self.per_s and self.left else None
