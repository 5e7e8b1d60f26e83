"""Trials of the real controller in a simulated AWS: a quick selection of seeds, every call of a small run, and
replays."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from tests.fakes.trials import SMALL, SMALL_JOB, WARM
from tests.harness.simulation.campaign import replay_command, run_trial, shrink
from tests.harness.simulation.faults import ALL, KINDS, kinds_of
from tests.harness.simulation.injection.boundary import SCRIPTED
from tests.harness.simulation.plan import TrialPlan
from tests.harness.simulation.trial import Trial
from tests.harness.simulation.verdict import Verdict
from tests.harness.simulation.world.rate_limits import Buckets

QUICK_SEEDS = 8


def told(verdict: Verdict) -> str:
    return "\n".join([f"seed {verdict.seed}: {verdict.violations[:3]}", *verdict.story[-30:]])


@pytest.mark.parametrize("seed", range(QUICK_SEEDS))
def test_whatever_goes_wrong_no_invariant_is_violated_and_everything_ends(seed: int) -> None:
    verdict = run_trial(TrialPlan(seed))
    assert verdict.ok, told(verdict)


def test_a_run_that_comes_to_warm_instances_pays_from_then() -> None:
    verdict = run_trial(WARM)
    assert verdict.ok, told(verdict)


def test_a_teardown_ends_although_strangers_instances_carry_our_tag() -> None:
    verdict = run_trial(TrialPlan(9_000_048, frozenset({"destroy"})))
    assert verdict.seen["destroy"]
    assert verdict.ok, told(verdict)


def test_a_controller_paused_during_the_teardown_raises_no_lasting_target() -> None:
    verdict = run_trial(TrialPlan(5_000_041, frozenset({"destroy", "freeze", "pages", "server-error", "shortage"})))
    assert {"destroy", "freeze"} <= set(verdict.seen)
    assert verdict.ok, told(verdict)


def test_a_result_counts_even_if_its_writer_was_cut_off_and_died_before_ecs_learned_of_its_end() -> None:
    verdict = run_trial(TrialPlan(20_000, frozenset({"no-register", "partition", "store-outage"})))
    assert verdict.ok, told(verdict)


def test_reservations_of_a_trial_are_pools_of_its_controller() -> None:
    trial = Trial(TrialPlan(8, frozenset({"reservation"}), tasks=2, instances=2))
    verdict = trial.run()
    assert verdict.ok, told(verdict)
    pools = {pool.get("reservation", "") for pool in trial.auditor.stored.pools.values()}
    assert pools == {"", *trial.world.ec2.ledger.reservations}


def test_tasks_of_a_service_that_have_ended_may_be_stopped_before_their_ends_are_charged() -> None:
    kinds = frozenset({"daemon", "page-failure", "preemption", "service", "two-versions"})
    verdict = run_trial(TrialPlan(9_400_165, kinds, instances=6))
    assert verdict.seen["service"]
    assert verdict.ok, told(verdict)


def test_a_controller_that_died_before_its_first_heartbeat_is_brought_back_although_its_tick_is_disabled() -> None:
    kinds = [
        "crash",
        "events-lost",
        "fleet-replaced",
        "preemption",
        "server-error",
        "shortage",
        "store-outage",
        "tick-disabled",
    ]
    verdict = run_trial(TrialPlan(700_222, frozenset(kinds), instances=6))
    assert verdict.seen["tick-disabled"]
    assert verdict.ok, told(verdict)


@pytest.mark.deep
@pytest.mark.parametrize("block", range(100))
def test_ten_thousand_seeds_violate_nothing(block: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(100_000 + 100 * block, 100_000 + 100 * block + 100):
        verdict = run_trial(TrialPlan(seed))
        assert verdict.ok, told(verdict)
        seen += verdict.seen
    assert {kind for kind in ALL if not seen[kind]} <= {"destroy"}


@pytest.mark.deep
@pytest.mark.parametrize("kind", sorted(ALL))
def test_each_fault_alone_happens_and_violates_nothing(kind: str) -> None:
    seen: Counter[str] = Counter()
    for seed in range(20):
        verdict = run_trial(TrialPlan(seed, frozenset({kind})))
        assert verdict.ok, told(verdict)
        seen += verdict.seen
    assert seen[kind]


def test_every_shape_that_is_sent_and_answered_is_one_that_aws_knows() -> None:
    verdict = run_trial(TrialPlan(2, strict=True, faulty_s=300.0))
    assert verdict.ok, told(verdict)


def test_a_seed_replays_bit_for_bit() -> None:
    plan = TrialPlan(1, every_kind=True)
    assert run_trial(plan) == run_trial(plan)


def test_a_violation_is_replayed_by_its_own_command_line_with_what_it_was_given() -> None:
    plan = TrialPlan(7, frozenset({"crash"}), tasks=5, controllers=3, words=("--spec", "run.yaml"))
    assert replay_command(plan) == (
        "python -m tests.harness.simulate --seed 7 --trials 1 --faults crash --trace --tasks 5 --controllers 3 "
        "--instances 6 --spec run.yaml"
    )


SHORT_OF_RESULTS = frozenset({"retry", "bad-program", "cancel", "crash", "reply-lost"})
WITH_RETRIES = (8, 19)  # seeds in which runs end without every result, and users want more of them


def test_runs_that_users_try_again_in_the_middle_of_faults_end_as_exactly_as_others() -> None:
    verdicts = [run_trial(TrialPlan(seed, SHORT_OF_RESULTS, every_kind=True)) for seed in WITH_RETRIES]
    assert all(verdict.ok for verdict in verdicts), [told(verdict) for verdict in verdicts if not verdict.ok]
    assert sum(verdict.retries for verdict in verdicts) >= len(WITH_RETRIES)


QUICK_BLOCKS = {  # some kinds together, and seeds in which all of them happen
    "versions": (frozenset({"two-versions", "overlap", "crash"}), (318,)),
    "clocks": (frozenset({"clock-jump", "clock-skew", "time-out"}), (333,)),
    "absence": (frozenset({"absence", "reply-lost", "throttle"}), (342,)),
    "cells": (frozenset({"further-cell", "cell-destroyed", "cell-left-out"}), (413, 417)),
    "owners": (frozenset({"new-image", "quota", "pages"}), (367,)),
    "users": (frozenset({"clean-exit", "instant", "no-start-time", "time-limit", "deadline"}), (359,)),
    "programs": (frozenset({"own-program", "no-runner", "bad-program"}), (381,)),
    "storms": (frozenset({"storm", "pull-storm", "failure-lies"}), (334,)),
}


@pytest.mark.parametrize("name", QUICK_BLOCKS)
def test_some_faults_together_happen_and_violate_nothing(name: str) -> None:
    kinds, seeds = QUICK_BLOCKS[name]
    seen: Counter[str] = Counter()
    for seed in seeds:
        verdict = run_trial(TrialPlan(seed, kinds, every_kind=True))
        assert verdict.ok, told(verdict)
        seen += verdict.seen
    assert kinds <= set(seen)


def test_without_faults_a_small_run_costs_no_more_than_it_must() -> None:
    verdict = run_trial(SMALL)
    assert verdict.ok, told(verdict)
    assert (verdict.launches, verdict.statuses) == (2, Counter({"SUCCEEDED": 1}))
    assert verdict.settled_s < 300


@cache
def boundaries() -> int:
    return sum(run_trial(SMALL).calls.values())


@pytest.mark.parametrize("fault", SCRIPTED)
def test_a_fault_at_some_calls_of_a_small_run_does_no_harm(fault: str) -> None:
    for number in range(1, boundaries(), 53):
        verdict = run_trial(replace(SMALL, script={number: fault}))
        assert verdict.ok, f"{fault} at call {number}: {told(verdict)}"
        assert verdict.statuses == Counter({"SUCCEEDED": 1})


@pytest.mark.deep
@pytest.mark.parametrize("fault", SCRIPTED)
def test_a_fault_at_every_call_of_a_small_run_does_no_harm(fault: str) -> None:
    for number in range(1, boundaries() + 1):
        verdict = run_trial(replace(SMALL, script={number: fault}))
        assert verdict.ok, f"{fault} at call {number}: {told(verdict)}"
        assert verdict.statuses == Counter({"SUCCEEDED": 1})


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 30))])
def test_eight_controllers_at_once_violate_nothing(seed: int) -> None:
    assert verdict_of_eight(seed).ok


def test_eight_controllers_at_once_do_get_in_each_others_way() -> None:
    assert sum(verdict_of_eight(seed).conflicts for seed in (0, 2, 3)) > 3


@cache
def verdict_of_eight(seed: int) -> Verdict:
    verdict = run_trial(TrialPlan(seed, controllers=8))
    assert verdict.ok, told(verdict)
    return verdict


def test_a_forgotten_token_is_found_reported_and_shrunk_to_what_it_takes() -> None:
    """The one promise that the protocol rests on: without it an attempt does start twice, and the auditor sees it."""
    kinds = frozenset({"token-misbehaviour", "failure-lies", "rebalance"})
    plan = next(
        plan
        for plan in (TrialPlan(seed, kinds, every_kind=True) for seed in range(200))
        if any(found.invariant == "I1" for found in run_trial(plan).violations)
    )
    small = shrink(plan, "I1")
    assert "token-misbehaviour" in small.kinds < kinds
    verdict = run_trial(small)
    assert any("run_task" in line for line in verdict.story)
    assert f"--seed {plan.seed} " in replay_command(small)


def test_more_calls_than_aws_allows_are_refused_until_time_has_passed() -> None:
    moment = [0.0]
    buckets = Buckets(lambda: moment[0])
    assert [buckets.take("run_task") for _ in range(101)] == [True] * 100 + [False]
    assert buckets.take("describe_tasks")  # from another bucket
    assert buckets.take("put_object")  # without one
    moment[0] = 0.05
    assert [buckets.take("stop_task") for _ in range(3)] == [True, True, False]
    assert buckets.refused == 2


def test_faults_are_named_listed_and_refused() -> None:
    assert kinds_of("all") == frozenset(KINDS) - {"token-misbehaviour"}
    assert kinds_of("none") == frozenset()
    assert kinds_of("crash, storm") == {"crash", "storm"}
    with pytest.raises(ValueError, match="unknown fault 'flood'"):
        kinds_of("flood")


def test_a_trial_that_cannot_end_says_what_is_still_open() -> None:
    endless = replace(SMALL_JOB, shortest_s=1e9, longest_s=1e9)
    verdict = Trial(replace(SMALL, jobs=(endless,), limit_s=300.0)).run()
    assert [found.invariant for found in verdict.violations] == ["liveness"]
    assert "RUNNING" in verdict.violations[0].sentence
    assert verdict.story


def test_what_users_retry_after_the_faults_may_take_as_long_again() -> None:
    spec = {**SMALL_JOB.spec, "timeout": {"attemptDurationSeconds": 60}}
    too_long = replace(SMALL_JOB, spec=spec, shortest_s=200.0, longest_s=200.0)
    plan = replace(SMALL, seed=0, kinds=frozenset({"retry"}), jobs=(too_long,), faulty_s=60.0, limit_s=900.0)
    verdict = Trial(plan).run()
    assert verdict.ok, told(verdict)
    assert verdict.retries == 2
    assert verdict.settled_s > plan.limit_s


def test_a_task_whose_runner_says_that_trying_again_cannot_help_may_fail_with_attempts_left() -> None:
    verdict = run_trial(TrialPlan(866, frozenset({"own-program"})))
    assert verdict.ok, verdict.violations
