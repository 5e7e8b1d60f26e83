"""Which waits end with the end of a run, and which runs are cancelled with it?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.lifecycle.dependencies import pack_statuses
from argosy.model.events import DependencyEnded, RunCancelled
from argosy.model.inbox import CancelRequest
from argosy.model.runs import RunStatus
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from tests.builders import state_with, submitted, told

FIRST, SECOND, THIRD = "first-261121-062733-aaaa", "second-261121-062734-bbbb", "third-261121-062735-cccc"
ALL_WELL = (0, 0, 0, 0, 3, 0, 0)


def waiting(on: list[dict[str, Any]]) -> State:
    return state_with(submitted(THIRD, 3, array={"size": 3}, dependsOn=on))


def test_a_run_that_waits_for_two_runs_starts_after_the_second_end() -> None:
    state = waiting([{"run": FIRST}, {"run": SECOND}])
    run = state.runs[THIRD]
    told(state, DependencyEnded(SECOND, RunStatus.SUCCEEDED, ALL_WELL))
    assert (run.unmet, run.held) == ([FIRST], True)
    told(state, DependencyEnded(FIRST, RunStatus.SUCCEEDED, ALL_WELL))
    assert (run.unmet, run.held) == ([], False)


def test_the_failure_of_one_run_gives_up_only_the_runs_that_need_its_success() -> None:
    state = waiting([{"run": FIRST, "on": "end"}, {"run": SECOND}])
    failed = (0, 0, 0, 0, 1, 2, 0)
    told(state, DependencyEnded(FIRST, RunStatus.PARTIAL, failed))
    assert (state.runs[THIRD].status_reason, state.runs[THIRD].unmet) == ("", [SECOND])
    told(state, DependencyEnded(SECOND, RunStatus.PARTIAL, failed))
    assert state.runs[THIRD].status_reason == f"its dependency {SECOND} ended PARTIAL: 2 of 3 tasks did not succeed"


def test_a_run_whose_tasks_wait_for_their_own_ones_says_so_only_until_these_have_ended() -> None:
    """The tick that decides may have no room in its commit for another reason."""
    state = waiting([{"run": FIRST, "type": "N_TO_N"}])
    run = state.runs[THIRD]
    run.waiting = f"each of its pending tasks waits for its own task of {FIRST}"
    statuses = pack_statuses(np.full(3, TaskStatus.SUCCEEDED, dtype=np.uint8))
    told(state, DependencyEnded(FIRST, RunStatus.SUCCEEDED, ALL_WELL, statuses))
    assert (run.unmet, run.waiting) == ([], "")


def test_a_run_whose_tasks_are_all_cancelled_with_their_own_ones_waits_for_no_other_run() -> None:
    state = waiting([{"run": FIRST, "type": "N_TO_N"}, {"run": SECOND, "type": "N_TO_N"}])
    run = state.runs[THIRD]
    run.waiting = f"each of its pending tasks waits for its own task of {FIRST} and {SECOND}"
    statuses = pack_statuses(np.full(3, TaskStatus.FAILED, dtype=np.uint8))
    told(state, DependencyEnded(FIRST, RunStatus.FAILED, (0, 0, 0, 0, 0, 3, 0), statuses))
    assert (run.complete, run.unmet, run.waiting) == (True, [SECOND], "")


def test_tasks_that_a_closed_run_never_ended_cancel_those_that_wait_for_them() -> None:
    """A run that is cancelled while it is suspended keeps its tasks as they were."""
    state = waiting([{"run": FIRST, "type": "N_TO_N"}])
    run = state.runs[THIRD]
    as_stored = [TaskStatus.SUCCEEDED, TaskStatus.PENDING, TaskStatus.RUNNING]
    statuses = pack_statuses(np.array(as_stored, dtype=np.uint8))
    told(state, DependencyEnded(FIRST, RunStatus.CANCELLED, (1, 0, 1, 0, 1, 0, 0), statuses))
    assert (run.unmet, [*run.tasks["met"]]) == ([], [1, 0, 0])
    assert [*run.tasks["status"]] == [TaskStatus.PENDING, TaskStatus.CANCELLED, TaskStatus.CANCELLED]


@pytest.mark.parametrize("is_complete", [False, True])
def test_a_dependent_whose_tasks_have_all_ended_is_not_cancelled_with_the_run_it_waited_for(is_complete: bool) -> None:
    """The run may have been retried since. The dependent only awaits the end of its bookkeeping."""
    state = state_with(submitted(FIRST, 2), submitted(SECOND, 2, dependsOn=[{"run": FIRST}]))
    second = state.runs[SECOND]
    if is_complete:
        for index in range(2):
            state.set_task(second, index, status=TaskStatus.SUCCEEDED)
    told(state, RunCancelled(CancelRequest(FIRST, 0.0, "", dependents=True)))
    assert state.runs[FIRST].cancelled
    assert second.cancelled is not is_complete
    assert second.status_reason == ("" if is_complete else f"cancelled with {FIRST}, which it depends on")
