"""What does a tick cost at full size: 5,000 instances, 80,000 live attempts, a run of 1,000,000 tasks?

Floor (DESIGN section 6): under 2 s and 512 MiB. `make bench` prints the figures.
"""

from __future__ import annotations

import resource
import statistics
import time

import pytest

from argosy.catalogue.lookup import load_catalogue
from argosy.engine.tick import Engine
from argosy.model.attempts import AttemptKey, AttemptStatus
from argosy.model.events import ContainerInstanceSeen
from argosy.model.run_terms import RunTerms
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from tests.builders import (
    NOW,
    POLICY,
    RUN_ID,
    MemoryStore,
    container_instance,
    fleet,
    host,
    prepared,
    submitted,
    told,
)
from tests.fakes.engine import EmptyQueue, IdleExecutor, TickingClock

INSTANCES, PER_INSTANCE, TASKS = 5_000, 16, 1_000_000


def full_state() -> State:
    state = told(State(epoch="bench"), submitted(tasks=TASKS), prepared())
    for zone in "abc":
        told(state, fleet("c5.4xlarge", f"us-east-1{zone}", spot_target=INSTANCES))
    for number in range(INSTANCES):
        told(state, host(number, "c5.4xlarge", f"us-east-1{'abc'[number % 3]}"), seen(number))
    run = state.runs[RUN_ID]
    for index in range(INSTANCES * PER_INSTANCE):
        name = f"i-{index % INSTANCES:017x}"
        row = state.attempts.add(run.number, AttemptKey(RUN_ID, index, 1, 0), 1 + index // 100, name, NOW)
        state.attempts.name_task(row, f"{index:032x}")
        state.attempts.set(row, status=AttemptStatus.RUNNING, launched_at=NOW, started_at=NOW)
        run.tasks.set(index, status=TaskStatus.RUNNING, attempts=1)
    state.observed_at = NOW
    return state


def seen(number: int) -> ContainerInstanceSeen:
    # one task in seventeen has a place left, so that a tick also launches
    return container_instance(number, 17 * 1024 if number < 200 else 16 * 1024, 30_000)


@pytest.mark.benchmark
@pytest.mark.parametrize("capacity", [{}, {"budgetUsd": 1e6}], ids=["no caps", "with a budget"])
def test_a_tick_at_full_size_stays_within_its_floor(
    capsys: pytest.CaptureFixture[str], capacity: dict[str, float]
) -> None:
    state = full_state()
    run = state.runs[RUN_ID]
    run.terms = RunTerms.of({**run.spec, "capacity": capacity})
    engine = Engine(MemoryStore(), EmptyQueue(), IdleExecutor(), load_catalogue(), POLICY, TickingClock(), state=state)
    engine.tick()  # writes everything once
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        engine.tick()
        seconds.append(time.perf_counter() - started)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    name = "tick with a budget" if capacity else "tick"
    median, worst = statistics.median(seconds), max(seconds)
    with capsys.disabled():
        print(f"\n{name}: median {median:.3f} s, worst {worst:.3f} s, peak {peak_mib:.0f} MiB")
    assert statistics.median(seconds) < 2.0
    assert peak_mib < 512
