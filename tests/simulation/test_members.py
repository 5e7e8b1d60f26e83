"""Users come through entrances of queues, with and without proof of identity, and nothing reaches another queue
(S11)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.model.runs import RunStatus
from tests.harness.simulation.faults import kinds_of
from tests.harness.simulation.plan import TEST_POLICY, TrialPlan
from tests.harness.simulation.trial import Trial
from tests.harness.simulation.world.workload import SimulatedJob

RUNS, TASKS = 8, 6
FAULTS = "crash,reply-lost,effect-lost,two-versions,overlap"
OWNERS = ("alice", "bob", "carol", "carol")


def job(number: int, queues: bool) -> SimulatedJob:
    spec = {
        "version": 1,
        "name": "shared",
        "container": {"image": "argosy/digits", "command": ["work"]},
        "resources": {"vcpus": 1, "memory": 1024},
        "array": {"size": TASKS},
        "owner": OWNERS[number % len(OWNERS)],
        **({"queue": "research"} if number % 2 and queues else {}),
    }
    return SimulatedJob(f"shared-270115-0800{number:02d}-0000", spec, TASKS, 60.0)


def trial(seed: int, kinds: str = "", members: float = 1.0) -> Trial:
    jobs = tuple(job(number, not kinds) for number in range(RUNS))
    plan = TrialPlan(seed, kinds_of(kinds or "queue"), instances=3, jobs=jobs, updates=1.0)
    plan = replace(plan, every_kind=not kinds, faulty_s=900.0, types=("c5.xlarge",), policy=TEST_POLICY)
    return Trial(replace(plan, members=members))


def trials_find_nothing(seeds: range) -> int:
    """For planted bugs: raises AssertionError at the first violation. How many runs came through an entrance."""
    came = 0
    for seed in seeds:
        each = trial(seed)
        assert each.run().violations == []
        came += sum(bool(how.queue) for how in each.deployment.members.came.values())
    return came


def dependents_stay(seeds: range) -> int:
    """For planted bugs: raises AssertionError at the first violation. Every other run waits for the one before it,
    which is of another queue. How many runs were cancelled."""
    cancelled = 0
    for seed in seeds:
        jobs = list(trial(seed).plan.jobs)
        for number in range(1, RUNS, 2):
            waits = {"run": jobs[number - 1].run_id, "type": "ALL", "on": "success"}
            jobs[number] = replace(jobs[number], spec=jobs[number].spec | {"dependsOn": [waits]})
        plan = replace(trial(seed).plan, kinds=kinds_of("queue,cancel"), jobs=tuple(jobs), updates=0.0, controllers=1)
        each = Trial(plan)
        assert each.run().violations == []
        cancelled += sum(record.status is RunStatus.CANCELLED for record in each.auditor.stored.records.values())
    return cancelled


# Seed 0 is left out here and in test_updates: a fifth of all seeds is replayed as well, which test_trials does enough.


@pytest.mark.slow
def test_runs_submitted_through_an_entrance_keep_their_queue_and_owner() -> None:
    assert trials_find_nothing(range(1, 2)) > 3


@pytest.mark.slow
def test_so_it_is_where_calls_and_controllers_fail() -> None:
    each = trial(1, FAULTS)
    assert each.run().violations == []
    assert {record.proven_owner for record in each.auditor.stored.records.values()} == {"", "alice", "bob"}


@pytest.mark.slow
def test_without_members_every_user_proves_the_owner_that_the_spec_names() -> None:
    each = trial(2, members=0.0)
    assert each.run().violations == []
    assert {record.proven_owner for record in each.auditor.stored.records.values()} == {*OWNERS}


@pytest.mark.slow
def test_a_cancellation_through_an_entrance_takes_no_run_of_another_queue_with_it() -> None:
    assert dependents_stay(range(10, 11)) > 0
