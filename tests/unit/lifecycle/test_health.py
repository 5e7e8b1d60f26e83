"""Is the instance or the program at fault when attempts fail at once?"""

from __future__ import annotations

import pytest

from argosy.lifecycle.accounts import Account, AttemptEnd
from argosy.lifecycle.health import note_end
from argosy.model.attempts import StopCause
from argosy.model.events import TaskSeen
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from tests.builders import (
    POLICY,
    RUN_ID,
    container_instance,
    host,
    instance_id,
    launched,
    state_with,
    state_with_instance,
    stored,
    submitted,
    task,
    told,
)

HOLE, OTHER, THIRD = (instance_id(number) for number in (1, 2, 3))


def struck(*tried: str, instances: int = 2) -> State:
    """The run had tasks on HOLE and on `tried`; OTHER has a strike."""
    numbers = range(1, instances + 1)
    state = state_with(submitted())
    told(state, *(host(number) for number in numbers), *(container_instance(number) for number in numbers))
    for each in state.instances.values():
        each.owned = True
    state.runs[RUN_ID].instances = {HOLE, *tried}
    state.instances[OTHER].strikes = 1
    return state


def hole_after_its_strikes(state: State) -> Instance:
    run, hole = state.runs[RUN_ID], state.instances[HOLE]
    run.tasks.set(0, seconds=1.0)
    end = AttemptEnd(0, Account.USER, StopCause.NONE, "it failed", TaskSeen("", 1, "STOPPED"))
    for _ in range(POLICY.max_strikes):
        note_end(state, run, hole, end, POLICY)
    return hole


def test_what_fails_on_every_instance_that_was_tried_is_no_instances_fault() -> None:
    assert not hole_after_its_strikes(struck(OTHER)).cordon


def test_strikes_on_a_gone_instance_shield_no_task() -> None:
    state = struck(OTHER)
    state.instances[OTHER].status = InstanceStatus.GONE
    assert hole_after_its_strikes(state).cordon


def test_strikes_that_another_run_caused_shield_no_task() -> None:
    assert hole_after_its_strikes(struck()).cordon


def test_two_that_strike_at_once_do_not_shield_each_other_where_the_run_has_succeeded() -> None:
    state = struck(OTHER)
    state.runs[RUN_ID].tasks.set(0, status=TaskStatus.SUCCEEDED)
    assert hole_after_its_strikes(state).cordon


@pytest.mark.parametrize("fit", [True, False])
def test_nor_while_an_instance_that_could_take_its_tasks_has_not_been_tried(fit: bool) -> None:
    state = struck(OTHER, instances=3)
    state.instances[THIRD].agent_connected = fit
    assert bool(hole_after_its_strikes(state).cordon) is fit


def test_a_strike_of_what_never_started_is_stored_though_the_instance_works_on() -> None:
    state, items = state_with_instance(), {}
    launched(state, index=0, number=1)
    launched(state, index=1, number=2)
    stored(state, items)
    told(state, task(1, "STOPPED", 3, exit_code=None, reason="CannotStartContainerError: no such file"))
    assert state.instances[HOLE].strikes == 1
    assert stored(state, items).instances[HOLE].strikes == 1
