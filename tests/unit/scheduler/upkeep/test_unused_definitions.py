"""When is a task definition deregistered that closed runs had?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.lifecycle.definitions import MOST_UNUSED
from argosy.lifecycle.suspension import suspend
from argosy.model.actions import DeregisterDefinition
from argosy.model.arns import family_of
from argosy.model.damage import Damage
from argosy.model.events import (
    ControllerStarted,
    DefinitionDeregistered,
    NotCarriedOut,
    RunCancelled,
    RunClosed,
    RunNotPrepared,
)
from argosy.model.inbox import CancelRequest
from argosy.model.run_record import RunRecord
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.scheduler.decide import decide
from argosy.scheduler.upkeep.upkeep import DEREGISTERED_AT_ONCE, UNUSED_S
from tests.builders import NOW, POLICY, RUN_ID, moment_of, prepared, state_with, submitted, told

OTHER = "second-261121-062733-k3f9"
FAMILY = family_of(prepared().task_definition)
LATER = NOW + UNUSED_S


def closed(state: State, run_id: str = RUN_ID) -> State:
    return told(state, RunCancelled(CancelRequest(run_id, NOW, "enough")), RunClosed(run_id))


def ended() -> State:
    """One run with a definition of ours has ended, and none is open."""
    state = closed(state_with(submitted(), prepared()))
    documents.committed(state)
    return state


def deregistered(state: State, now: float = LATER, launching: bool = True) -> list[str]:
    actions = decide(moment_of(state, now, POLICY), launching)
    return [action.family for action in actions if isinstance(action, DeregisterDefinition)]


def test_it_goes_with_the_last_open_run_and_once() -> None:
    """In the very tick, which is committed before anything is carried out: the controller may rest after it."""
    state = closed(state_with(submitted(), prepared()))
    assert deregistered(state, NOW) == [FAMILY]
    assert deregistered(told(state, DefinitionDeregistered(FAMILY))) == []


def test_it_goes_a_while_after_its_last_run_while_others_are_open() -> None:
    another = replace(prepared(OTHER), task_definition=prepared().task_definition.replace(FAMILY, "argosy-0"))
    state = told(ended(), submitted(OTHER), another)
    assert (deregistered(state, LATER - 1), deregistered(state)) == ([], [FAMILY])


def test_while_the_kill_switch_is_on_nothing_is_deregistered() -> None:
    assert deregistered(ended(), launching=False) == []


def test_it_stays_while_another_run_has_it() -> None:
    state = closed(state_with(submitted(), prepared(), submitted(OTHER), prepared(OTHER)))
    assert deregistered(state) == []
    assert deregistered(closed(state, OTHER)) == [FAMILY]


def test_it_stays_while_a_suspended_run_has_it() -> None:
    state = told(ended(), submitted(OTHER), prepared(OTHER))
    suspend(state, RunRecord.of(state.runs[OTHER]), "a fault", NOW)
    assert deregistered(state) == []


def test_a_run_that_waits_for_its_preparation_holds_up_no_definition_of_others() -> None:
    """Whether it will get this very one is known where the content of a definition is (test_deregistration)."""
    state = told(ended(), submitted(OTHER))
    assert (deregistered(state, LATER - 1), deregistered(state)) == ([], [FAMILY])
    told(state, RunNotPrepared(OTHER, "no", final=True))
    assert deregistered(state) == [FAMILY]


def test_what_held_it_up_counts_no_more_when_another_run_releases_it() -> None:
    """The controller may rest before a pause would be over."""
    state = told(ended(), submitted(OTHER), prepared(OTHER))
    told(state, NotCarriedOut("needed", about=Subject(Act.DEREGISTER, FAMILY), passing=True), now=LATER)
    assert deregistered(closed(state, OTHER), LATER) == [FAMILY]


def test_a_definition_of_the_users_own_and_a_run_without_one_leave_nothing_to_do() -> None:
    state = closed(state_with(submitted(taskDefinition="train"), prepared()))
    closed(told(state, submitted(OTHER)), OTHER)
    assert state.unused_definitions == {}


def test_a_run_whose_closing_is_given_up_releases_its_definition_too() -> None:
    state = told(state_with(submitted(), prepared()), RunCancelled(CancelRequest(RUN_ID, NOW, "enough")))
    for attempt in range(POLICY.max_setbacks):
        told(state, NotCarriedOut("no bucket", about=Subject(Act.CLOSE, RUN_ID)), now=NOW + 100 * attempt)
    assert list(state.unused_definitions) == [FAMILY]


def test_a_suspended_run_that_is_cancelled_releases_its_definition_too() -> None:
    state = state_with(submitted(), prepared())
    suspend(state, RunRecord.of(state.runs[RUN_ID]), "a fault", NOW)
    told(state, RunCancelled(CancelRequest(RUN_ID, NOW, "enough")))
    assert deregistered(state, NOW) == [FAMILY]


@pytest.mark.parametrize("readable", [True, False])
def test_a_run_that_is_set_aside_releases_its_definition_where_its_record_names_it(readable: bool) -> None:
    run = state_with(submitted(), prepared()).runs[RUN_ID]
    state = state_with()
    state.losses.runs.append(Damage("tasks", "corrupt", RUN_ID, RunRecord.of(run) if readable else None))
    told(state, ControllerStarted())
    assert list(state.unused_definitions) == [FAMILY] * readable


def test_what_ecs_refuses_is_tried_again_after_a_pause() -> None:
    state = told(ended(), NotCarriedOut("denied", about=Subject(Act.DEREGISTER, FAMILY)), now=LATER)
    assert (deregistered(state), deregistered(state, LATER + 60)) == ([], [FAMILY])
    told(state, DefinitionDeregistered(FAMILY))
    assert state.setbacks == {}


@pytest.mark.parametrize("more", [3, MOST_UNUSED + 5])
def test_a_few_are_deregistered_in_a_tick_the_longest_unused_first_and_a_limited_number_is_remembered(
    more: int,
) -> None:
    state = ended()
    for number in range(more):
        run_id = f"run{number}-261121-062733-k3f9"
        arn = prepared().task_definition.replace(FAMILY, f"argosy-{number:012x}")
        closed(told(state, submitted(run_id), replace(prepared(run_id), task_definition=arn)), run_id)
        documents.committed(state)
    known = list(state.unused_definitions)
    assert known == [FAMILY, *(f"argosy-{number:012x}" for number in range(more))][-MOST_UNUSED:]
    assert deregistered(state) == known[:DEREGISTERED_AT_ONCE]
