"""Several queues on three instances, one of which may take room: only preemptible tasks are stopped, and only within
the rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.harness.simulation.faults import kinds_of
from tests.harness.simulation.plan import TEST_POLICY, TrialPlan
from tests.harness.simulation.trial import Trial
from tests.harness.simulation.world.workload import SimulatedJob

ALONE = kinds_of("preemption")
# Queue, tasks, vCPU of each (one may need the room of several), when it comes, and whether it says it may be stopped.
RUNS = (
    ("research", 16, 2, 0.0, True),
    ("default", 16, 1, 30.0, True),
    ("prod", 6, 2, 200.0, None),
    ("night", 8, 1, 300.0, False),
    ("prod", 6, 1, 1_000.0, None),
    ("prod", 6, 4, 1_800.0, True),
)


def job(number: int) -> SimulatedJob:
    queue, tasks, vcpus, at, may_be_stopped = RUNS[number]
    spec = {
        "version": 1,
        "name": "alike",
        "container": {"image": "argosy/digits", "command": ["work"]},
        "resources": {"vcpus": vcpus, "memory": 1024},
        "array": {"size": tasks},
        "queue": queue,
        **({} if may_be_stopped is None else {"preemptible": may_be_stopped}),
    }
    return SimulatedJob(f"alike-270115-0800{number:02d}-0000", spec, tasks, at, shortest_s=300.0, longest_s=900.0)


def trial(seed: int) -> Trial:
    found = Trial(
        TrialPlan(
            seed,
            ALONE,
            instances=3,
            jobs=tuple(map(job, range(len(RUNS)))),
            every_kind=True,
            faulty_s=900.0,
            types=("c5.xlarge",),
            policy=replace(TEST_POLICY, growth_per_tick=2),
        )
    )
    found.queues.capped = 0.0  # what is capped takes no room
    found.queues.remembers = 0.0  # a queue with much recent use takes less
    return found


def trials_find_nothing(seeds: range) -> tuple[int, int]:
    """For planted bugs: raises AssertionError at the first violation. How many attempts were stopped for others, and
    how many of them were made while something showed which run is lower."""
    stopped = guarded = 0
    for seed in seeds:
        each = trial(seed)
        assert each.run().violations == []
        stopped, guarded = stopped + each.auditor.preemption.stopped, guarded + each.auditor.preemption.guarded
    return stopped, guarded


@pytest.mark.slow
def test_only_preemptible_tasks_are_stopped_and_no_queue_falls_below_the_one_that_took_room() -> None:
    stopped, guarded = trials_find_nothing(range(6, 7))
    assert stopped > 3
    assert guarded > 3


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(6))
def test_so_it_is_where_calls_and_instances_fail(seed: int) -> None:
    kinds = "preemption,crash,reply-lost,effect-lost,interruption,host-loss,clean-exit,os-shutdown,events-lost"
    assert Trial(replace(trial(seed).plan, kinds=kinds_of(kinds))).run().violations == []
