"""Instances that are emptied for a run of large tasks: short tasks use them, and end in time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.harness.simulation.faults import kinds_of
from tests.harness.simulation.plan import TEST_POLICY, TrialPlan
from tests.harness.simulation.trial import Trial
from tests.harness.simulation.world.workload import SimulatedJob

ALONE = kinds_of("preemption")
# Queue, tasks, vCPUs of each, seconds that they last, when it comes, and after how long they are stopped.
RUNS: tuple[tuple[str, int, int, tuple[float, float], float, int | None], ...] = (
    ("research", 28, 1, (900.0, 1_100.0), 0.0, None),
    ("prod", 4, 4, (300.0, 400.0), 1_300.0, None),
    ("default", 150, 1, (5.0, 40.0), 1_200.0, 60),
    ("night", 20, 1, (200.0, 700.0), 1_400.0, None),
    ("prod", 3, 4, (300.0, 400.0), 4_000.0, None),
)


def job(number: int) -> SimulatedJob:
    queue, tasks, vcpus, (shortest_s, longest_s), at, stopped_after_s = RUNS[number]
    spec: dict[str, Any] = {
        "version": 1,
        "name": "backfill",
        "container": {"image": "argosy/digits", "command": ["work"]},
        "resources": {"vcpus": vcpus, "memory": 1024},
        "array": {"size": tasks},
        "queue": queue,
    }
    if stopped_after_s is not None:
        spec["timeout"] = {"attemptDurationSeconds": stopped_after_s}
    return SimulatedJob(
        f"backfill-270115-0800{number:02d}-0000", spec, tasks, at, shortest_s=shortest_s, longest_s=longest_s
    )


def trial(seed: int) -> Trial:
    found = Trial(
        TrialPlan(
            seed,
            ALONE,
            instances=2,
            jobs=tuple(map(job, range(len(RUNS)))),
            every_kind=True,
            faulty_s=900.0,
            types=("c5.xlarge",),
            policy=replace(TEST_POLICY, growth_per_tick=2),
        )
    )
    found.queues.capped, found.queues.drains = 0.0, 1.0
    return found


def trials_find_nothing(seeds: range) -> int:
    """For planted bugs: raises AssertionError at the first violation. How many tasks used room that was kept."""
    judged = 0
    for seed in seeds:
        each = trial(seed)
        assert each.run().violations == []
        judged += each.auditor.backfill.judged
    return judged


@pytest.mark.slow
def test_short_tasks_use_what_is_being_emptied_and_are_gone_in_time() -> None:
    assert trials_find_nothing(range(9, 10)) > 10


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(4))
def test_so_they_are_where_calls_and_instances_fail(seed: int) -> None:
    kinds = "preemption,crash,reply-lost,effect-lost,interruption,host-loss,clean-exit,os-shutdown,events-lost"
    found = Trial(replace(trial(seed).plan, kinds=kinds_of(kinds)))
    found.queues.drains = 1.0
    assert found.run().violations == []
