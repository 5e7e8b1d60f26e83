"""The deadline policy alone: deadlines, the progress of a job, the stance, and the cost."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.market.progress import RESERVE_SHARE, Progress, stance_of
from argosy.model.purchases import PurchaseStance
from argosy.model.run_terms import deadline_at
from tests.harness.bench.replay import Setting, greedy, hindsight, least_cost, on_demand_only, replay, windows

AT_START = Progress(total_s=3600, left_s=3600, window_s=7200, time_left_s=7200, change_s=180, look_s=15)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90m", 5400), ("2h", 7200), ("1h30m", 5400), ("1.5h", 5400), ("PT2H", 7200), ("P1DT1H", 90_000), ("45s", 45)],
)
def test_a_duration_counts_from_the_submission(text: str, seconds: float) -> None:
    assert deadline_at(text, 1000.0) == 1000.0 + seconds


def test_a_time_counts_whatever_its_offset() -> None:
    assert deadline_at("2026-11-21T18:00:00Z", 0.0) == deadline_at("2026-11-21T20:00:00+02:00", 5.0) == 1795284000.0


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "h", "2x", "tomorrow", "2026-11-21", "0s", "367d", "1500-01-01T00:00:00Z"]
)
def test_what_is_no_deadline_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is |must |has no offset"):
        deadline_at(text, 0.0)


def at_slack(slack_s: float, **changes: Any) -> Progress:
    job = replace(AT_START, **changes)
    return replace(job, time_left_s=job.left_s + slack_s)


def test_without_enough_slack_for_a_loss_it_is_on_demand_to_the_end_whatever_spot_says() -> None:
    margin_s = AT_START.margin_s
    assert stance_of(at_slack(margin_s - 1), PurchaseStance.SPOT, math.inf) is PurchaseStance.FIRM
    assert stance_of(at_slack(margin_s), PurchaseStance.SPOT, math.inf) is PurchaseStance.SPOT
    assert stance_of(at_slack(2 * margin_s - 1), PurchaseStance.FIRM, math.inf) is PurchaseStance.FIRM
    assert stance_of(at_slack(2 * margin_s), PurchaseStance.FIRM, math.inf) is PurchaseStance.SPOT


def test_work_that_a_loss_undoes_counts_as_slack_that_is_needed() -> None:
    assert stance_of(at_slack(900), PurchaseStance.SPOT, math.inf) is PurchaseStance.SPOT
    assert stance_of(at_slack(900, at_risk_s=600), PurchaseStance.SPOT, math.inf) is PurchaseStance.FIRM


def test_slack_above_the_reserve_is_spent_on_waiting_and_what_is_below_is_kept() -> None:
    reserve_s = AT_START.margin_s + RESERVE_SHARE * AT_START.left_s
    assert stance_of(at_slack(reserve_s), PurchaseStance.SPOT, 0.0) is PurchaseStance.SPOT
    assert stance_of(at_slack(reserve_s - 1), PurchaseStance.SPOT, 0.0) is PurchaseStance.ON_DEMAND
    assert stance_of(at_slack(reserve_s - 1), PurchaseStance.SPOT, 60.0) is PurchaseStance.SPOT, (
        "spot is there: it is used"
    )


def test_no_more_is_kept_back_than_uniform_progress_would() -> None:
    tight = Progress(total_s=36_000, left_s=36_000, window_s=37_000, time_left_s=37_000, change_s=180, look_s=15)
    assert tight.reserve_s == 1000
    assert replace(tight, left_s=18_000, time_left_s=18_600).reserve_s == 500


def test_on_demand_is_left_for_spot_that_has_settled_or_for_a_wide_margin() -> None:
    behind = at_slack(AT_START.reserve_s - 1)
    assert stance_of(behind, PurchaseStance.ON_DEMAND, 360.0) is PurchaseStance.ON_DEMAND
    assert stance_of(behind, PurchaseStance.ON_DEMAND, 361.0) is PurchaseStance.SPOT
    assert (
        stance_of(at_slack(AT_START.reserve_s + 6 * 180 - 1), PurchaseStance.ON_DEMAND, 0.0) is PurchaseStance.ON_DEMAND
    )
    assert stance_of(at_slack(AT_START.reserve_s + 6 * 180), PurchaseStance.ON_DEMAND, 0.0) is PurchaseStance.SPOT


def by_hand(available: list[bool], work: int, change: int, spot: float, on_demand: float) -> float:
    """The cheapest of all ways to spend the steps: idle, on spot where there is some, on demand."""
    best = math.inf
    for plan in itertools.product("-so", repeat=len(available)):
        if any(where == "s" and not there for where, there in zip(plan, available, strict=True)):
            continue
        left, changing, cost, before = work, 0, 0.0, "-"
        for where in plan:
            if left == 0 and where != "-":
                cost = math.inf
            changing = change if where not in (before, "-") else changing
            if where != "-":
                cost += spot if where == "s" else on_demand
                changing, left = (changing - 1, left) if changing else (changing, left - 1)
            before = where
        best = min(best, cost) if left == 0 else best
    return best


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_in_hindsight_is_the_cheapest_of_all_plans(seed: int) -> None:
    chance = np.random.default_rng(seed)
    available = (chance.random(9) < 0.6).tolist()
    work, change = int(chance.integers(1, 6)), int(chance.integers(0, 3))
    found = least_cost(np.array(available), work, change, 0.3, 1.0)
    assert found == pytest.approx(by_hand(available, work, change, 0.3, 1.0))


def test_an_impossible_outcome_has_no_cost() -> None:
    setting = Setting(work_s=3600, window_s=3600, change_s=180, step_s=180)
    never = np.zeros(setting.steps, dtype=np.bool_)
    assert not hindsight(never, setting).met
    assert not replay(never, setting, on_demand_only).met


def bursts(seed: int, steps: int, up: float, down: float) -> NDArray[np.bool_]:
    """Spot that comes and goes: geometric stretches of these mean lengths, in steps."""
    chance, found, there = np.random.default_rng(seed), [], bool(seed % 2)
    while len(found) < steps:
        found += [there] * int(chance.geometric(1 / (up if there else down)))
        there = not there
    return np.array(found[:steps])


@pytest.mark.parametrize("change_s", [180.0, 360.0])
@pytest.mark.parametrize("hours", [52, 70])
def test_no_deadline_is_missed_and_greedys_distance_from_the_best_is_halved(change_s: float, hours: int) -> None:
    """On generated traces; `argosy bench deadline` says the same of recorded ones."""
    setting = Setting(
        work_s=48 * 3600, window_s=hours * 3600, change_s=change_s, step_s=360.0 if change_s > 300 else 180.0
    )
    ours = theirs = best = 0.0
    for seed, (up, down) in enumerate([(60, 20), (20, 20), (120, 60), (30, 90), (200, 10)]):
        trace = bursts(seed, setting.steps, up, down)
        outcome, other, bound = replay(trace, setting), replay(trace, setting, greedy), hindsight(trace, setting)
        assert outcome.met
        assert other.met
        assert bound.cost <= min(outcome.cost, other.cost) + 1e-9
        ours, theirs, best = ours + outcome.cost, theirs + other.cost, best + bound.cost
    assert ours - best <= (theirs - best) / 2


@pytest.mark.parametrize("there", [True, False])
def test_spot_that_never_goes_costs_spot_and_spot_that_never_comes_costs_little_more_than_on_demand(
    there: bool,
) -> None:
    setting = Setting(work_s=48 * 3600, window_s=60 * 3600, change_s=180, step_s=180)
    outcome = replay(np.full(setting.steps, there), setting)
    assert outcome.met
    assert outcome.cost == pytest.approx(48.05 * (0.3 if there else 1.0), rel=0.02)


def test_windows_are_cut_from_all_over_a_trace_and_ask_for_one_half_and_all_of_what_there_is() -> None:
    setting = Setting(work_s=3600, window_s=7200, change_s=300, step_s=300)
    data = np.array([0, 1, 2, 3, 4, 4, 0, 0] * 12)
    cut = list(windows(data, 600.0, setting, 3))
    assert len(cut) == 9
    assert {len(window) for window in cut} == {24}
    assert [int(window.sum()) for window in cut[::3]] == [int((np.repeat(data, 2)[:24] >= k).sum()) for k in (1, 2, 4)]
    assert not list(windows(data[:5], 600.0, setting, 3)), "too short a trace"
