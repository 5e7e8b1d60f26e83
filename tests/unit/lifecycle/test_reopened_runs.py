"""What does a run start anew with when it is tried again?"""

from __future__ import annotations

from argosy.lifecycle import revival
from argosy.model.inbox import RetryRequest
from argosy.model.tasks import TaskStatus
from tests.builders import NOW, POLICY, RUN_ID, launched, state_with_instance, status_of, task, the_run, told


def test_a_task_that_was_given_up_for_its_losses_may_be_lost_as_often_again() -> None:
    state = state_with_instance(tasks=1)
    for attempt in range(1, 21):
        launched(state, number=attempt, attempt=attempt)
        told(state, task(attempt, "STOPPED", 3, stop_code="SpotInterruption"))
    assert status_of(state) is TaskStatus.FAILED
    revival.reopen(state, RetryRequest(RUN_ID, NOW), the_run(state))
    revival.revive(state, the_run(state), POLICY)
    launched(state, number=21, attempt=21)
    told(state, task(21, "STOPPED", 3, stop_code="SpotInterruption"))
    assert (status_of(state), the_run(state).tasks["losses"][0]) == (TaskStatus.PENDING, 1)
