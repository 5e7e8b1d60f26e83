"""A state that contradicts itself is found out: a planted contradiction of each family."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from argosy.model.attempts import AttemptStatus
from argosy.model.costs import Costs
from argosy.model.journal.commit import documents_of_commit
from argosy.model.resources import Resources
from argosy.model.setbacks import Act, Setback, Subject
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from tests.builders import (
    BUILT,
    CELL,
    NOW,
    RUN_ID,
    instance_id,
    launched,
    state_with_instance,
    task,
    told,
    without_runs,
)
from tests.state_invariants import InconsistentState, check, contradictions

POOL = f"{CELL}/c5.xlarge/us-east-1a"
RUN, HERE = RUN_ID, instance_id(1)


def at_work() -> State:
    """A task that runs, one that was launched, and eight that wait; not checked when the test ends."""
    state = state_with_instance()
    launched(state, index=0, number=1)
    launched(state, index=1, number=2)
    told(state, task(1))
    BUILT.remove(state)
    return state


def give_to_another(state: State) -> None:
    state.attempts["index"][0] = 5


def forget_the_instance(state: State) -> None:
    del state.instances[HERE]


def forget_the_run(state: State) -> None:
    without_runs(state).losses.attempts = False


def start_again(state: State) -> None:
    state.attempts["status"][1] = AttemptStatus.INTENT


def start_in_secret(state: State) -> None:
    state.attempts["started_at"][1] = 1.0


def launch_in_a_later_wave(state: State) -> None:
    state.attempts["wave"][0] = state.next_wave


def count_twice(state: State) -> None:
    state.attempts.runs_on_instance[HERE.encode()][1] += 1


def free_a_row_in_use(state: State) -> None:
    state.attempts.free_rows.append(0)


def forget_who_lies_there(state: State) -> None:
    state.attempts.rows_of_instance[HERE.encode()].discard(0)


def name_the_task_twice(state: State) -> None:
    state.attempts.row_of_task_id[b"x"] = 0


def launch_a_task_twice(state: State) -> None:
    state.attempts["index"][1] = 0
    state.attempts.reindex()


def finish_without_an_end(state: State) -> None:
    state.runs[RUN].tasks["status"][0] = TaskStatus.SUCCEEDED


def run_without_an_attempt(state: State) -> None:
    state.runs[RUN].tasks["status"][7] = TaskStatus.RUNNING


def commit_what_was_never_tried(state: State) -> None:
    state.runs[RUN].tasks["committed"][3] = 1


def refer_to_a_missing_reason(state: State) -> None:
    state.runs[RUN].tasks["reason"][3] = 9


def spend_without_a_ledger(state: State) -> None:
    state.runs[RUN].cost_usd = 1.0


def book_without_spending(state: State) -> None:
    state.runs[RUN].costs["x|spot"] = Costs(useful=1.0)


def lose_the_empty_reason(state: State) -> None:
    state.runs[RUN].reasons[0] = "no"


def list_the_run_elsewhere(state: State) -> None:
    state.runs["another"] = state.runs[RUN]


def number_from_the_future(state: State) -> None:
    state.next_run = 1


def shrink_the_run(state: State) -> None:
    state.runs[RUN].task_count = 9


def list_the_instance_elsewhere(state: State) -> None:
    state.instances["i-2"] = state.instances[HERE]


def end_what_lives(state: State) -> None:
    state.instances[HERE].losing = True


def serve_unregistered(state: State) -> None:
    state.instances[HERE].arn = ""


def idle_at_work(state: State) -> None:
    state.instances[HERE].idle_since = 1.0


def work_backwards(state: State) -> None:
    state.instances[HERE].work[1] = [-1.0, 0.0, 0.0, 0.0]


def owe_strangers(state: State) -> None:
    state.instances[HERE].foreign = Resources(-1, 0, 0)


def aim_below_nothing(state: State) -> None:
    state.pools[POOL].spot_target = -1


def aim_without_a_fleet(state: State) -> None:
    state.pools[POOL].fleet_id = ""


def keep_the_own_fleet_down(state: State) -> None:
    state.pools[POOL].surplus = [state.pools[POOL].fleet_id]


def list_the_pool_elsewhere(state: State) -> None:
    state.pools["another"] = state.pools[POOL]


def be_set_back_by_nothing(state: State) -> None:
    state.setbacks[Subject(Act.CLOSE, "")] = Setback(1)


def be_set_back_by_a_later_wave(state: State) -> None:
    state.setbacks[Subject(Act.RESOLVE, str(state.next_wave))] = Setback(1)


def be_refused_too_often(state: State) -> None:
    state.setbacks[Subject(Act.CLOSE, RUN)] = Setback(1, refusals=2)


def mark_a_closed_run(state: State) -> None:
    state.changed_runs.add("another")


FAULTS = (
    give_to_another, forget_the_instance, forget_the_run, start_again, start_in_secret, launch_in_a_later_wave,
    count_twice, free_a_row_in_use, forget_who_lies_there, name_the_task_twice, launch_a_task_twice,
    finish_without_an_end, run_without_an_attempt, commit_what_was_never_tried, refer_to_a_missing_reason,
    spend_without_a_ledger, book_without_spending, lose_the_empty_reason, list_the_run_elsewhere,
    number_from_the_future, shrink_the_run, list_the_instance_elsewhere, end_what_lives, serve_unregistered,
    idle_at_work, work_backwards, owe_strangers, aim_below_nothing, aim_without_a_fleet, keep_the_own_fleet_down,
    list_the_pool_elsewhere, be_set_back_by_nothing, be_set_back_by_a_later_wave, be_refused_too_often,
    mark_a_closed_run,
)  # fmt: skip


def test_a_state_that_facts_have_made_does_not_contradict_itself() -> None:
    assert list(contradictions(at_work())) == []


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_contradiction_is_found(plant: Callable[[State], None]) -> None:
    state = at_work()
    plant(state)
    with pytest.raises(InconsistentState):
        check(state)


def test_what_a_load_has_lost_is_no_contradiction() -> None:
    assert list(contradictions(without_runs(at_work()))) == []
    state = at_work()
    forget_the_instance(state)
    state.losses.blind = True
    assert list(contradictions(state)) == []


def test_a_state_that_contradicts_itself_is_not_stored() -> None:
    state = at_work()
    spend_without_a_ledger(state)
    state.changed_runs |= state.runs.keys()
    with pytest.raises(InconsistentState, match="are not the sum of its ledger"):
        documents_of_commit(state, NOW)
