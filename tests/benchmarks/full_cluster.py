"""A cluster of full size: 5,000 instances, 80,000 live attempts, 1,000,000 tasks, of one run or of many."""

from __future__ import annotations

from argosy.model.attempts import AttemptKey, AttemptStatus
from argosy.model.events import ContainerInstanceSeen
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from tests.builders import NOW, RUN_ID, container_instance, fleet, host, prepared, submitted, told

INSTANCES, PER_INSTANCE, TASKS = 5_000, 16, 1_000_000


def full_state(runs: int = 1, mixed: bool = False, owed: int = 2 * INSTANCES) -> State:
    """mixed: whether the tasks of an instance are of different runs. owed: instances that may still arrive."""
    state, ids = State(epoch="bench"), [RUN_ID, *(f"other-261121-062733-{number:04x}" for number in range(1, runs))]
    for run_id in ids:
        told(state, submitted(run_id, tasks=TASKS // runs), prepared(run_id))
    for zone in "abc":
        told(state, fleet("c5.4xlarge", f"us-east-1{zone}", spot_target=-(-(INSTANCES + owed) // 3)))
    for number in range(INSTANCES):
        told(state, host(number, "c5.4xlarge", f"us-east-1{'abc'[number % 3]}"), seen(number))
    for index in range(INSTANCES * PER_INSTANCE):
        shift = index // INSTANCES if mixed else 0
        run, at, name = state.runs[ids[(index + shift) % runs]], index // runs, f"i-{index % INSTANCES:017x}"
        row = state.attempts.add(run.number, AttemptKey(run.id, at, 1, 0), 1 + index // 100, name, NOW)
        state.attempts.name_task(row, f"{index:032x}")
        state.attempts.set(row, status=AttemptStatus.RUNNING, launched_at=NOW, started_at=NOW)
        run.tasks.set(at, status=TaskStatus.RUNNING, attempts=1)
    state.observed_at, state.next_wave = NOW, 1 + INSTANCES * PER_INSTANCE // 100 + 1
    return state


def seen(number: int) -> ContainerInstanceSeen:
    # one task in seventeen has a place left, so that a tick also launches
    return container_instance(number, 17 * 1024 if number < 200 else 16 * 1024, 30_000)
