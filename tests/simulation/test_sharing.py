"""Several queues of equal tasks on two instances: no queue overtakes one that uses less for its weight."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.harness.simulation.faults import kinds_of
from tests.harness.simulation.plan import TEST_POLICY, TrialPlan
from tests.harness.simulation.trial import Trial
from tests.harness.simulation.users.shared_queues import NAMES, OWNERS
from tests.harness.simulation.world.workload import SimulatedJob

ALONE = kinds_of("queue")
RUNS, TASKS = 5, 24
FEW = 8  # tasks of a run where no bug is planted


def job(number: int, tasks: int = TASKS) -> SimulatedJob:
    spec = {
        "version": 1,
        "name": "alike",
        "container": {"image": "argosy/digits", "command": ["work"]},
        "resources": {"vcpus": 1, "memory": 1024},
        "array": {"size": tasks},
        "queue": NAMES[number % len(NAMES)],
        "owner": OWNERS[number % len(OWNERS)],
    }
    return SimulatedJob(f"alike-270115-0800{number:02d}-0000", spec, tasks, 30.0 * number)


def trial(seed: int, tasks: int = TASKS) -> Trial:
    return Trial(
        TrialPlan(
            seed,
            ALONE,
            instances=2,
            jobs=tuple(job(number, tasks) for number in range(RUNS)),
            every_kind=True,
            faulty_s=180.0,
            types=("c5.xlarge",),
            policy=replace(TEST_POLICY, growth_per_tick=2),
        )
    )


def trials_find_nothing(seeds: range, tasks: int = TASKS) -> int:
    """For planted bugs: raises AssertionError at the first violation. How often another sharer waited at a launch."""
    judged = 0
    for seed in seeds:
        each = trial(seed, tasks)
        each.queues.capped = 0.0  # with caps and guarantees other rules decide what starts
        assert each.run().violations == []
        judged += each.auditor.sharing.judged
    return judged


def within_caps(seeds: range, tasks: int = TASKS) -> int:
    """The same where every queue has caps. How many intents and orders of theirs were judged."""
    judged = 0
    for seed in seeds:
        each = trial(seed, tasks)
        each.queues.capped = 1.0
        assert each.run().violations == []
        judged += each.auditor.caps.judged
    return judged


def with_guarantees(seeds: range, tasks: int = TASKS) -> int:
    """The same where half of the queues are guaranteed some vCPUs. How often a run of such a queue waited."""
    judged = 0
    for seed in seeds:
        each = trial(seed, tasks)
        each.queues.capped, each.queues.guaranteed = 0.0, 0.5
        assert each.run().violations == []
        judged += each.auditor.sharing.guaranteed
    return judged


def saturated(seed: int, tasks: int = 70) -> Trial:
    """Few runs of many tasks, so that all wait a long time together."""
    plan = trial(seed).plan
    long = [replace(job(number, tasks), submitted_after_s=5.0, longest_s=90.0) for number in range(4)]
    found = Trial(replace(plan, jobs=tuple(long)))
    found.queues.capped = found.queues.remembers = 0.0
    return found


def all_have_what_is_due(seeds: range, tasks: int = 70) -> tuple[int, int]:
    """The same in saturation: how often a sharer waited with all places taken, and how often two that had waited for
    long were compared."""
    waited = compared = 0
    for seed in seeds:
        each = saturated(seed, tasks)
        assert each.run().violations == []
        waited, compared = waited + each.auditor.shares.waited, compared + each.auditor.shares.compared
    return waited, compared


def nothing_breaks(invariant: str, seeds: range) -> None:
    """For planted bugs that break others as well: raises AssertionError at the first violation of this one."""
    for seed in seeds:
        assert not [each for each in saturated(seed).run().violations if each.invariant == invariant]


def with_memory(seeds: range, tasks: int = TASKS) -> int:
    """The same with recent use. How often that decided."""
    judged = 0
    for seed in seeds:
        each = trial(seed, tasks)
        each.queues.capped, each.queues.remembers = 0.0, 1.0
        assert each.run().violations == []
        judged += each.auditor.sharing.remembered
    return judged


def within_a_queue(seeds: range, tasks: int = TASKS) -> int:
    """Runs of one queue, of two priorities, the highest of which comes last. How often another one waited."""
    judged = 0
    for seed in seeds:
        plan = trial(seed, tasks).plan
        jobs = [
            replace(each, spec=each.spec | {"queue": "prod", "priority": n // 3}) for n, each in enumerate(plan.jobs)
        ]
        each = Trial(replace(plan, jobs=tuple(jobs)))
        each.queues.capped = 0.0
        assert each.run().violations == []
        judged += each.auditor.sharing.within
    return judged


# Seed 0 is left out: its trial is recorded and replayed as well, which test_trials does with other seeds.


def test_the_auditor_knows_the_first_document_before_any_commit() -> None:
    each = Trial(replace(trial(3).plan, faulty_s=0.001))  # a trial with one document
    each.run_faulty_phase()
    assert each.auditor.stored.sharing.revision == 1
    assert each.auditor.stored.sharing.queues().keys() == {*NAMES}


@pytest.mark.slow
def test_within_a_queue_no_run_overtakes_a_higher_priority_or_an_older_run() -> None:
    assert within_a_queue(range(3, 4), FEW) > 20


@pytest.mark.slow
def test_in_saturation_every_waiting_sharer_has_its_share() -> None:
    waited, compared = all_have_what_is_due(range(2, 3), tasks=20)
    assert waited > 100
    assert compared > 100


@pytest.mark.slow
def test_no_sharer_overtakes_where_recent_use_counts() -> None:
    assert with_memory(range(1, 2), FEW) > 5


@pytest.mark.slow
def test_what_is_guaranteed_starts_first() -> None:
    assert with_guarantees(range(2, 3), tasks=12) > 5


@pytest.mark.slow
def test_no_queue_gets_more_than_its_cap() -> None:
    assert within_caps(range(3, 4), FEW) > 10


@pytest.mark.slow
def test_no_sharer_overtakes_one_that_uses_less_for_its_weight() -> None:
    assert trials_find_nothing(range(3, 4), FEW) > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_so_it_is_where_calls_and_instances_fail(seed: int) -> None:
    jobs = tuple(job(number, FEW) for number in range(RUNS))
    plan = replace(
        trial(seed).plan, jobs=jobs, kinds=kinds_of("queue,crash,reply-lost,effect-lost,interruption,host-loss")
    )
    assert Trial(plan).run().violations == []
