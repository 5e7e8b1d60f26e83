"""How much does recent use raise or lower a weight?"""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from argosy.model.shares.recent_use import MOST_SHARERS, UNIT, Amounts, RecentUse, Sharer
from argosy.sharing.columns import MOST_FACTOR, ONE_FACTOR, Columns, Limits, Sharers
from argosy.sharing.fill import fill
from argosy.sharing.history import LEAST_FACTOR, Weight, factors
from tests.sharing_oracle import level_of

DAY_S = 86_400.0
A, B = ("a", ""), ("b", "")
WHOLE = (100, 100, 0)


def lately(whole: Amounts = WHOLE, **parts: float) -> RecentUse:
    """By queue, the part of a cluster of 100 that it used."""
    means = {(name, ""): (int(100 * part * UNIT), 0, 0) for name, part in parts.items()}
    return RecentUse(1.0, whole, means)


def factor(recent: RecentUse, **weights: int) -> dict[str, float]:
    found = factors(recent, {(name, ""): Weight(weight) for name, weight in weights.items()})
    return {name: each / ONE_FACTOR for (name, _), each in found.items()}


def test_a_queue_that_used_its_share_keeps_its_weight() -> None:
    assert factor(lately(a=0.5, b=0.5), a=1, b=1) == {"a": 1, "b": 1}
    assert factor(lately(a=0.75, b=0.25), a=3, b=1) == {"a": 1, "b": 1}


def test_more_use_lowers_the_weight_and_less_use_raises_it() -> None:
    assert factor(lately(a=0.8, b=0.2), a=1, b=1) == {"a": 40 / 64, "b": 2.5}


def test_the_factor_stays_between_a_quarter_and_four() -> None:
    assert factor(lately(a=1.0), a=1, b=9) == {"a": LEAST_FACTOR / ONE_FACTOR, "b": 4}
    assert LEAST_FACTOR * 4 == ONE_FACTOR == MOST_FACTOR // 4


def test_while_nothing_is_known_weights_are_as_they_are() -> None:
    assert factor(RecentUse(), a=1, b=9) == {"a": 1, "b": 1}


def test_a_queue_without_a_share_has_no_factor() -> None:
    assert factor(lately(a=0.5, b=0.5), a=0, b=1)["a"] == 1


def test_owners_of_a_queue_are_due_equal_parts_of_it() -> None:
    recent = RecentUse(1.0, WHOLE, {("team", "alice"): (50 * UNIT, 0, 0), ("team", "bob"): (25 * UNIT, 0, 0)})
    weights = {("team", "alice"): Weight(1, 2), ("team", "bob"): Weight(1, 2), B: Weight(1)}
    assert [each / ONE_FACTOR for each in factors(recent, weights).values()] == [0.5, 1, 4]


def test_what_was_used_of_a_small_cluster_counts_little_in_a_large_one() -> None:
    assert factor(lately((10_000, 100, 0), a=1.0), a=1, b=1) == {"a": 4, "b": 4}


def test_of_a_cluster_that_has_shrunk_all_that_was_used_is_the_whole() -> None:
    assert factor(lately((1, 1, 0), a=0.75, b=0.25), a=1, b=1) == {"a": 42 / 64, "b": 2}


def test_the_most_used_resource_decides() -> None:
    recent = RecentUse(1.0, (100, 100, 4), {A: (10 * UNIT, 0, 4 * UNIT), B: (50 * UNIT, 0, 0)})
    assert factor(recent, a=1, b=1) == {"a": 0.5, "b": 1}


def integrated(course: list[tuple[float, int]], half_life_s: float) -> float:
    """The weighted sum of the use from each time until the next, added up piece by piece."""
    end = course[-1][0]
    rate = math.log(2) / half_life_s
    pieces = (
        used * (math.exp(-rate * (end - to)) - math.exp(-rate * (end - since)))
        for (since, _), (to, used) in pairwise(course)
    )
    return sum(pieces)


@pytest.mark.parametrize("seed", range(200))
def test_the_mean_is_that_of_a_plain_integration_whatever_the_steps(seed: int) -> None:
    random = Random(seed)
    half_life_s, now, recent = random.choice((3_600.0, DAY_S)), 1_000.0, RecentUse()
    course: list[tuple[float, int]] = []
    for number in range(random.randint(2, 60)):
        used = random.choice((0, 0, 7, random.randint(0, 10_000)))
        now += 0 if not number else random.choice((300.0, 1.5, random.uniform(0, 4 * half_life_s)))
        recent = recent.moved_on({A: (used, 0, 0)}, WHOLE, now, half_life_s)
        course.append((now, used if number else 0))
    assert recent.means.get(A, (0,))[0] / UNIT == pytest.approx(integrated(course, half_life_s), rel=1e-6, abs=1e-2)


def test_after_one_half_life_it_counts_half() -> None:
    full = RecentUse(0.5, WHOLE, {A: (UNIT, UNIT, 0)})
    assert full.moved_on({}, WHOLE, 0.5 + DAY_S, DAY_S).means == {A: (UNIT // 2, UNIT // 2, 0)}


def test_what_is_used_no_more_is_forgotten_in_the_end() -> None:
    recent = RecentUse(1.0, WHOLE, {A: (100 * UNIT, 0, 8 * UNIT)})
    assert recent.moved_on({}, WHOLE, 60 * DAY_S, DAY_S).means == {}


def test_a_clock_that_went_back_changes_nothing_but_the_time() -> None:
    recent = RecentUse(1_000.0, WHOLE, {A: (UNIT, 0, 0)})
    assert recent.is_due(900.0)
    assert recent.moved_on({A: (50, 0, 0)}, WHOLE, 900.0, DAY_S) == RecentUse(900.0, WHOLE, {A: (UNIT, 0, 0)})


def test_the_largest_users_are_remembered() -> None:
    used: dict[Sharer, Amounts] = {("q", f"o{number}"): (1 + number, 0, 0) for number in range(MOST_SHARERS + 5)}
    found = RecentUse(1.0).moved_on(used, WHOLE, 600.0, DAY_S)
    assert len(found.means) == MOST_SHARERS
    assert ("q", "o4") not in found.means
    assert RecentUse.from_bytes(found.to_bytes()) == found


@pytest.mark.parametrize("seed", range(300))
def test_a_level_with_a_factor_is_the_exact_fraction(seed: int) -> None:
    random = Random(seed)
    most = random.choice((10, 1_000, (1 << 33) - 1))
    weight, parts, times = random.randint(1, 1_000), random.randint(1, 1_000), random.randint(16, 256)
    capacity, takes = random.randint(1, most), random.randint(0, most)
    columns = Columns.of([0], [1], [[takes]])
    sharers = Sharers.of([weight], [[0]], [parts], [times])
    from argosy.sharing.levels import LevelSteps

    step = int(LevelSteps.of(columns, sharers, Limits.of([capacity], [capacity])).steps[0, 0])
    assert step == min(level_of(takes * ONE_FACTOR, capacity, weight * times, parts), 1_000 << 40)


def test_the_fill_gives_by_weight_times_factor() -> None:
    columns = Columns.of([0, 1], [1_000, 1_000], [[1], [1]])
    sharers = Sharers.of([1, 1], np.zeros((2, 1)), 1, [32, 256])
    assert fill(columns, sharers, Limits.of([90], [90])).counts.tolist() == [10, 80]
