"""Facts and actions about things that no longer exist change nothing; missing data is no reason to fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.engine.bounds import HISTORY, RECORD, is_progress, one_by_one, touched
from argosy.engine.loading import load
from argosy.lifecycle import charges, lost_hosts, revival
from argosy.lifecycle.apply import apply, pass_time
from argosy.lifecycle.begin import begin
from argosy.lifecycle.quarantine import mend
from argosy.lifecycle.run_stops import cap
from argosy.messages.eventbridge import MESSAGE_KINDS
from argosy.model import events, inbox
from argosy.model.actions import CapRun, CloseRun, Launch, MendState, SetTarget, StopAttempt, StopOrphan, VerifyResult
from argosy.model.attempts import AttemptKey, AttemptStatus, AttemptTable, StopCause
from argosy.model.costs import Work
from argosy.model.inbox import RetryRequest
from argosy.model.instances import InstanceStatus
from argosy.model.run_record import RunRecord
from argosy.model.runs import RunStatus
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.tasks import TaskStatus
from argosy.ports import StaleState
from argosy.scheduler.upkeep import upkeep
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    RUN_ID,
    MemoryStore,
    begun,
    container_instance,
    host,
    instance_id,
    launched,
    moment_of,
    prepared,
    state_with,
    state_with_instance,
    submitted,
    task,
    task_arn,
    told,
    without_runs,
)

NO_RUN = "nobody-261121-062733-zzzz"
GONE_KEY = AttemptKey(NO_RUN, 0, 1, 0)


def orphaned(*, sent: bool = True) -> tuple[State, int]:
    """One live attempt whose run is not among the open ones: it had to be set aside."""
    state = state_with_instance()
    if sent:
        launched(state)
    else:
        begun(state, [Launch(AttemptKey(RUN_ID, 0, 1, 0), 1, state.started_by(1), instance_id(1), CELL)])
    without_runs(state)
    documents.committed(state)
    return state, int(state.attempts.live()[0])


LATE: list[Any] = [
    events.RunPrepared(NO_RUN, "arn", "main", 1, 1, 0),
    events.RunNotPrepared(NO_RUN, "no", final=True),
    events.RunCancelled(inbox.CancelRequest(NO_RUN, NOW, "")),
    events.RunRetried(RetryRequest(NO_RUN, NOW)),
    events.RunClosed(NO_RUN),
    events.ResultSeen(NO_RUN, 0, 1),
    events.NotCarriedOut("no", about=Subject(Act.CLOSE, NO_RUN)),
    events.NotCarriedOut("no"),
    events.LaunchInDoubt(GONE_KEY, "no"),
    events.LaunchMissed(GONE_KEY),
    events.LaunchDisproved(GONE_KEY),
    events.LaunchRefused(GONE_KEY, "AGENT"),
    events.HostStateChanged("i-00000000", "terminated"),
    events.PoolShort("nobody", "no"),
    replace(container_instance(9), status="DRAINING"),
    replace(container_instance(9), instance_id=""),
    host(9, state="terminated"),
    host(9, state="shutting-down"),
    task(9, "RUNNING"),
]


@pytest.mark.parametrize("event", LATE, ids=lambda event: type(event).__name__)
def test_a_fact_about_an_unknown_attempt_changes_nothing(event: Any) -> None:
    state = state_with_instance()
    documents.committed(state)
    before = documents.changed(state)
    apply(state, event, NOW, POLICY)
    after = documents.changed(state)
    assert after.keys() - before.keys() <= {(documents.STATE, documents.ROOT)}
    assert not state.runs[RUN_ID].status_reason


def test_a_fact_of_an_unknown_kind_changes_nothing() -> None:
    state, untouched = state_with(), documents.changed(state_with())
    apply(state, "nonsense", NOW, POLICY)  # type: ignore[arg-type]
    assert documents.changed(state) == untouched


def test_an_accepted_launch_without_an_intent_is_an_orphan() -> None:
    state = state_with(events.LaunchAccepted(GONE_KEY, task_arn(1)))
    assert state.orphans == {task_arn(1): CELL}


@pytest.mark.parametrize("last_status", ["RUNNING", "STOPPED"])
def test_a_task_of_a_run_that_was_set_aside_is_followed_to_its_end(last_status: str) -> None:
    state, row = orphaned()
    told(state, task(1, last_status, 5, exit_code=0))
    left = {"RUNNING": AttemptStatus.RUNNING, "STOPPED": AttemptStatus.FREE}[last_status]
    assert state.attempts["status"][row] == left


def test_a_launch_of_a_run_that_was_set_aside_stays_an_intent_whatever_calls_itself_its_task() -> None:
    state = state_with_instance()
    key = AttemptKey(RUN_ID, 0, 1, 0)
    begun(state, [Launch(key, 1, state.started_by(1), instance_id(1), CELL)])
    row = state.row_of(key)
    assert row is not None
    run = state.runs[RUN_ID]
    without_runs(state)
    told(state, task(1, "PENDING", key=key))
    assert (state.attempts["status"][row], run.attempts) == (AttemptStatus.INTENT, 0)


def test_nothing_is_decided_for_attempts_of_a_run_that_was_set_aside() -> None:
    state, _ = orphaned()
    state.instances[instance_id(1)].interrupted_at = NOW
    later = NOW + 2000
    assert list(upkeep.stops(moment_of(state, later))) == []
    state, row = orphaned(sent=False)
    state.attempts.set(row, status=AttemptStatus.IN_DOUBT)
    assert list(upkeep.resolutions(moment_of(state))) == []
    state.attempts.set(row, status=AttemptStatus.INTENT)
    assert list(upkeep.unsent(moment_of(state))) == []


def test_a_task_whose_instance_is_unknown_ends_without_it() -> None:
    state = state_with_instance()
    launched(state)
    del state.instances[instance_id(1)]
    told(state, task(1, "STOPPED", 3, exit_code=0))
    assert state.runs[RUN_ID].tasks["status"][0] == TaskStatus.SUCCEEDED


def test_a_task_whose_instance_has_no_arn_yet_is_not_stopped_yet() -> None:
    state = state_with_instance()
    launched(state)
    instance = state.instances[instance_id(1)]
    instance.arn, instance.status, instance.interrupted_at = "", InstanceStatus.BOOTING, NOW
    assert list(upkeep.stops(moment_of(state))) == []


def test_nothing_is_done_about_an_attempt_that_need_not_end() -> None:
    """A column made it a candidate: it is late, but its run allows that."""
    state = state_with_instance()
    launched(state)
    told(state, task(1, "RUNNING"))
    state.instances[instance_id(1)].draining_since = NOW
    state.attempts.set(0, stop_cause=StopCause.NONE)
    assert list(upkeep.stops(moment_of(state, NOW + 10))) == []


def test_what_was_set_back_waits_for_its_pause() -> None:
    state = state_with_instance(expects_result=True)
    key = launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0), events.NotCarriedOut("no", about=Subject(Act.VERIFY, RUN_ID)))
    assert list(upkeep.verifications(moment_of(state))) == []
    assert list(upkeep.verifications(moment_of(state, NOW + 60))) == [VerifyResult(RUN_ID, 0, 1)]
    state = state_with_instance()
    launch = Launch(AttemptKey(RUN_ID, 1, 1, 0), 1, state.started_by(1), instance_id(1), CELL)
    begun(state, [launch])
    told(state, events.NotCarriedOut("no", launch.key, Subject(Act.LAUNCH, RUN_ID)))
    assert list(upkeep.unsent(moment_of(state))) == []
    assert list(upkeep.unsent(moment_of(state, NOW + 60))) == [launch]
    told(state, events.LaunchInDoubt(launch.key, "no reply"))
    assert list(upkeep.resolutions(moment_of(state))) == []
    assert len(list(upkeep.resolutions(moment_of(state, NOW + 60)))) == 1
    assert key.index == 0


def test_an_intent_for_an_instance_that_is_gone_or_unknown_is_not_sent() -> None:
    state = state_with_instance()
    begun(state, [Launch(AttemptKey(RUN_ID, 0, 1, 0), 1, state.started_by(1), instance_id(1), CELL)])
    state.instances[instance_id(1)].status = InstanceStatus.GONE
    assert list(upkeep.unsent(moment_of(state))) == []
    del state.instances[instance_id(1)]
    state.losses.blind = True  # it could not be read
    assert list(upkeep.unsent(moment_of(state))) == []


def test_an_instance_that_goes_takes_its_unsent_intents_along_and_leaves_the_doubtful_ones() -> None:
    state = state_with_instance()
    for index in (0, 1):
        key = AttemptKey(RUN_ID, index, 1, 0)
        begun(state, [Launch(key, 1, state.started_by(1), instance_id(1), CELL)])
    told(state, events.LaunchInDoubt(AttemptKey(RUN_ID, 1, 1, 0), "no reply"))
    told(state, events.HostStateChanged(instance_id(1), "terminated"))
    statuses = state.runs[RUN_ID].tasks["status"][:2].tolist()
    assert statuses == [TaskStatus.PENDING, TaskStatus.STARTING]


def test_an_instance_is_remembered_while_an_open_run_names_it_or_an_attempt_lies_there() -> None:
    state = state_with_instance()
    launched(state)
    instance = state.instances[instance_id(1)]
    told(state, events.HostStateChanged(instance_id(1), "terminated", NOW))
    much_later = NOW + 2 * POLICY.forget_instance_s
    told(state, events.Observed(much_later), now=much_later)
    assert instance.id in state.instances
    without_runs(state)
    told(state, events.Observed(much_later), now=much_later)
    assert instance.id not in state.instances


def test_a_stop_whose_attempt_has_ended_leaves_no_mark() -> None:
    state = state_with_instance()
    begin(state, StopAttempt(task_arn(1), CELL, GONE_KEY, StopCause.CANCELLED, ""), NOW, POLICY)
    begin(state, StopOrphan(task_arn(2), CELL), NOW, POLICY)
    begin(state, CloseRun(RUN_ID), NOW, POLICY)
    assert not state.attempts.live().size


def test_a_run_over_its_budget_starts_nothing_and_what_was_not_sent_is_dropped() -> None:
    state = state_with_instance()
    begun(state, [Launch(AttemptKey(RUN_ID, 0, 1, 0), 1, state.started_by(1), instance_id(1), CELL)])
    begin(state, CapRun(RUN_ID, "its budget of 1 USD is used up"), NOW, POLICY)
    run = state.runs[RUN_ID]
    assert (run.halted, run.capped_at) == (True, NOW)
    assert run.tasks["status"][0] == TaskStatus.CANCELLED
    cap(state, run, "again", NOW + 1, POLICY)
    assert run.status_reason.startswith("its budget")


def test_unbooking_a_task_whose_instance_is_forgotten_changes_nothing() -> None:
    state = state_with_instance()
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0))
    state.instances.clear()
    before = RunRecord.of(state.runs[RUN_ID])
    charges.unbook(state, state.runs[RUN_ID], 0, Work.FAILED)
    assert RunRecord.of(state.runs[RUN_ID]) == before


def test_an_instance_without_a_fleet_that_never_joins_is_cordoned_and_counted_for_no_pool() -> None:
    state = state_with(host(1))
    state.pools.clear()
    pass_time(state, NOW + POLICY.register_patience_s, POLICY)
    assert state.instances[instance_id(1)].cordon == "it never joined the cluster"


def test_an_instance_that_joins_after_all_is_sound_and_its_pool_forgiven() -> None:
    state = state_with(*(host(number) for number in (1, 2)))
    told(state, submitted(), prepared())
    from tests.builders import fleet

    told(state, fleet())
    pass_time(state, NOW + POLICY.register_patience_s, POLICY)
    (pool,) = state.pools.values()
    assert pool.unregistered == 2
    told(state, container_instance(1))
    assert (state.instances[instance_id(1)].cordon, pool.unregistered) == ("", 0)


def test_repair_continues_in_the_next_tick_when_a_commit_is_full() -> None:
    state = state_with_instance(tasks=30_000)
    for index in (0, 9_000, 18_000, 27_000):
        launched(state, index=index, number=index + 1)
    for row in state.attempts.live().tolist():
        state.attempts.remove(row)  # as if their chunk had been lost
    documents.committed(state)
    state.losses.attempts = True
    few = replace(POLICY, max_dirty_documents=7)
    begin(state, MendState(), NOW, few)
    assert state.losses.attempts
    documents.committed(state)
    for _ in range(4):
        mend(state, NOW, few)
        documents.committed(state)
    assert not state.losses.attempts
    run = state.runs[RUN_ID]
    assert run.tasks.counts()[TaskStatus.PENDING] == 30_000
    assert run.tasks["attempts"][[0, 9_000]].tolist() == [2, 2]  # the first number after the lost one is left out


def test_reviving_continues_in_the_next_tick_when_a_commit_is_full() -> None:
    state = state_with_instance(tasks=30_000)
    run = state.runs[RUN_ID]
    for index in (0, 9_000, 18_000, 27_000):
        run.tasks.set(index, status=TaskStatus.FAILED)
    run.status, run.tasks.halted = RunStatus.PARTIAL, True
    documents.committed(state)
    revival.reopen(state, RetryRequest(RUN_ID, NOW), run)
    ticks = 0
    while run.revives:
        revival.revive(state, run, replace(POLICY, max_dirty_documents=4))
        documents.committed(state)
        ticks += 1
    assert ticks > 1
    assert run.tasks.counts()[TaskStatus.CANCELLED] == 30_000 - 4  # the others were never started


def test_a_row_is_free_for_the_next_attempt_and_an_instance_for_another() -> None:
    table = AttemptTable()
    rows = [table.add(1, AttemptKey(RUN_ID, index, 1, 0), 1, instance_id(1), NOW) for index in (0, 1)]
    table.remove(rows[0])
    assert table.on_instance(instance_id(1)) == [rows[1]]
    table.remove(rows[1])
    assert table.on_instance(instance_id(1)) == []


def test_a_state_that_changes_while_it_is_read_is_read_again() -> None:
    store = MemoryStore()
    versions = iter([0, 1])
    store.version = lambda: next(versions)  # type: ignore[method-assign]
    with pytest.raises(StaleState):
        load(store)


def test_a_request_that_lacks_a_member_is_unreadable() -> None:
    for body in (b'{"kind":"cancel"}', b"[]", b'{"kind":"nonsense"}', b"1"):
        with pytest.raises(ValueError, match=r"missing|unknown"):
            inbox.from_bytes(body)


def test_rules_of_ecs_are_narrowed_to_our_clusters_and_those_of_ec2_are_not() -> None:
    patterns = {kind.source: kind.pattern(["arn:cluster"]) for kind in MESSAGE_KINDS}
    assert patterns["aws.ecs"]["detail"] == {"clusterArn": ["arn:cluster"]}
    assert "detail" not in patterns["aws.ec2"]


def test_what_a_tick_touches_is_record_chunk_and_history_and_nothing_for_closed_runs() -> None:
    state = state_with_instance(tasks=20_000)
    assert touched(VerifyResult(RUN_ID, 9_000, 1), state) == {(RUN_ID, RECORD), (RUN_ID, 1), (RUN_ID, HISTORY)}
    assert touched(CloseRun(RUN_ID), state) == {(RUN_ID, RECORD)}
    assert touched(VerifyResult(NO_RUN, 0, 1), state) == set()
    assert touched(SetTarget("pool", 0, 0), state) == set()


def test_what_is_no_sweep_is_one_fact_and_what_was_set_back_is_no_progress() -> None:
    fact = events.RunClosed(RUN_ID)
    assert list(one_by_one(fact)) == [fact]
    assert is_progress(fact)
    assert is_progress(events.NotCarriedOut("the time limit was reached"))
    assert not is_progress(events.NotCarriedOut("no", about=Subject(Act.CLOSE, "x")))
    assert not is_progress(events.LaunchInDoubt(GONE_KEY, "no"))


def test_a_launch_that_turns_out_to_have_happened_is_not_missed() -> None:
    """The listing that lacks it is older than the fact that it was launched."""
    state = state_with_instance()
    key = launched(state)
    late = NOW + 2 * POLICY.ecs_memory_s
    told(state, events.LaunchMissed(key), events.LaunchDisproved(key), now=late)
    assert state.row_of(key) is not None
    assert not state.attempts["absent_since"][0]
    assert state.runs[RUN_ID].tasks["losses"][0] == 0


def test_an_instance_that_is_shown_without_sizes_keeps_those_it_has() -> None:
    state = state_with_instance()
    before = state.instances[instance_id(1)]
    total, attributes = before.total, dict(before.attributes)
    told(state, replace(container_instance(1, cpu_units=0), version=2, attributes={}))
    assert (before.total, before.attributes, before.version) == (total, attributes, 2)


def test_a_payer_without_a_share_pays_nothing() -> None:
    state = state_with_instance()
    instance = state.instances[instance_id(1)]
    instance.stopped_at = instance.launched_at
    instance.charged_s = 10_000.0
    instance.work = {1: [0.0] * 4, 2: [0.0] * 4}
    cost = state.runs[RUN_ID].cost_usd
    charges.charge_next(state, instance)
    assert (list(instance.work), state.runs[RUN_ID].cost_usd) == ([2], cost)


def test_an_instance_that_is_gone_forgets_the_intents_of_runs_that_were_set_aside() -> None:
    state, _ = orphaned(sent=False)
    told(state, events.HostStateChanged(instance_id(1), "terminated"))
    assert state.instances[instance_id(1)].status is InstanceStatus.GONE


def test_a_run_that_takes_too_long_is_halted_and_its_attempts_are_stopped() -> None:
    state = state_with_instance(timeout={"runDurationSeconds": 600})
    launched(state)
    told(state, task(1, "RUNNING"))
    late = NOW + 601
    assert list(upkeep.run_timeouts(state, NOW + 599)) == []
    (halt,) = upkeep.run_timeouts(state, late)
    assert "600 s" in halt.reason
    (stop,) = upkeep.stops(moment_of(state, late))
    assert (stop.cause, "600 s" in stop.reason) == (StopCause.CANCELLED, True)


@pytest.mark.parametrize(
    ("on_cap", "later_s", "stopped"), [("finish", 10.0, False), ("finish", 1e6, True), ("drain", 10.0, True)]
)
def test_an_attempt_of_a_run_over_its_budget_may_finish_within_reason_if_its_spec_says_so(
    on_cap: str, later_s: float, stopped: bool
) -> None:
    state = state_with_instance(capacity={"onCap": on_cap})
    launched(state)
    told(state, task(1, "RUNNING"))
    begin(state, CapRun(RUN_ID, "its budget is used up"), NOW, POLICY)
    assert bool(list(upkeep.stops(moment_of(state, NOW + later_s)))) is stopped


def test_an_attempt_over_its_own_time_is_stopped_on_the_users_account() -> None:
    state = state_with_instance(timeout={"attemptDurationSeconds": 60})
    launched(state)
    told(state, task(1, "RUNNING"))
    assert list(upkeep.stops(moment_of(state, NOW + 59))) == []
    (stop,) = upkeep.stops(moment_of(state, NOW + 61))
    assert stop.cause is StopCause.TIMED_OUT


def test_an_old_intent_is_not_sent_but_looked_for() -> None:
    state = state_with_instance()
    begun(state, [Launch(AttemptKey(RUN_ID, 0, 1, 0), 1, state.started_by(1), instance_id(1), CELL)])
    old = NOW + POLICY.intent_age_s
    assert list(upkeep.unsent(moment_of(state, old))) == []
    (resolution,) = upkeep.resolutions(moment_of(state, old))
    assert not resolution.resend


def test_an_instance_that_is_gone_is_done_with_in_the_next_tick_when_a_commit_is_full() -> None:
    state = state_with_instance()
    instance = state.instances[instance_id(1)]
    instance.stopped_at, instance.status, instance.losing = NOW, InstanceStatus.GONE, True
    lost_hosts.settle(state, instance, replace(POLICY, max_settling_documents=0))
    assert instance.losing
    lost_hosts.settle(state, instance, POLICY)
    assert not instance.losing
