"""How long does a tick take over two runs of a million tasks, one of which waits for the other task by task?"""

from __future__ import annotations

import time

import numpy as np
import pytest

from argosy.lifecycle import dependencies
from argosy.lifecycle.apply import apply
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from tests.builders import NOW, POLICY, submitted

TASKS, NEW = 1_000_000, 250  # that end between two ticks
FLOOR_S = 0.05  # of a machine that is busy; the floor of the goal is 0.005
FIRST, SECOND = "first-261121-062733-aaaa", "second-261121-062733-bbbb"


@pytest.mark.benchmark
def test_a_million_tasks_that_wait_for_a_million() -> None:
    state, rng = State(), np.random.default_rng(17)
    apply(state, submitted(FIRST, TASKS, array={"size": TASKS}), NOW, POLICY)
    depends = [{"run": FIRST, "type": "N_TO_N"}]
    apply(state, submitted(SECOND, TASKS, array={"size": TASKS}, dependsOn=depends), NOW, POLICY)
    first, second = state.runs[FIRST].tasks, state.runs[SECOND].tasks
    over = rng.random(TASKS) < 0.4
    first.columns["status"][over] = TaskStatus.SUCCEEDED
    second.columns["met"][over] = 1
    seconds = []
    for _ in range(7):
        first.columns["status"][rng.integers(0, 10 * first.chunk_rows, NEW)] = TaskStatus.SUCCEEDED
        began = time.perf_counter()
        dependencies.pass_time(state, NOW, POLICY)
        seconds.append(time.perf_counter() - began)
    print(f"\nN_TO_N over {TASKS:,} x {TASKS:,} tasks: {min(seconds) * 1000:.1f} ms a tick")
    assert min(seconds) < FLOOR_S
