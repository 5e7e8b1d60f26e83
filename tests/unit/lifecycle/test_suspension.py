"""A suspended run is stored as such, keeps its tasks, and gets no facts until it is retried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from argosy.lifecycle import charges, quarantine
from argosy.lifecycle.apply import apply, pass_time
from argosy.lifecycle.suspension import bare_record, close, resume, suspend
from argosy.model.actions import Launch
from argosy.model.attempts import AttemptStatus
from argosy.model.costs import Work
from argosy.model.damage import Damage
from argosy.model.events import (
    HostStateChanged,
    LaunchAccepted,
    Observed,
    RebalanceAdvised,
    RunCancelled,
    RunNotResumed,
    RunRetried,
)
from argosy.model.inbox import CancelRequest, RetryRequest
from argosy.model.instances import Instance
from argosy.model.invariants import contradictions
from argosy.model.open_ends import OpenEnd
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run, RunStatus, sort_key
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.stored.documents import STATE, restore
from argosy.model.suspensions import pause_s
from argosy.scheduler.supply.rows import row_of, uses_by_number
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    RUN_ID,
    begun,
    container_instance,
    fleet,
    host,
    instance_id,
    launched,
    state_with_instance,
    task,
    task_arn,
    told,
    without_runs,
)
from tests.fakes.aws import KEY
from tests.fakes.throwing import any_of, is_row_of, named, throwing


def at_work() -> State:
    state = state_with_instance()
    for index in range(2):
        launched(state, index=index, number=index + 1)
    told(state, task(1, "RUNNING"))
    return state


def suspended() -> State:
    state = at_work()
    suspend(state, RunRecord.of(state.runs[RUN_ID]), "it fails", NOW)
    return state


def whole_run() -> Run:
    """As it was stored before it was suspended."""
    return at_work().runs[RUN_ID]


def stored(state: State) -> State:
    items = documents.changed(state)
    record = items["RUNS", sort_key(RUN_ID)]
    return restore(1, {key: body for (part, key), body in items.items() if part == STATE}, {RUN_ID: (record, {})})


def test_it_is_stored_as_suspended_and_its_documents_are_not_read() -> None:
    state = suspended()
    again = stored(state)
    assert not again.runs
    found, before = again.suspended[RUN_ID], state.suspended[RUN_ID]
    assert (found.reason, found.since, found.again_at, found.times) == ("it fails", NOW, NOW + 60, 1)
    assert found.record.suspended_at == NOW
    assert "tries again at" in found.record.waiting
    assert found.record.number == before.record.number


def test_a_record_that_cannot_be_read_either_is_damage() -> None:
    state = suspended()
    items = {key: body for (part, key), body in documents.changed(state).items() if part == STATE}
    assert [damage.run_id for damage in restore(1, items, {RUN_ID: (b"x", {})}).losses.runs] == [RUN_ID]


def test_a_record_of_which_no_bytes_are_left_is_set_aside_with_its_reason_alone() -> None:
    state = without_runs(state_with_instance())
    state.losses.runs.append(Damage("record", "its column run is gone", RUN_ID))
    quarantine.set_aside(state, NOW, POLICY)
    assert state.quarantined[RUN_ID].status_reason == (
        "set aside: the stored record is corrupt: its column run is gone"
    )
    assert not state.damaged


def test_its_tasks_keep_their_place_and_no_fact_but_their_end_is_taken_in() -> None:
    state = suspended()
    taken = state.used_on(instance_id(1))
    told(state, task(2, "RUNNING", 3), LaunchAccepted(KEY, task_arn(9)))
    told(state, RebalanceAdvised(instance_id(1)))
    assert state.instances[instance_id(1)].rebalance_at
    assert not state.orphans
    assert len(state.attempts.live()) == 2
    assert state.used_on(instance_id(1)) == taken
    instance, runs = state.instances[instance_id(1)], state.attempts.runs_on_instance[instance_id(1).encode()]
    row = row_of(instance, runs, uses_by_number(state), POLICY)
    assert (row.running_tasks, row.cpu_units) == (2, instance.total.cpu_units - taken.cpu_units)


def test_sweeps_neither_lose_its_tasks_nor_take_them_for_strays() -> None:
    state = suspended()
    for at in (NOW + 1000, NOW + 2000):
        seen = (task(7, "RUNNING", started_by="argosy-testtest-1", desired_status="RUNNING", key=KEY),)
        sweep = Observed(at, seen, (container_instance(1),), (host(1),), (fleet(spot_target=1),))
        apply(state, sweep, at, POLICY)
    assert not state.orphans
    assert len(state.attempts.live()) == 2


def test_when_it_is_tried_again_unsent_launches_are_in_doubt_and_lost_attempts_are_made_up_for() -> None:
    state = state_with_instance()
    begun(state, [Launch(KEY, 1, state.started_by(1), instance_id(1), CELL)])
    run = state.runs[RUN_ID]
    suspend(state, bare_record(run), "it fails", NOW)
    told(state, HostStateChanged(instance_id(1), "terminated", NOW))
    resume(state, run)
    assert state.runs == {RUN_ID: run}
    assert state.losses.attempts
    assert state.attempts["status"][0] == AttemptStatus.IN_DOUBT


def test_pauses_grow_fourfold_to_an_hour() -> None:
    assert [pause_s(times) for times in (1, 2, 3, 4, 5, 100)] == [60, 240, 960, 3600, 3600, 3600]


def priced() -> State:
    state = suspended()
    instance = state.instances[instance_id(1)]
    instance.price_usd_per_hour, instance.launched_at, instance.bought_for = 3.6, NOW - 100, 7
    return state


def test_an_instance_that_goes_meanwhile_is_charged_to_the_suspended_run_that_worked_there() -> None:
    state = priced()
    apply(state, HostStateChanged(instance_id(1), "terminated", NOW + 3600), NOW + 3600, POLICY)
    record = state.suspended[RUN_ID].record
    assert record.cost_usd == pytest.approx(3.7)
    assert sum(costs.total for costs in record.costs.values()) == pytest.approx(3.7)
    assert state.unattributed.total == 0
    assert stored(state).suspended[RUN_ID].record.cost_usd == pytest.approx(3.7), "with which it is resumed"


def test_a_suspended_run_that_is_closed_pays_its_part_of_what_is_alive() -> None:
    state = priced()
    state.instances[instance_id(1)].work[state.suspended[RUN_ID].record.number] = [10.0, 0.0, 0.0, 0.0]
    close(state, RUN_ID, RunStatus.CANCELLED, "cancelled", NOW + 3600)
    assert state.quarantined[RUN_ID].cost_usd == pytest.approx(3.7)


def test_a_suspended_run_that_is_closed_waits_for_nothing() -> None:
    state = priced()
    its = state.suspended[RUN_ID]
    state.suspended[RUN_ID] = replace(its, record=replace(its.record, waiting="instances are ordered"))
    close(state, RUN_ID, RunStatus.CANCELLED, "cancelled", NOW + 3600)
    assert not state.quarantined[RUN_ID].waiting


def test_a_suspended_run_that_is_cancelled_twice_in_one_tick_is_closed_once() -> None:
    state = suspended()
    as_stored = whole_run()
    for _ in range(2):
        told(state, RunCancelled(CancelRequest(RUN_ID, NOW, "enough"), as_stored))
    assert (state.runs, state.suspended) == ({}, {})
    assert state.quarantined[RUN_ID].status is RunStatus.CANCELLED


def test_a_suspended_run_that_is_cancelled_and_retried_in_one_tick_is_open_again() -> None:
    state = suspended()
    as_stored = whole_run()
    told(state, RunCancelled(CancelRequest(RUN_ID, NOW, "enough"), as_stored))
    told(state, RunRetried(RetryRequest(RUN_ID, NOW), as_stored))
    assert (list(state.runs), state.suspended, state.quarantined) == ([RUN_ID], {}, {})


def test_the_attempts_of_a_run_that_another_controller_has_closed_are_ended() -> None:
    """This one has not noticed yet: it tries the run again, and finds it ended."""
    state = suspended()
    apply(state, RunNotResumed(RUN_ID, ""), NOW + 60, POLICY)
    assert not [*contradictions(state, whole=True)]
    quarantine.mend(state, NOW + 60, POLICY)
    assert not len(state.attempts.live())
    assert not [*contradictions(state, whole=True)]


def test_another_run_that_closes_does_not_pay_for_a_suspended_one() -> None:
    state = priced()
    other = replace(state.suspended[RUN_ID].record, id="other", number=8)
    charges.book(state, other, state.instances[instance_id(1)], 10.0, Work.USEFUL)
    charges.close_run(state, other, NOW + 3600)
    assert 0 < state.unattributed.total < 0.1, "of 3.70 USD; number 8 has no ledger here"


def rows_of(state: State) -> list[int]:
    return [int(row) for row in state.attempts.live()]


def of_its_rows(arguments: Mapping[str, Any]) -> bool:
    return is_row_of(arguments, 1)


def what_was_left_out(state: State) -> list[str]:
    return [what for what, _ in state.left_out]


def test_attempts_that_go_with_their_instance_do_not_need_the_code_that_ends_those_of_open_runs() -> None:
    state = priced()
    with throwing(named("lifecycle.attempts.end"), of_its_rows, anywhere=True):
        apply(state, HostStateChanged(instance_id(1), "terminated", NOW + 3600), NOW + 3600, POLICY)
    assert rows_of(state) == []
    assert not state.left_out


def test_time_that_cannot_be_charged_to_it_is_left_out_and_its_task_still_leaves() -> None:
    state = priced()
    with throwing(named("lifecycle.charges.book"), any_of(lambda value: isinstance(value, RunRecord)), anywhere=True):
        told(state, task(1, "STOPPED", 9, started_at=NOW, stopped_at=NOW + 50, exit_code=0))
    assert state.attempts["left_at"][0] == NOW + 50
    assert what_was_left_out(state) == [f"charging run {RUN_ID} for an attempt"]
    assert state.instances[instance_id(1)].work == {}


def test_it_is_closed_though_neither_its_last_charge_nor_its_definition_can_be_dealt_with() -> None:
    state, of_record = priced(), any_of(lambda value: isinstance(value, RunRecord))
    charge, release = named("lifecycle.charges.close_run"), named("lifecycle.definitions.release")
    with throwing(charge, of_record, anywhere=True), throwing(release, of_record, anywhere=True):
        close(state, RUN_ID, RunStatus.CANCELLED, "cancelled", NOW + 3600)
    assert state.quarantined[RUN_ID].status is RunStatus.CANCELLED
    assert len(state.left_out) == 2
    apply(state, HostStateChanged(instance_id(1), "terminated", NOW + 3600), NOW + 3600, POLICY)
    assert state.unattributed.total == pytest.approx(3.7), "what it would have paid is in the books all the same"


def test_an_instance_at_which_the_code_fails_closes_no_suspended_run() -> None:
    """Of the amounts that it owes, only the charges are known then."""
    state = priced()
    found = state.suspended[RUN_ID]
    found.record = replace(found.record, budget_usd=1.0)
    with throwing(named("model.instances.Instance.owes"), any_of(lambda value: isinstance(value, Instance)), True):
        pass_time(state, NOW + 60, POLICY)
    assert list(state.suspended) == [RUN_ID]
    assert what_was_left_out(state) == [f"what run {RUN_ID} owes"]


def test_an_end_that_waits_for_the_fate_of_its_instance_is_dropped_with_the_run() -> None:
    """ECS shows it again. Until then nothing may be done about the run's attempts."""
    state = state_with_instance()
    launched(state)
    state.open_ends.failures[0] = OpenEnd(task(1, "STOPPED", 9), NOW, NOW)
    suspend(state, RunRecord.of(state.runs[RUN_ID]), "it fails", NOW)
    assert not state.open_ends
