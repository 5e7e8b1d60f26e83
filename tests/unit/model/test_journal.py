"""Lines of the journal: the changes of each commit, and their stored form."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from argosy.lifecycle.accounts import end_attempt
from argosy.lifecycle.suspension import bare_record, suspend
from argosy.model.actions import Launch, ReviveTasks, SetTarget, Steer, StopAttempt, Terminate
from argosy.model.attempts import AttemptKey, StopCause
from argosy.model.damage import Damage
from argosy.model.events import (
    HostStateChanged,
    InterruptionWarned,
    LaunchInDoubt,
    LaunchRefused,
    RebalanceAdvised,
    ResultSeen,
    RunCancelled,
    RunClosed,
    RunResumed,
    RunRetried,
    RunUpdated,
)
from argosy.model.inbox import CancelRequest, RetryRequest, UpdateRequest
from argosy.model.journal import commit, items
from argosy.model.journal.items import ALL, CHANGES, KEPT_S, Place
from argosy.model.journal.lines import LineType
from argosy.model.journal.tasks import MOST_RANGES, indexes_of
from argosy.model.pools import OrderNote
from argosy.model.purchases import PurchaseChoice, PurchaseStance
from argosy.model.run_record import RunRecord
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.tasks import TaskStatus
from tests.builders import (
    CELL,
    NOW,
    RUN_ID,
    begun,
    host,
    instance_id,
    launched,
    read_back,
    state_with,
    state_with_instance,
    submitted,
    task,
    task_arn,
    the_run,
    told,
)

POOL = "us-east-1/c5.xlarge/us-east-1a"


def committed(state: State) -> list[dict[str, Any]]:
    """The lines of the next commit, which is made; as a reader gets them."""
    lines = commit.lines_of_commit(state)
    documents.changed(state)
    documents.committed(state)
    return list(json.loads(json.dumps(lines)))


def types(lines: list[dict[str, Any]]) -> list[str]:
    return [line["type"] for line in lines]


def quiet(tasks: int = 10, **overrides: Any) -> State:
    """A prepared run and an instance, all of it committed."""
    state = state_with_instance(tasks, **overrides)
    committed(state)
    return state


def test_the_first_commit_says_all_that_there_is() -> None:
    lines = committed(state_with_instance(3))
    assert types(lines) == [
        "run.submitted", "run.prepared", "instance.booting", "instance.registered", "pool.found",
    ]  # fmt: skip
    assert lines[0]["runId"] == RUN_ID
    assert lines[0]["taskCount"] == 3
    assert lines[2]["usdPerHour"] > 0
    assert lines[4] == {"type": "pool.found", "pool": POOL, "spot": 1, "onDemand": 0}


def test_a_commit_that_changes_nothing_says_nothing() -> None:
    state = quiet()
    assert committed(state) == []
    state.changed_runs.add(RUN_ID)
    state.changed_instances.add(instance_id(1))
    state.changed_pools = True
    state.attempts.touch(0)
    assert committed(state) == []


def test_a_tasks_way_from_its_placement_to_its_result() -> None:
    state = quiet(expects_result=True)
    key = AttemptKey(RUN_ID, 4, 1, 0)
    begun(state, [Launch(key, 1, state.started_by(1), instance_id(1), CELL)])
    where = {"runId": RUN_ID, "tasks": [[4, 4]], "attempt": 1, "instance": instance_id(1)}
    assert committed(state) == [{"type": "task.placed", **where}]
    launched(state, index=4)
    assert committed(state) == [{"type": "task.launched", **where}]
    told(state, task(1))
    assert committed(state)[1:] == [{"type": "task.running", **where}]
    begun(state, [StopAttempt("arn", CELL, key, StopCause.TIMED_OUT, "slow")])
    assert committed(state) == [{"type": "task.stopping", **where, "cause": "timed_out"}]
    told(state, task(1, "STOPPED", version=3, exit_code=0))
    assert committed(state) == [{"type": "task.ended", **where, "status": "VERIFYING", "exitCode": 0}]
    told(state, ResultSeen(RUN_ID, 4, attempt=1, bytes=7))
    (line,) = committed(state)
    assert line == {"type": "task.verified", "runId": RUN_ID, "tasks": [[4, 4]], "attempt": 1, "status": "SUCCEEDED"}


def test_a_task_that_is_stopped_for_another_run_names_that_run_and_its_queue() -> None:
    other = "prod-261121-062733-aaaa"
    state = quiet()
    told(state, submitted(other, queue="prod"))
    key = launched(state)
    committed(state)
    begun(state, [StopAttempt(task_arn(1), CELL, key, StopCause.PREEMPTED, "room", for_run=other)])
    (line,) = committed(state)
    assert (line["type"], line["cause"]) == ("task.stopping", "preempted")
    assert (line["runId"], line["forRun"], line["forQueue"]) == (RUN_ID, other, "prod")


def test_a_failure_has_its_code_its_reason_and_the_charged_party() -> None:
    state = quiet(retryStrategy={"attempts": 1})
    launched(state)
    committed(state)
    told(state, task(1, "STOPPED", exit_code=3, reason="\x1b[2J broken"))
    (line,) = [each for each in committed(state) if each["type"] == "task.ended"]
    assert line["exitCode"] == 3
    assert line["reason"] == "\x1b[2J broken"
    assert (line["status"], line["chargedTo"]) == ("FAILED", "user")


def test_a_loss_is_charged_to_infrastructure_and_may_be_placed_again_in_the_same_commit() -> None:
    state = quiet()
    launched(state)
    committed(state)
    told(state, HostStateChanged(instance_id(1), "terminated"), host(2))
    key = AttemptKey(RUN_ID, 0, 2, int(the_run(state).tasks["launch"][0]))
    begun(state, [Launch(key, 9, state.started_by(9), instance_id(2), CELL)])
    lines = committed(state)
    assert [(each["type"], each["attempt"]) for each in lines if "attempt" in each] == [
        ("task.ended", 1), ("task.placed", 2),
    ]  # fmt: skip
    ended = next(each for each in lines if each["type"] == "task.ended")
    assert (ended["status"], ended["chargedTo"]) == ("PENDING", "infrastructure")
    assert "exitCode" not in ended


def test_a_refused_launch_is_no_attempt() -> None:
    state = quiet()
    key = AttemptKey(RUN_ID, 0, 1, 0)
    begun(state, [Launch(key, 1, state.started_by(1), instance_id(1), CELL)])
    committed(state)
    told(state, LaunchInDoubt(key, "no reply"))
    assert types(committed(state)) == ["run.waiting", "task.inDoubt"]
    told(state, LaunchRefused(key, "RESOURCE:MEMORY"))
    lines = committed(state)
    assert types(lines) == ["instance.paused", "task.refused"]
    assert lines[1]["reason"] == "RESOURCE:MEMORY"
    assert lines[1]["status"] == "PENDING"
    assert "chargedTo" not in lines[1]


def test_many_equal_changes_are_one_line_with_ranges() -> None:
    state = quiet(tasks=20_000)
    run = the_run(state)
    rows = np.array([index for index in range(20_000) if index != 7], dtype=np.int64)
    run.tasks.set_many(rows, status=TaskStatus.CANCELLED)
    state.changed_runs.add(RUN_ID)
    (line,) = committed(state)
    assert line == {"type": "task.settled", "runId": RUN_ID, "tasks": [[0, 6], [8, 19_999]], "status": "CANCELLED"}


def test_a_line_never_names_more_ranges_than_fit_into_an_item() -> None:
    state = quiet(tasks=20_000)
    the_run(state).tasks.set_many(np.arange(0, 20_000, 2), status=TaskStatus.CANCELLED)
    lines = committed(state)
    assert [len(each["tasks"]) for each in lines] == [MOST_RANGES] * 5
    named = [index for each in lines for index in indexes_of(each["tasks"])]
    assert named == list(range(0, 20_000, 2))


def test_a_runs_way_to_its_end() -> None:
    state = quiet(tasks=1)
    run = the_run(state)
    run.waiting = "8 tasks wait"
    state.changed_runs.add(RUN_ID)
    assert types(committed(state)) == ["run.waiting"]
    run.waiting = "7 tasks wait"  # no news: only a figure differs
    state.changed_runs.add(RUN_ID)
    assert committed(state) == []
    begun(state, [Steer(RUN_ID, PurchaseChoice(PurchaseStance.ON_DEMAND, NOW, "spot is short"))])
    steered = committed(state)
    assert [(each["type"], each["buys"], each["reason"]) for each in steered] == [
        ("run.steered", "on-demand", "spot is short")
    ]
    told(state, RunCancelled(CancelRequest(RUN_ID, NOW, "enough")))
    halted = committed(state)
    assert types(halted) == ["run.halted", "run.waiting"]
    assert "reason" not in halted[1], "nothing of it waits any more"
    assert (halted[0]["reason"], halted[0]["cancelled"]) == ("cancelled: enough", True)
    told(state, RunClosed(RUN_ID))
    (closed,) = committed(state)
    assert (closed["type"], closed["status"]) == ("run.closed", "CANCELLED")


def test_a_change_to_a_run_has_a_line_with_only_the_new_values() -> None:
    state = quiet(tasks=2)
    told(state, RunUpdated(UpdateRequest(RUN_ID, NOW, {"priority": 5, "maxInstances": 2}, "it is urgent")))
    (changed,) = committed(state)
    assert (changed["type"], changed["changes"]) == ("run.updated", {"priority": 5, "maxInstances": 2})
    assert changed["reason"] == "it is urgent"
    told(state, RunUpdated(UpdateRequest(RUN_ID, NOW, {"priority": 5, "maxInstances": None})))
    (changed,) = committed(state)
    assert (changed["changes"], changed.get("reason")) == ({"maxInstances": None}, None)


def test_what_happens_to_instances() -> None:
    state = quiet()
    name = instance_id(1)
    told(state, RebalanceAdvised(name), InterruptionWarned(name))
    assert types(committed(state)) == ["instance.advised", "instance.warned"]
    state.instances[name].cordon = "broken"
    state.instances[name].agent_connected = False
    state.changed_instances.add(name)
    assert types(committed(state)) == ["instance.disconnected", "instance.cordoned"]
    begun(state, [Terminate(CELL, (name,))])
    assert types(committed(state)) == ["instance.releasing"]
    told(state, HostStateChanged(name, "terminated"))
    assert types(committed(state)) == ["instance.gone"]
    del state.instances[name]
    state.changed_instances.add(name)
    assert committed(state) == [{"type": "instance.forgotten", "instance": name}]


def test_an_instance_that_is_not_ours_is_no_business_of_the_journal() -> None:
    state = quiet()
    state.instances["i-strange"] = replace(state.instances[instance_id(1)], id="i-strange", owned=False)
    state.changed_instances.add("i-strange")
    assert committed(state) == []


def test_what_happens_to_pools_and_orders() -> None:
    state = quiet()
    begun(state, [SetTarget(POOL, 3, 0)])
    state.last_order = OrderNote(NOW, 2, 0.4, 0.3, 0.1, "greedy")
    lines = committed(state)
    assert types(lines) == ["pool.target", "order"]
    assert lines[0]["spot"] == 3
    assert lines[1]["instances"] == 2
    pool = state.pools[POOL]
    pool.short_until, pool.short_reason, pool.closed = NOW + 60, "no capacity", "destroyed"
    state.changed_pools = True
    assert types(committed(state)) == ["pool.short", "pool.closed"]
    del state.pools[POOL]
    state.changed_pools = True
    assert types(committed(state)) == ["pool.forgotten"]


def test_a_suspended_run_and_one_that_was_set_aside_say_why() -> None:
    state = quiet()
    suspend(state, bare_record(the_run(state)), "ValueError: no", NOW)
    (line,) = committed(state)
    assert line["type"] == "run.suspended"
    assert "ValueError: no" in line["reason"]


def test_damage_comes_first_because_a_reader_restarts_at_it() -> None:
    state = state_with(submitted())
    state.losses.found.append(Damage("ATTEMPTS#0001", "wrong checksum"))
    lines = committed(state)
    assert types(lines) == ["state.damaged", "run.submitted"]
    assert "ATTEMPTS#0001" in lines[0]["reason"]


def test_a_request_that_is_set_aside_has_a_line() -> None:
    (line,) = commit.lines_of_commit(State(), ["0001#x"])
    assert line == {"type": "request.refused", "request": "0001#x"}


def test_what_was_committed_is_known_after_a_load() -> None:
    state = state_with_instance()
    launched(state)
    items, _ = commit.documents_of_commit(state, NOW)
    documents.committed(state)
    assert commit.lines_of_commit(read_back(state.version, items)) == []


def test_every_item_names_the_one_before_it_and_expires_after_three_days() -> None:
    state = state_with(submitted())
    puts, expires_at = commit.documents_of_commit(state, NOW)
    assert expires_at == {(CHANGES, "000000000001"): NOW + KEPT_S}
    documents.committed(state)
    commit.documents_of_commit(state, NOW)
    documents.committed(state)  # a commit without lines
    the_run(state).tasks.set(0, status=TaskStatus.CANCELLED)
    later, _ = commit.documents_of_commit(state, NOW + 5)
    first = items.item_from("000000000001", puts[CHANGES, "000000000001"])
    second = items.item_from("000000000003", later[CHANGES, "000000000003"])
    assert (first.previous, first.at, second.previous, second.at) == (0, NOW, 1, NOW + 5)


def test_a_state_of_a_version_without_a_journal_has_none_before_its_next_commit() -> None:
    state = state_with(submitted())
    items, _ = commit.documents_of_commit(state, NOW)
    root = documents.decode(items[documents.STATE, documents.ROOT])
    del root["lines_at"]
    items[documents.STATE, documents.ROOT] = documents.encode(root)
    assert read_back(41, items).lines_at == 41


def test_lines_of_a_large_commit_lie_in_several_items_that_are_numbered_on() -> None:
    lines = [{"type": "task.ended", "reason": np.random.default_rng(n).bytes(300).hex()} for n in range(1200)]
    found = items.items(7, NOW, 6, lines)
    assert len(found) > 1
    assert all(len(body) <= items.MOST_BYTES for body in found.values())
    read = [items.item_from(key, body) for (_, key), body in sorted(found.items())]
    assert [line for item in read for line in item.lines] == lines
    numbers = [item.first for item in read]
    assert numbers == [1 + sum(len(item.lines) for item in read[:part]) for part in range(len(read))]
    assert sorted(key for _, key in found) < [items.after_version(7)] < [items.key_of(8)]


@pytest.mark.parametrize(
    ("text", "place"),
    [("0", Place(0, ALL)), ("12", Place(12, ALL)), ("12.3", Place(12, 3)), ("12.", None), ("-1", None), ("", None),
     ("1.2.3", None), ("\u0661", None), ("9" * 13, None), ("1\n", None)],
)  # fmt: skip
def test_a_place_is_a_version_or_a_line_of_it(text: str, place: Place | None) -> None:
    assert Place.from_text(text) == place
    assert place is None or place.to_text() == text


def test_types_are_named_after_their_subject() -> None:
    from argosy.model.journal.lines import SUBJECTS

    assert {kind.partition(".")[0] for kind in LineType} == set(SUBJECTS)


def test_a_run_that_is_tried_again_is_halted_until_its_tasks_are_back() -> None:
    state = quiet(tasks=2)
    told(state, RunCancelled(CancelRequest(RUN_ID, NOW, "")))
    committed(state)
    told(state, RunRetried(RetryRequest(RUN_ID, NOW, cancelled=True)))
    assert types(committed(state)) == ["run.reopened"]
    begun(state, [ReviveTasks(RUN_ID)])
    assert types(committed(state)) == ["run.revived"]


def test_the_first_task_that_runs_makes_the_run_run() -> None:
    state = quiet()
    launched(state)
    committed(state)
    told(state, task(1))
    running, _ = committed(state)
    assert (running["type"], running["status"]) == ("run.running", "RUNNING")


def test_a_suspended_run_loses_attempts_and_comes_back_without_them() -> None:
    state = quiet()
    launched(state)
    committed(state)
    record = the_run(state)
    suspend(state, RunRecord.of(record), "ValueError: no", NOW)
    committed(state)
    told(state, HostStateChanged(instance_id(1), "terminated"))
    dropped = [each for each in committed(state) if each["type"].startswith("task")]
    assert dropped == [
        {"type": "task.dropped", "runId": RUN_ID, "tasks": [[0, 0]], "attempt": 1, "instance": instance_id(1)}
    ]
    found = state.suspended[RUN_ID].stored_record().to_run(record.spec, record.submitted_terms, record.tasks)
    told(state, RunResumed(RUN_ID, found))
    assert types(committed(state)) == ["run.resumed", "run.waiting"]


def test_a_run_that_is_closed_while_it_is_suspended_says_so() -> None:
    state = quiet()
    suspend(state, RunRecord.of(the_run(state)), "ValueError: no", NOW)
    committed(state)
    told(state, RunCancelled(CancelRequest(RUN_ID, NOW, "")))
    (closed,) = committed(state)
    assert (closed["type"], closed["status"]) == ("run.closed", "CANCELLED")


def test_an_attempt_of_an_unknown_run_has_a_line_with_the_runs_number() -> None:
    state = quiet()
    launched(state)
    committed(state)
    number = the_run(state).number
    state.runs.clear()
    end_attempt(state, 0, NOW)
    (line,) = committed(state)
    assert (line["type"], line["runNumber"]) == ("task.dropped", number)
    assert "runId" not in line
