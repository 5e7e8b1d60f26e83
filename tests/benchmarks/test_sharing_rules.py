"""The same users' runs under the rules of other systems. `make bench ARGS="-k rules"` prints the table.

Each rule is first compared with its project's publications.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random

import numpy as np
import pytest

from tests.benchmarks.sharing_rules import RULES, BatchFairShare, Kueue, Slurm, deserved_by_weight, fair_share_factor
from tests.benchmarks.sharing_world import Job, Mix, Rule, World

HOUR_S = 3_600
VCPU = 1_024
MANY = 10**6  # tasks: more than can run in any of these mixes


def backlog(queue: int, vcpus: float, gpus: int, task_s: int, at_s: int = 0) -> Job:
    return Job(queue, at_s, MANY, (int(VCPU * vcpus), gpus), task_s)


def cluster(vcpus: int, gpus: int, jobs: list[Job], weights: tuple[int, ...], hours: float, launches: int = 200) -> Mix:
    return Mix((vcpus * VCPU, gpus), launches, tuple(jobs), weights, int(hours * HOUR_S))


# --- what each project publishes --------------------------------------------------------------------------------------


def test_batch_gives_a_weight_factor_of_an_eighth_eight_times_the_compute_resources() -> None:
    jobs = [backlog(0, 1, 0, 60), backlog(1, 1, 0, 60)]
    world = World(cluster(900, 0, jobs, (1, 8), 2)).run(BatchFairShare())
    light, heavy = world.mean_held(HOUR_S)[:, 0]
    assert heavy / light == pytest.approx(8, rel=0.05)


def blocked_by_a_large_job(strict: bool) -> World:
    """A queue with an older job that needs more than is free and a newer one that would fit."""
    jobs = [Job(0, 0, 1, (6 * VCPU, 0), 600), Job(0, 10, 1, (8 * VCPU, 0), 600), Job(0, 20, 1, (VCPU, 0), 600)]
    return World(cluster(10, 0, jobs, (1,), 0.1)).run(Kueue(strict))


def test_kueues_strict_queue_waits_for_its_oldest_job_and_the_other_goes_past_it() -> None:
    assert np.isnan(blocked_by_a_large_job(strict=True).first_start_s).tolist() == [False, True, True]
    assert np.isnan(blocked_by_a_large_job(strict=False).first_start_s).tolist() == [False, True, False]


def test_kueues_fair_sharing_lends_what_is_left_by_weight() -> None:
    """One of three queues with equal weights is idle: its quota is lent in equal parts."""
    jobs = [backlog(0, 1, 0, 60), backlog(1, 1, 0, 60)]
    world = World(cluster(90, 0, jobs, (1, 1, 1), 0.5)).run(Kueue(strict=True))
    assert world.mean_held(600)[:, 0].tolist() == pytest.approx([0.5, 0.5, 0.0], abs=0.02)


def test_volcanos_queues_deserve_their_weight_over_all_weights_of_the_cluster() -> None:
    world = World(cluster(80, 8, [backlog(0, 1, 0, 60), backlog(1, 1, 0, 60)], (1, 3), 0.1))
    world.waiting = [0, 1]
    assert (deserved_by_weight(world)[:, 0] / VCPU).tolist() == pytest.approx([20, 60])


def test_slurms_fair_share_factor_is_a_half_where_usage_equals_shares() -> None:
    assert fair_share_factor(0.25, 0.25) == 0.5
    assert fair_share_factor(0.0, 0.25) == 1.0
    assert fair_share_factor(0.5, 0.25) == 0.25


def test_slurms_backfill_starts_what_does_not_delay_the_job_before_it() -> None:
    jobs = [
        Job(0, 0, 1, (6 * VCPU, 0), 600),
        Job(0, 10, 1, (8 * VCPU, 0), 600),  # can start at 600 s
        Job(0, 20, 1, (2 * VCPU, 0), 900),  # would delay it
        Job(0, 30, 1, (2 * VCPU, 0), 300),  # would not
    ]
    world = World(cluster(10, 0, jobs, (1,), 0.5)).run(Slurm())
    assert world.first_start_s.tolist() == [0, 600, 600, 30]


# --- the comparison ---------------------------------------------------------------------------------------------------


def behind_a_million(rule: Rule) -> tuple[float, float]:
    """One queue has a million tasks of a minute on 1,600 places; 200 runs of one to three tasks of four other queues
    come within two hours: the median and the 99th percentile of their waits, seconds."""
    random = Random(16)
    small = [
        Job(random.randrange(1, 5), random.randrange(600, 2 * HOUR_S), random.randint(1, 3), (VCPU, 0), 60)
        for _ in range(200)
    ]
    world = World(cluster(1_600, 0, [backlog(0, 1, 0, 60), *small], (1,) * 5, 3)).run(rule)
    waits = world.waits_s(range(1, 201))
    return float(np.median(waits)), float(np.percentile(waits, 99))


def of_different_shapes(rule: Rule) -> float:
    """Three queues of the same weight that want cpu, GPUs, and both: how much of its own third of the cluster the worst
    off has, of the resource that it needs most."""
    jobs = [backlog(0, 4, 0, 300), backlog(1, 4, 1, 300), backlog(2, 1, 0, 300)]
    held = World(cluster(1_600, 100, jobs, (1, 1, 1), 2)).run(rule).mean_held(HOUR_S)
    return float(3 * held.max(axis=1).min())


def share_error(rule: Rule) -> float:
    """Weights 1, 1, 2, 2, 4; tasks of 30 to 600 s: the largest difference from the share due, as a part of it."""
    jobs = [backlog(queue, 1, 0, (30, 600, 60, 300, 120)[queue]) for queue in range(5)]
    held = World(cluster(1_000, 0, jobs, (1, 1, 2, 2, 4), 3)).run(rule).mean_held(HOUR_S)[:, 0]
    due = np.array([1, 1, 2, 2, 4]) / 10
    return float((np.abs(held - due) / due).max())


def large_among_small(rule: Rule) -> tuple[float, float]:
    """A task that needs a quarter of all cpu comes while small ones of one to three minutes fill the cluster, and GPU
    tasks that need none of it come every minute: how long the large one waits, and the longest wait of the others,
    seconds."""
    random = Random(4)
    small = [Job(0, 0, 80, (VCPU, 0), 2 * random.randint(30, 90)) for _ in range(400)]
    gpus = [Job(2, 1_800 + 60 * number, 1, (0, 1), 300) for number in range(60)]
    large = Job(1, 1_810, 1, (160 * VCPU, 0), 600)
    world = World(cluster(640, 32, [large, *gpus, *small], (1, 1, 1), 1.6)).run(rule)
    return float(world.waits_s([0])[0]), float(world.waits_s(range(1, 61)).max())


def short_beside_long(rule: Rule) -> float:
    """Ten launches a second for a thousand places; one queue has tasks of six seconds and one of half an hour: how many
    of the places are in use."""
    jobs = [backlog(0, 1, 0, 6), backlog(1, 1, 0, 1_800)]
    held = World(cluster(1_000, 0, jobs, (1, 1), 3, launches=20)).run(rule).mean_held(2 * HOUR_S)
    return float(held[:, 0].sum())


@cache
def figures(name: str) -> tuple[float, ...]:
    new: Callable[[], Rule] = RULES[name]
    return (
        *behind_a_million(new()),
        of_different_shapes(new()),
        share_error(new()),
        *large_among_small(new()),
        short_beside_long(new()),
    )


HEADINGS = (
    "rule",
    "small runs behind a million tasks: median wait",
    "99th percentile",
    "worst off of three shapes has of its third",
    "largest share error",
    "a large task waits",
    "meanwhile GPU tasks wait",
    "places in use where launches are what is scarce",
)
HEAD = f"| {' | '.join(HEADINGS)} |\n|{' -- |' * len(HEADINGS)}"


def row(name: str) -> str:
    median, most, worst, error, large, others, busy = figures(name)
    cells = (
        f"{median:,.0f} s",
        f"{most:,.0f} s",
        f"{worst:.2f}",
        f"{error:.1%}",
        f"{large:,.0f} s",
        f"{others:,.0f} s",
    )
    return f"| {name} | {' | '.join(cells)} | {busy:.2f} |"


@pytest.mark.benchmark
def test_argosys_rule_compared_with_the_rules_of_other_systems(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print("\n" + "\n".join([HEAD, *map(row, RULES)]))
    _, most, worst, error, large, others, busy = figures("Argosy")
    assert most <= 60
    assert worst >= 0.95
    assert error <= 0.05
    assert large <= 300
    assert others <= 4
    assert busy >= 0.97
