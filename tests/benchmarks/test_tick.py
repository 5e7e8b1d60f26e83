"""What does a tick cost at full size: 5,000 instances, 80,000 live attempts, 1,000,000 tasks, of one run or of 1,000?

Floor (DESIGN section 6): under 2 s and 512 MiB. And what does it cost to place one task, on the rows that ticks keep,
after the last events' changes to the instance? CPU time, so that other load on the machine does not count.
`make bench` prints the figures.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import replace

import pytest

from argosy.catalogue.lookup import load_catalogue
from argosy.engine.tick import Engine
from argosy.model.actions import Launch
from argosy.model.attempts import AttemptKey
from argosy.placement.demand import Batch
from argosy.scheduler.decide import decide
from argosy.scheduler.placing.places import place_now
from argosy.scheduler.supply.roster import Roster
from argosy.spec.terms import terms_of_form
from tests.benchmarks.apart import apart, peak_mib
from tests.benchmarks.full_cluster import INSTANCES, PER_INSTANCE, full_state, seen
from tests.builders import (
    CELL,
    POLICY,
    RUN_ID,
    MemoryStore,
    begun,
    moment_of,
    task,
    task_arn,
    told,
)
from tests.fakes.engine import EmptyQueue, IdleExecutor, TickingClock


@pytest.mark.benchmark
@pytest.mark.parametrize("capacity", [{}, {"budgetUsd": 1e6}], ids=["no caps", "with a budget"])
def test_a_tick_at_full_size_stays_within_its_floor(
    capsys: pytest.CaptureFixture[str], capacity: dict[str, float]
) -> None:
    seconds, peak = apart(ticks, capacity)
    name = "tick with a budget" if capacity else "tick"
    median, worst = statistics.median(seconds), max(seconds)
    with capsys.disabled():
        print(f"\n{name}: median {median:.3f} s, worst {worst:.3f} s, peak {peak:.0f} MiB")
    assert median < 2.0
    assert peak < 512


def ticks(capacity: dict[str, float]) -> tuple[list[float], float]:
    """Seconds of each of five, and the peak of memory in MiB."""
    state = full_state()
    run = state.runs[RUN_ID]
    run.terms = terms_of_form({**run.spec, "capacity": capacity})
    engine = Engine(MemoryStore(), EmptyQueue(), IdleExecutor(), load_catalogue(), POLICY, TickingClock(), state=state)
    engine.tick()  # writes everything once
    seconds = []
    for _ in range(5):
        started = time.process_time()
        engine.tick()
        seconds.append(time.process_time() - started)
    return seconds, peak_mib()


@pytest.mark.benchmark
@pytest.mark.parametrize("capacity", [{}, {"budgetUsd": 1e4}], ids=["no caps", "with budgets"])
def test_a_decision_about_a_thousand_runs(capsys: pytest.CaptureFixture[str], capacity: dict[str, float]) -> None:
    state, roster, seconds = full_state(runs=1_000), Roster(), []
    for run in state.runs.values():
        run.terms = terms_of_form({**run.spec, "capacity": capacity})
    decide(moment_of(state), roster=roster)
    for _ in range(5):
        started = time.process_time()
        decide(moment_of(state), roster=roster)
        seconds.append(time.process_time() - started)
    with capsys.disabled():
        print(f"\na decision about 1,000 runs{' with budgets' if capacity else ''}: least {min(seconds):.3f} s")
    assert min(seconds) < 1.0


@pytest.mark.benchmark
def test_one_task_is_placed_on_what_the_ticks_keep(capsys: pytest.CaptureFixture[str]) -> None:
    """`again`: the same once more, when nothing has pushed the columns out of the processor's caches."""
    state, roster, seconds, again = full_state(), Roster(), [], []
    batch = Batch(1024, 1024, 0, 1, group=state.runs[RUN_ID].group)
    roster.at(moment_of(state))
    for index in range(1_000):  # an attempt ends, an instance shows again, and another task begins
        told(state, replace(task(1, "STOPPED", 9, exit_code=0), arn=task_arn(index)), seen(index + 1_000))
        moment = moment_of(state)
        assert moment.owed  # a tick counts it anyway
        started = time.process_time()
        placed, _ = place_now([batch], roster.at(moment), {})
        seconds.append(time.process_time() - started)
        started = time.process_time()
        place_now([batch], roster.at(moment), {})
        again.append(time.process_time() - started)
        ((_, where),) = placed
        name = roster.at(moment).here.row(where).id
        key = AttemptKey(RUN_ID, INSTANCES * PER_INSTANCE + index, 1, 0)
        begun(state, [Launch(key, 1, state.started_by(1), name, CELL)])
    for what, measured in (("one task in a live tick", seconds), ("again at once", again)):
        measured.sort()
        with capsys.disabled():
            print(f"\n{what}: p50 {measured[500] * 1e6:.0f} us, p99 {measured[990] * 1e6:.0f} us")
    assert seconds[500] < 0.001
    assert seconds[990] < 0.005
