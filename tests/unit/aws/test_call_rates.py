"""The token buckets, on a clock that advances only in `sleep`."""

from __future__ import annotations

from argosy.aws.call_rates import CallRate, CallRates, TokenBucket
from tests.builders import NOW
from tests.fakes.aws import Clock

FOREVER = float("inf")


def taken(pace: TokenBucket, count: int, deadline: float = FOREVER, urgent: bool = False) -> int:
    return sum(pace.take(deadline, urgent) for _ in range(count))


def test_a_burst_is_free_and_then_the_rate_holds() -> None:
    clock = Clock()
    pace = TokenBucket(CallRate(40, 100), clock, clock.sleep)
    assert taken(pace, 100) == 100
    assert clock.at == NOW
    assert taken(pace, 400) == 400
    assert abs(clock.at - NOW - 10.0) < 1e-3


def test_what_does_not_fit_before_the_deadline_is_refused_without_waiting() -> None:
    clock = Clock()
    pace = TokenBucket(CallRate(10, 5), clock, clock.sleep)
    assert taken(pace, 100, deadline=NOW + 1.0) == 15
    assert clock.at <= NOW + 1.0
    assert not pace.take(clock.at + 0.05)


def test_a_deadline_that_has_passed_gives_nothing_even_when_tokens_are_there() -> None:
    clock = Clock()
    assert not TokenBucket(CallRate(10, 5), clock, clock.sleep).take(NOW - 0.001)


def test_the_reserve_is_for_urgent_calls() -> None:
    clock = Clock()
    pace = TokenBucket(CallRate(40, 100, reserve=20), clock, clock.sleep)
    assert taken(pace, 200, deadline=NOW) == 80
    assert taken(pace, 200, deadline=NOW, urgent=True) == 20


def test_what_can_wait_takes_what_is_there_above_the_reserve_and_never_sleeps() -> None:
    clock = Clock()
    pace = TokenBucket(CallRate(1, 3, reserve=1), clock, clock.sleep)
    assert [pace.take_at_once(NOW + 100) for _ in range(4)] == [True, True, False, False]
    assert clock.at == NOW
    clock.at += 5
    assert [pace.take_at_once(deadline) for deadline in (NOW, NOW + 5)] == [False, True]


def test_throttling_halves_the_rate_which_grows_back_by_a_tenth_a_second() -> None:
    clock = Clock()
    pace = TokenBucket(CallRate(40, 100, reserve=20), clock, clock.sleep)
    pace.throttled()
    assert pace.rate_per_s == 20
    assert not pace.take(NOW)  # only the reserve is left
    assert pace.take(NOW, urgent=True)
    clock.at += 3
    assert pace.rate_per_s == 32
    clock.at += 30
    assert pace.rate_per_s == 40


def test_one_storm_of_refusals_halves_once_and_the_rate_never_reaches_zero() -> None:
    clock = Clock()
    pace = TokenBucket(CallRate(32, 100), clock, clock.sleep)
    for _ in range(8):
        pace.throttled()
    assert (pace.rate_per_s, pace.throttles) == (16, 8)
    for _ in range(100):
        clock.at += 1.0
        pace.throttled()
    assert pace.rate_per_s >= 1


def test_a_clock_that_jumps_back_gives_no_tokens_and_takes_none() -> None:
    clock = Clock()
    pace = TokenBucket(CallRate(10, 5), clock, clock.sleep)
    assert taken(pace, 5, deadline=NOW) == 5
    clock.at -= 3600
    assert not pace.take(clock.at)
    clock.at += 0.1
    assert pace.take(clock.at)


def test_the_buckets_are_those_of_aws() -> None:
    clock = Clock()
    rates = CallRates.of_aws(clock, clock.sleep)
    launches = rates.launches
    assert (launches.full_rate_per_s, launches.burst, launches.reserve) == (40, 100, 20)
    assert (rates.reads.full_rate_per_s, rates.reads.burst) == (20, 100)
    assert (rates.definitions.full_rate_per_s, rates.definitions.burst) == (1, 20)


def test_a_clock_that_is_set_back_blocks_no_controller() -> None:
    """Found by the simulation: a pace that had been slowed down had a negative rate until the clock caught up."""
    clock = Clock()
    pace = TokenBucket(CallRate(40, 100), clock, clock.sleep)
    pace.throttled()
    clock.at -= 300
    assert pace.rate_per_s == 20
    began = clock.at
    assert taken(pace, 200, deadline=began + 20)
    assert clock.at - began < 11
    pace.throttled()  # and a refusal still counts
    assert pace.rate_per_s < 40


def test_what_is_no_aws_may_be_called_many_times_as_fast() -> None:
    clock = Clock()
    aws, local = (CallRates.of_aws(clock, clock.sleep, *times) for times in ((), (25.0,)))
    for name in ("launches", "reads", "definitions", "fleets"):
        assert getattr(local, name).rate_per_s == 25 * getattr(aws, name).rate_per_s
