"""Rates of calls to AWS: one token bucket for each of AWS's own (aws.md 3.1, 3.2), which slows down on throttling.

A throttled call halves the rate, which then recovers by a tenth of the full rate a second (AIMD). Clock and sleep are
arguments, so the same buckets run on virtual time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

GROWTH_PER_S = 0.1  # of the full rate
LOWEST_SHARE = 1 / 32  # of the full rate: a bucket never stops
SHORTEST_WAIT_S = 0.001
ONE_STORM_S = 1.0  # refusals this close together come from one overload


class CallRate(NamedTuple):
    """AWS's limit on one kind of calls."""

    per_s: float
    burst: float
    reserve: float = 0  # tokens that only urgent calls may take


class TokenBucket:
    """A bucket of `burst` tokens that refills at `rate.per_s`. Safe to share between threads."""

    def __init__(self, rate: CallRate, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self.full_rate_per_s, self.burst, self.reserve = rate
        self.throttles = 0  # how often AWS refused
        self._clock, self._sleep, self._lock = clock, sleep, Lock()
        self._tokens, self._filled_at = rate.burst, clock()
        self._slowed_to, self._slowed_at = rate.per_s, float("-inf")

    def take(self, deadline: float, urgent: bool = False) -> bool:
        """Wait for a token. False, without waiting, when none will be there before `deadline` (epoch seconds)."""
        while True:
            with self._lock:
                wait_s = self._wait_s(0 if urgent else self.reserve)
                if self._filled_at + wait_s > deadline:
                    return False
                if wait_s == 0:
                    self._tokens -= 1
                    return True
            self._sleep(wait_s)

    def take_at_once(self, deadline: float) -> bool:
        """Take a token for a call that may be skipped: False when none is there, or `deadline` has passed."""
        with self._lock:
            if self._wait_s(self.reserve) > 0 or self._filled_at > deadline:
                return False
            self._tokens -= 1
            return True

    def throttled(self) -> None:
        """AWS throttled a call: its bucket is emptier and slower than this one."""
        with self._lock:
            now = self._clock()
            self.throttles += 1
            if 0 <= now - self._slowed_at < ONE_STORM_S:  # negative when a clock was set back
                return
            self._fill()
            self._slowed_to = max(self._rate_per_s(now) / 2, self.full_rate_per_s * LOWEST_SHARE)
            self._slowed_at, self._tokens = now, min(self._tokens, self.reserve)

    @property
    def rate_per_s(self) -> float:
        return self._rate_per_s(self._clock())

    def _rate_per_s(self, now: float) -> float:
        since_s = max(0.0, now - self._slowed_at)  # a clock may be set back
        return min(self.full_rate_per_s, self._slowed_to + since_s * GROWTH_PER_S * self.full_rate_per_s)

    def _fill(self) -> None:
        now = self._clock()
        self._tokens = min(self.burst, self._tokens + max(0.0, now - self._filled_at) * self._rate_per_s(now))
        self._filled_at = now

    def _wait_s(self, floor: float) -> float:
        """Seconds until a token above `floor` is there; 0 = now."""
        self._fill()
        lacking = floor + 1 - self._tokens
        # Epoch seconds as floats resolve 0.2 us: a token that rounding makes incomplete after a sleep counts as there.
        return max(SHORTEST_WAIT_S, lacking / self._rate_per_s(self._filled_at)) if lacking > 1e-3 else 0.0


@dataclass(frozen=True, slots=True)
class CallRates:
    """The buckets of one account and region."""

    launches: TokenBucket  # RunTask and StopTask; the reserve is for stops
    reads: TokenBucket  # ECS List* and Describe* of tasks and container instances
    definitions: TokenBucket  # RegisterTaskDefinition and DeregisterTaskDefinition; the reserve is for the first
    fleets: TokenBucket  # ModifyFleet, CreateFleet, TerminateInstances

    @classmethod
    def of_aws(cls, clock: Callable[[], float], sleep: Callable[[float], None], times: float = 1) -> CallRates:
        """times: how much faster than AWS allows, where AWS is not called (local mode)."""
        return cls(
            launches=TokenBucket(CallRate(40 * times, 100, reserve=20), clock, sleep),
            reads=TokenBucket(CallRate(20 * times, 100), clock, sleep),
            definitions=TokenBucket(CallRate(1 * times, 20, reserve=10), clock, sleep),
            fleets=TokenBucket(CallRate(5 * times, 50), clock, sleep),
        )
