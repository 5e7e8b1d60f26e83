"""Room that is taken for a queue: for which run, from which tasks, and what happens to those."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from argosy.model.actions import Action, Launch, NoteHeld, StopAttempt, Terminate, YieldInstance
from argosy.model.attempts import StopCause
from argosy.model.costs import Work
from argosy.model.ended_attempts import Outcome
from argosy.model.events import LaunchAccepted, SharingAsked
from argosy.model.inbox import SharingRequest
from argosy.model.money.reserve import to_be_displaced_usd
from argosy.model.shares.sharing import Sharing
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.scheduler.decide import decide
from argosy.spec.terms import terms_of_form
from tests.builders import (
    NOW,
    POLICY,
    begun,
    fleet,
    joined,
    moment_of,
    prepared,
    state_with,
    stored,
    submitted,
    task,
    task_arn,
    told,
)

WAIT_S = 60.0
LATER = NOW + WAIT_S
PROD, BATCH = "prod-261121-062701-aaaa", "batch-261121-062702-bbbb"
SECOND = "batch-261121-062703-cccc"


def document(**changes: Any) -> dict[str, Any]:
    queues = {"prod": {"weight": 3, "preempts": True}, "batch": {"preemptible": True}, "default": {}}
    queues = {name: each | changes.pop(name, {}) for name, each in queues.items()}
    reclaim = {"afterSeconds": WAIT_S, "by": "preempt", "perHourOfSpend": 1} | changes
    return {"version": 1, "queues": queues, "reclaim": reclaim}


def full(instances: int = 1, told_of: dict[str, Any] | None = None, tasks: int = 100, **spec: Any) -> State:
    """The queue of the batch has all places, four on each instance. Task n has run for ten seconds less than n + 1."""
    state = state_with(fleet(spot_target=instances))
    told(state, *joined(range(instances)))
    told(state, SharingAsked(SharingRequest(told_of or document(), 0, NOW)))
    if not tasks:
        return state
    told(state, submitted(BATCH, tasks, **{"queue": "batch"} | spec), prepared(BATCH))
    begun(state, decided(state, NOW, instances))
    for row in state.attempts.live().tolist():
        key = state.key_of(row)
        assert key is not None
        told(state, LaunchAccepted(key, task_arn(row)))
        told(state, task(row, started_at=NOW - 10 * (key.index + 1)))
    return state


def waits(state: State, tasks: int = 1, **spec: Any) -> State:
    """The run that may take room comes, and finds none."""
    told(state, submitted(PROD, tasks, **{"queue": "prod"} | spec), prepared(PROD, **spec))
    begun(state, decided(state, instances=len(state.instances)))
    return state


def decided(state: State, now: float = NOW, instances: int = 1, **policy: Any) -> list[Action]:
    return decide(moment_of(state, now, policy=replace(POLICY, max_instances=instances, **policy)))


def stops(actions: Iterable[Action]) -> list[StopAttempt]:
    return [each for each in actions if isinstance(each, StopAttempt)]


def taken(state: State, exit_code: int | None = 143) -> State:
    """The room is taken, and the task that had it ends."""
    actions = decided(state, LATER)
    (stop,) = stops(actions)
    begun(state, actions, LATER)
    row = state.row_of(stop.key)
    assert row is not None
    told(state, task(row, "STOPPED", 3, stopped_at=LATER, exit_code=exit_code, reason=stop.reason), now=LATER)
    return state


def test_after_a_while_the_least_work_makes_room() -> None:
    state = waits(full())
    assert not stops(decided(state, LATER - 1))
    actions = decided(state, LATER)
    (stop,) = stops(actions)
    assert (stop.key.run_id, stop.key.index) == (BATCH, 0)
    assert (stop.cause, stop.for_run) == (StopCause.PREEMPTED, PROD)
    assert stop.reason == f"argosy: stopped for run {PROD} of queue prod"
    begun(state, actions, LATER)
    assert not stops(decided(state, LATER + 1))


def test_the_room_goes_to_no_other_run() -> None:
    state = taken(waits(full()))
    told(state, submitted("zero-261121-062703-cccc", 9), prepared("zero-261121-062703-cccc"))
    (launch,) = (each for each in decided(state, LATER) if isinstance(each, Launch))
    assert launch.key.run_id == PROD
    begun(state, [launch], LATER)
    assert not state.instances[launch.instance_id].yields_to


def test_an_instance_that_is_kept_for_two_tasks_stays_kept_after_the_first() -> None:
    state = taken(waits(full(), tasks=2))
    (instance,) = state.instances.values()
    begun(state, [YieldInstance(instance.id, PROD, 2, LATER + 180)], LATER)
    (launch,) = (each for each in decided(state, LATER) if isinstance(each, Launch))
    begun(state, [launch], LATER)
    assert (instance.yields_to, instance.yields_tasks, instance.yields_until) == (
        state.runs[PROD].number, 1, LATER + 180
    )  # fmt: skip


def test_room_that_is_not_used_is_everybodys_again() -> None:
    state = taken(waits(full()))
    state.runs[PROD].tasks.set(0, not_before=LATER + 9_999)
    assert not [each for each in decided(state, LATER) if isinstance(each, Launch)]
    (launch,) = (each for each in decided(state, LATER + 181) if isinstance(each, Launch))
    assert launch.key.run_id == BATCH


def test_a_stopped_task_waits_again_with_all_its_attempts_and_the_other_run_pays() -> None:
    state = taken(waits(full()))
    batch = state.runs[BATCH]
    row = {name: int(batch.tasks[name][0]) for name in ("status", "preempted", "user_failures", "losses")}
    assert row == {"status": TaskStatus.PENDING, "preempted": 1, "user_failures": 0, "losses": 0}
    assert (batch.preemptions, batch.interruptions) == (1, 0)
    assert state.ended[BATCH][-1].outcome is Outcome.PREEMPTED
    (instance,) = state.instances.values()
    assert instance.work[state.runs[PROD].number][Work.DISPLACED] == pytest.approx((WAIT_S + 10) / 4)
    assert BATCH not in instance.work
    assert instance.strikes == 0


def test_a_task_that_succeeds_despite_the_stop_has_succeeded() -> None:
    state = taken(waits(full()), exit_code=0)
    assert state.runs[BATCH].tasks["status"][0] == TaskStatus.SUCCEEDED
    assert state.runs[BATCH].preemptions == 0


def test_lost_work_that_no_run_pays_for_is_repeated_at_its_own_cost() -> None:
    state = waits(full())
    actions = decided(state, LATER)
    begun(state, actions, LATER)
    row = state.row_of(stops(actions)[0].key)
    assert row is not None
    state.attempts.set(row, for_run=99)  # which is over, or set aside
    told(state, task(row, "STOPPED", 3, stopped_at=LATER, exit_code=143), now=LATER)
    (instance,) = state.instances.values()
    assert instance.work[state.runs[BATCH].number][Work.REDONE] > 0


def test_nothing_is_stopped_where_the_document_does_not_say_so() -> None:
    for told_of in (
        document(batch={"preemptible": False}),
        {"version": 1, "queues": {"prod": {"weight": 3}, "batch": {"preemptible": True}}},
        document(by="drain"),
        document(perTask=0),
        document(perHourOfSpend=0),
    ):
        state = waits(full(told_of=told_of))
        assert not stops(decided(state, NOW + 9_000)), told_of


def test_a_run_may_say_whether_its_tasks_may_be_stopped() -> None:
    left_to_runs = document(batch={"preemptible": None})
    assert not stops(decided(waits(full(told_of=left_to_runs)), LATER))
    assert stops(decided(waits(full(told_of=left_to_runs, preemptible=True)), LATER))
    assert not stops(decided(waits(full(preemptible=False)), LATER))
    assert not stops(decided(waits(full(told_of=document(batch={"preemptible": False}), preemptible=True)), LATER))


def test_services_are_never_stopped_for_others() -> None:
    state = full()
    state.runs[BATCH].terms = replace(
        state.runs[BATCH].terms, service=terms_of_form({"version": 1, "name": "a", "service": {"desired": 1}}).service
    )
    assert not stops(decided(waits(state), LATER))


def test_no_more_is_taken_than_weights_allow() -> None:
    state = waits(full(), tasks=9)
    found = []
    for tick in range(9):
        at = LATER + 200 * tick
        actions = decided(state, at)
        begun(state, actions, at)
        for stop in stops(actions):
            row = state.row_of(stop.key)
            if row is not None and stop.for_run:
                found.append(stop)
                told(state, task(row, "STOPPED", 9, stopped_at=at, exit_code=143), now=at)
        actions = decided(state, at + 1)
        begun(state, actions, at + 1)
        for launch in (each for each in actions if isinstance(each, Launch)):
            told(state, LaunchAccepted(launch.key, task_arn(1_000 + 10 * tick + launch.key.index)), now=at + 1)
    assert len(found) == 3
    assert sum(state.attempts["run"][state.attempts.live()] == state.runs[PROD].number) == 3


def test_a_run_with_a_budget_must_be_able_to_pay_for_the_lost_work() -> None:
    def with_budget(usd: float) -> State:
        return waits(full(), capacity={"budgetUsd": usd})

    assert stops(decided(with_budget(1.0), LATER))
    assert not stops(decided(with_budget(0.0001), LATER))


def test_no_room_is_taken_that_the_cap_of_the_queue_would_leave_empty() -> None:
    def with_cap(vcpus: int) -> State:
        return waits(full(told_of=document(prod={"cap": {"vcpus": vcpus}})), tasks=2)

    assert not stops(decided(with_cap(0), LATER))
    state = with_cap(1)
    actions = decided(state, LATER)
    assert stops(actions)
    begun(state, actions, LATER)
    assert not stops(decided(state, LATER + 1))


def test_a_task_is_not_stopped_again_and_again() -> None:
    state = waits(full())
    state.runs[BATCH].tasks.set_many(np.arange(4), preempted=3)
    assert not stops(decided(state, LATER))


def test_what_is_known_of_waiting_runs_and_of_kept_room_is_stored() -> None:
    state = waits(full())
    assert state.sharing.held_since == {PROD: NOW}
    begun(state, decided(state, LATER), LATER)
    found = stored(state, {})
    assert found.sharing == state.sharing
    assert found.sharing.displaced[0][1] > 0
    (before,), (after,) = state.instances.values(), found.instances.values()
    assert (after.yields_to, after.yields_tasks, after.yields_until) == (before.yields_to, 1, LATER + 180)
    state.runs[PROD].tasks.halted = True
    begun(state, decided(state, LATER), LATER)
    assert not state.sharing.held_since


def test_a_document_of_before_is_read_as_it_was_stored() -> None:
    body = zlib.compress(json.dumps([[1, NOW, {"version": 1, "queues": {"a": {}}}]]).encode())
    found = Sharing.from_bytes(body)
    assert (found.revision, found.reclaim, dict(found.held_since)) == (1, None, {})
    assert Sharing.from_bytes(found.to_bytes()) == found


def test_an_instance_that_was_stored_with_fewer_kinds_of_work_is_read() -> None:
    state = waits(full())
    (instance,) = state.instances.values()
    instance.work = {2: [1.0, 2.0, 3.0]}
    state.changed_instances.add(instance.id)
    (read,) = stored(state, {}).instances.values()
    assert read.work == {2: [1.0, 2.0, 3.0, 0.0]}
    instance.work = {}


def test_an_instance_of_the_wrong_type_is_emptied_and_given_back() -> None:
    state = full(4, document(by="drain"))
    told(state, fleet("g4dn.xlarge"))
    waits(state, 4, resources={"vcpus": 1, "gpus": 1})
    actions = decided(state, LATER, 4)
    (kept,) = (each for each in actions if isinstance(each, YieldInstance))
    assert (kept.run_id, kept.tasks, stops(actions)) == (PROD, 1, [])
    begun(state, actions, LATER)
    for row in state.attempts.on_instance(kept.instance_id):
        told(state, task(row, "STOPPED", 3, stopped_at=LATER, exit_code=0), now=LATER)
    actions = decided(state, LATER + 1, 4)
    assert not [each for each in actions if isinstance(each, Launch)]
    assert [each.instance_ids for each in actions if isinstance(each, Terminate)] == [(kept.instance_id,)]


def test_no_instance_is_emptied_for_a_queue_that_would_then_be_above_the_other() -> None:
    state = waits(full(told_of=document(by="drain", prod={"weight": 1}, batch={"weight": 3})))
    assert not [each for each in decided(state, LATER) if isinstance(each, YieldInstance)]


def test_a_run_that_no_longer_waits_is_forgotten() -> None:
    state = waits(full())
    told(state, SharingAsked(SharingRequest({"version": 1, "queues": {"prod": {}}}, 1, NOW)))
    assert [each for each in decided(state, LATER) if isinstance(each, NoteHeld)] == [NoteHeld(())]


def saving(every_s: int) -> State:
    """Those of a run whose programs save their work have all places."""
    return waits(full(checkpoint={"everySeconds": every_s}))


def test_a_task_that_has_just_saved_its_work_makes_room() -> None:
    """They have run for 70, 80, 90 and 100 s: 30, 0, 10 and 20 s are lost of each."""
    state = saving(40)
    actions = decided(state, LATER)
    (stop,) = stops(actions)
    assert stop.key.index == 1
    (kept,) = (each for each in actions if isinstance(each, YieldInstance))
    price = state.instances[kept.instance_id].price_usd_per_hour
    assert kept.lost_usd == pytest.approx(POLICY.start_s / 4 * price / 3_600), "its next start alone"


def test_what_is_saved_was_of_use_and_only_what_is_lost_is_displaced() -> None:
    state = taken(saving(80))  # 70 s, 0 s, 10 s and 20 s are lost: of the second one, and it has taken 80 s
    (instance,) = state.instances.values()
    assert instance.work[state.runs[BATCH].number] == pytest.approx([80 / 4, 0, 0, 0])
    assert state.runs[PROD].number not in instance.work
    state = taken(saving(75))  # 70, 5, 15 and 25 s
    (instance,) = state.instances.values()
    assert instance.work[state.runs[BATCH].number] == pytest.approx([75 / 4, 0, 0, 0])
    assert instance.work[state.runs[PROD].number][Work.DISPLACED] == pytest.approx(5 / 4)


def test_only_what_will_be_lost_is_reserved_in_a_budget() -> None:
    state = saving(75)
    begun(state, decided(state, LATER), LATER)
    (instance,) = state.instances.values()
    usd = to_be_displaced_usd(state, state.runs[PROD], LATER)
    assert usd == pytest.approx(5 / 4 * instance.price_usd_per_hour / 3_600)


def test_with_little_left_to_lose_in_this_hour_room_is_taken_from_tasks_that_save_their_work() -> None:
    little = document(perHourOfSpend=0.002)
    assert not stops(decided(waits(full(told_of=little)), LATER)), "70 s of a fourth of the instance"
    assert stops(decided(waits(full(told_of=little, checkpoint={"everySeconds": 40})), LATER))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_of_random_worlds_the_least_work_is_lost_by_a_plain_count(block: int) -> None:
    """One task of each run, some of which save their work: seconds since the last save, counted by subtraction."""
    for seed in range(25 * block, 25 * (block + 1)):
        random = Random(seed)
        state, ran, every = full(tasks=0), [random.randint(1, 4_000) for _ in range(4)], list[int]()
        for number, seconds in enumerate(ran):
            every.append(random.choice((0, 60, 600, random.randint(1, 5_000))))
            says = {"checkpoint": {"everySeconds": every[-1]}} if every[-1] else {}
            run_id = f"batch{number}-261121-062702-bbbb"
            told(state, submitted(run_id, 1, queue="batch", **says), prepared(run_id))
            begun(state, decided(state))
            (row,) = state.attempts.here_of_run(state.runs[run_id].number).tolist()
            key = state.key_of(row)
            assert key is not None
            told(state, LaunchAccepted(key, task_arn(row)), task(row, started_at=LATER - seconds))
        (stop,) = stops(decided(waits(state), LATER))
        lost = [left_over(seconds, period) for seconds, period in zip(ran, every, strict=True)]
        stopped = int(stop.key.run_id.removeprefix("batch")[0])
        assert lost[stopped] == min(lost), (seed, ran, every)


def left_over(seconds: int, period: int) -> int:
    while period and seconds >= period:
        seconds -= period
    return seconds


def test_a_queue_that_uses_up_launches_takes_no_room() -> None:
    """Two tasks of ten seconds need a launch every five seconds, and there is one every ten: sharing out places would
    give it back."""
    state, short = full(2, document(prod={"weight": 1}), tasks=6), {"array": {"size": 100, "expectedSeconds": 10}}
    told(state, submitted(PROD, 100, queue="prod", **short), prepared(PROD, **short))
    begun(state, decided(state, NOW, 2, launch_rate=0.1))
    for row in state.attempts.live().tolist():
        key = state.key_of(row)
        if key is not None and key.run_id == PROD:
            told(state, LaunchAccepted(key, task_arn(row)), task(row, started_at=NOW))
    told(state, submitted(SECOND, 100, queue="batch"), prepared(SECOND))
    begun(state, decided(state, NOW + 1, 2, launch_rate=0.1), NOW + 1)
    assert stops(decided(state, LATER + 1, 2, launch_rate=0.1)) == []
    assert stops(decided(state, LATER + 1, 2)) != []  # where launches are no matter it is below
