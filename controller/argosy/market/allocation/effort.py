"""How hard is a plan looked for, and when is it time to stop? Time comes from a clock that is handed in, if at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], float]  # seconds from some start


@dataclass(frozen=True, slots=True)
class Effort:
    """work: cells times shapes of a knapsack table; each next one is tried when the one before was too coarse.

    rounds: of column generation, each. looks: at most so many, ever finer, for the bound. good_enough: share above the
    bound at which nobody looks for better.
    """

    work: tuple[int, ...]
    rounds: int
    looks: int
    good_enough: float


THOROUGH = Effort(work=(20_000_000, 100_000_000), rounds=200, looks=3, good_enough=0.0015)
QUICK = Effort(work=(2_000_000,), rounds=12, looks=1, good_enough=0.01)
"""Within a tick, which has no clock: some tens of milliseconds for some tens of shapes and pools."""


class Deadline:
    """`seconds` from now by `clock`; without a clock it never comes."""

    def __init__(self, clock: Clock | None, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds
        self._start = self.now()

    def now(self) -> float:
        return self._clock() if self._clock else 0.0

    def passed(self, share: float = 1.0) -> bool:
        """Whether that share of the time is over."""
        return self._clock is not None and self.now() >= self._start + share * self._seconds

    def left(self) -> float:
        """Seconds; infinite without a clock."""
        return self._start + self._seconds - self.now() if self._clock else float("inf")
