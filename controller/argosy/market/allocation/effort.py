"""The effort of a search for a plan, and its time limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

Clock = Callable[[], float]  # seconds from some start


class TimeLimit:
    """`seconds` from now by `clock`; without a clock there is no limit."""

    def __init__(self, seconds: float = 0.0, clock: Clock | None = None) -> None:
        self._clock, self._seconds = clock, seconds
        self._start = self.now()

    def now(self) -> float:
        """Seconds by the clock; always 0 without one."""
        return self._clock() if self._clock else 0.0

    def passed(self, share: float = 1.0) -> bool:
        """Whether that share of the time is over."""
        return self._clock is not None and self.now() >= self._start + share * self._seconds

    def left(self) -> float:
        """Seconds; infinite without a clock."""
        return self._start + self._seconds - self.now() if self._clock else float("inf")


UNLIMITED: Final = TimeLimit()


@dataclass(frozen=True, slots=True)
class Effort:
    """The amount of work for one plan."""

    work: tuple[int, ...]
    """Cells times shapes of a knapsack table; the next one is tried when the one before was too coarse."""
    rounds: int
    """Of column generation, for each table."""
    looks: int
    """The most tables, each finer than the one before, for the lower bound."""
    again: int
    """How often parts of a plan are given back and bought again; 0 = plans of few sizes begin without a dive, too."""
    good_enough: float
    """A plan within this share of the lower bound is not improved further."""
    time: TimeLimit = UNLIMITED

    def within(self, seconds: float, clock: Clock) -> Effort:
        """The same effort for about that many seconds from now. Without a clock, equal input gives equal results."""
        return replace(self, time=TimeLimit(seconds, clock))


THOROUGH = Effort(work=(20_000_000, 100_000_000), rounds=200, looks=3, again=100, good_enough=0.0015)
QUICK = Effort(work=(2_000_000,), rounds=12, looks=1, again=0, good_enough=0.01)
"""For use within a tick, which has no clock: some tens of milliseconds for some tens of shapes and pools."""
