"""RetryRun at the api: the stored request, the reply, the refusals, and the view of a run that waits for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from argosy.api.reading import retry_pointer
from argosy.api.views import iso
from argosy.engine.loading import load_run
from argosy.lifecycle.apply import apply
from argosy.lifecycle.suspension import suspend
from argosy.model import inbox
from argosy.model.costs import Costs
from argosy.model.events import RunRetried
from argosy.model.inbox import RetryRequest
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run, RunStatus
from argosy.model.stored import documents
from argosy.model.tasks import TaskStatus
from argosy.ports import AlreadyExists, Key
from tests.builders import NOW, POLICY
from tests.fakes.api import Desk, error_of

JOBS = "s3://own/argosy/programs/jobs/"
JOB = f"{JOBS}2b.json"


def ended(
    desk: Desk, status: RunStatus = RunStatus.PARTIAL, fields: Mapping[str, Any] | None = None, **counts: int
) -> str:
    """A run of ten tasks that is closed; `counts` by status, the others succeeded. fields: of its spec."""
    run_id = str(desk.submit(**(fields or {}))["runId"])
    desk.fold_in()
    run = desk.state.runs[run_id]
    index = 0
    for name, count in {**counts, "SUCCEEDED": 10 - sum(counts.values())}.items():
        for _ in range(count):
            run.tasks.set(index, status=TaskStatus[name], attempts=1, user_failures=1)
            index += 1
    run.status, run.stopped_at, run.status_reason = status, NOW + 60, "1 task failed"
    desk.state.changed_runs.add(run_id)
    desk.commit()
    desk.time += 100
    return run_id


def waiting(desk: Desk) -> list[inbox.Request]:
    return [inbox.from_bytes(body) for body in desk.store.read_partition(inbox.INBOX).values()]


def take_in(desk: Desk) -> None:
    """The controller's next tick, as far as it concerns the retries in the inbox."""
    requests = desk.store.read_partition(inbox.INBOX)
    for request in map(inbox.from_bytes, requests.values()):
        assert isinstance(request, RetryRequest)
        stored = None if request.run_id in desk.state.runs else load_run(desk.store, request.run_id)
        apply(desk.state, RunRetried(request, stored), desk.time, POLICY)
    desk.commit(*((inbox.INBOX, key) for key in requests))


def test_a_retry_is_left_for_the_controller_which_is_woken(desk: Desk) -> None:
    run_id = ended(desk, FAILED=2, CANCELLED=3)
    calls = desk.wake.calls
    body = desk.body("RetryRun", runId=run_id)
    assert waiting(desk) == [RetryRequest(run_id, desk.time, failed=True, cancelled=False)]
    assert (body["created"], body["tasksToRetry"], desk.wake.calls) == (True, 2, calls + 1)
    assert body["retries"] == 0


def out_of_money(desk: Desk, spent: float = 4.8, budget: float = 5.0) -> str:
    """A run that was stopped by its budget."""
    run_id = ended(desk, FAILED=2, CANCELLED=3)
    run = load_run(desk.store, run_id)
    assert run is not None
    run.change({"budgetUsd": budget})
    run.cost_usd, run.costs, run.capped_at = spent, {"a pool": Costs(useful=spent)}, NOW + 50
    run.ended, run.ended_seconds = 5, 5 * 600.0
    desk.state.runs[run_id] = run
    desk.state.changed_runs.add(run_id)
    desk.commit()
    return run_id


def test_a_retry_whose_budget_pays_for_no_attempt_is_refused_with_what_to_type(desk: Desk) -> None:
    run_id = out_of_money(desk, spent=5.0)
    for asked, said in (({}, "5.00"), ({"budgetUsd": 4}, "4.00"), ({"budgetUsd": 5.5}, "5.50")):
        error = error_of(desk.ask("RetryRun", runId=run_id, cancelled=True, **asked))
        assert error["code"] == "ConflictException"
        assert f"{run_id} has spent $5.00 of a budget of ${said}, and an attempt costs about $" in error["message"]
        assert error["message"].endswith(f"argosy retry {run_id} --failed --cancelled --budget 10")
    assert not waiting(desk)


def test_a_retry_with_a_budget_that_is_not_used_up_is_granted(desk: Desk) -> None:
    run_id = out_of_money(desk, spent=3.0)
    assert desk.body("RetryRun", runId=run_id)["created"] is True


def test_without_known_prices_a_used_up_budget_is_still_refused(desk: Desk) -> None:
    run_id = out_of_money(desk, spent=5.0)
    desk.api.fleets = ()
    error = error_of(desk.ask("RetryRun", runId=run_id))
    assert "has spent $5.00 of a budget of $5.00: it would end again" in error["message"]


def test_a_retry_with_more_money_is_left_for_the_controller_and_raises_the_run_s_budget(desk: Desk) -> None:
    run_id = out_of_money(desk)
    body = desk.body("RetryRun", runId=run_id, cancelled=True, budgetUsd=9.0, clientToken="t")
    assert body["created"] is True
    (request,) = waiting(desk)
    assert request == RetryRequest(run_id, desk.time, failed=True, cancelled=True, budget_usd=9.0)
    again = error_of(desk.ask("RetryRun", runId=run_id, cancelled=True, budgetUsd=3.0, clientToken="t"))
    assert "clientToken" in again["message"]
    assert desk.body("RetryRun", runId=run_id, cancelled=True, budgetUsd=9.0, clientToken="t")["created"] is False
    apply(desk.state, RunRetried(request, load_run(desk.store, run_id)), desk.time, POLICY)
    desk.commit()
    stored = load_run(desk.store, run_id, ended=False)
    assert stored is not None
    assert stored.terms.budget_usd == 9.0
    assert desk.body("DescribeRun", runId=run_id)["budget"]["budgetUsd"] == 9.0


def test_a_budget_must_be_money(desk: Desk) -> None:
    run_id = out_of_money(desk)
    fields = error_of(desk.ask("RetryRun", runId=run_id, budgetUsd=0))["fieldList"]
    assert [each["path"] for each in fields] == ["budgetUsd"]


def test_until_it_is_folded_in_the_run_does_not_count_as_ended(desk: Desk) -> None:
    run_id = ended(desk, FAILED=2)
    desk.ask("RetryRun", runId=run_id)
    view = desk.body("DescribeRun", runId=run_id)
    assert (view["status"], view["statusReason"], view["stoppedAt"]) == ("SUBMITTED", None, None)
    assert [run["status"] for run in desk.body("ListRuns")["runs"]] == ["SUBMITTED"]


def test_a_retry_that_is_taken_in_between_two_reads_is_seen(desk: Desk) -> None:
    run_id = ended(desk, FAILED=2)
    desk.ask("RetryRun", runId=run_id)
    read = desk.store.read_many

    def meanwhile(keys: Iterable[Key]) -> dict[Key, bytes]:
        desk.store.read_many = read  # type: ignore[method-assign]
        take_in(desk)
        return read(keys)

    desk.store.read_many = meanwhile  # type: ignore[method-assign]
    assert desk.body("DescribeRun", runId=run_id)["status"] == "SUBMITTED"


def test_the_same_token_retries_once_and_another_wish_under_it_is_a_conflict(desk: Desk) -> None:
    run_id = ended(desk, FAILED=2, CANCELLED=1)
    first = desk.body("RetryRun", runId=run_id, clientToken="t")
    again = desk.body("RetryRun", runId=run_id, clientToken="t")
    assert (first["created"], again["created"], again["tasksToRetry"]) == (True, False, 0)
    assert len(waiting(desk)) == 1
    other = error_of(desk.ask("RetryRun", runId=run_id, clientToken="t", cancelled=True))
    assert other["code"] == "ConflictException"
    assert "clientToken" in other["message"]


def test_the_request_id_is_the_default_token(desk: Desk) -> None:
    run_id = ended(desk, FAILED=2)
    assert desk.ask("RetryRun", "r-1", runId=run_id)["body"]["created"] is True
    assert desk.ask("RetryRun", "r-1", runId=run_id)["body"]["created"] is False


def test_the_same_request_twice_at_once_is_stored_once(desk: Desk) -> None:
    run_id = ended(desk, FAILED=2)
    create = desk.store.create

    def late(*args: Any, **rest: Any) -> None:
        create(*args, **rest)
        raise AlreadyExists("a moment ago")

    desk.store.create = late  # type: ignore[method-assign]
    assert desk.body("RetryRun", runId=run_id)["created"] is False
    assert len(waiting(desk)) == 1


def test_a_token_of_a_retry_is_none_of_a_submit(desk: Desk) -> None:
    run_id = ended(desk, FAILED=2)
    desk.ask("RetryRun", runId=run_id, clientToken="t-2")
    assert desk.submit("t-2")["created"] is True


def test_a_second_retry_while_the_first_waits_is_refused_as_running(desk: Desk) -> None:
    run_id = ended(desk, FAILED=2)
    desk.ask("RetryRun", runId=run_id, clientToken="a")
    error = error_of(desk.ask("RetryRun", runId=run_id, clientToken="b"))
    assert (error["code"], len(waiting(desk))) == ("ConflictException", 1)
    assert "only a run that has ended" in error["message"]


def test_two_retries_at_the_same_moment_are_both_kept_and_the_run_is_on_its_way(desk: Desk) -> None:
    run_id = ended(desk, FAILED=2, CANCELLED=1)
    create = desk.store.create

    def after_another(*args: Any, **rest: Any) -> None:
        desk.store.create = create  # type: ignore[method-assign]
        desk.body("RetryRun", runId=run_id, clientToken="another", cancelled=True)
        create(*args, **rest)

    desk.store.create = after_another  # type: ignore[method-assign]
    assert desk.body("RetryRun", runId=run_id, clientToken="mine")["created"] is True
    assert len(waiting(desk)) == 2
    assert desk.body("DescribeRun", runId=run_id)["status"] == "SUBMITTED"


def test_a_retry_that_ended_is_no_longer_on_its_way_and_the_next_one_is(desk: Desk) -> None:
    run_id = ended(desk, FAILED=2)
    for token in ("first", "second"):
        assert desk.body("RetryRun", runId=run_id, clientToken=token)["status"] == "SUBMITTED"
        take_in(desk)
        run = desk.state.runs[run_id]
        run.status, run.stopped_at = RunStatus.PARTIAL, desk.time
        desk.state.changed_runs.add(run_id)
        desk.commit()
        desk.state.runs.pop(run_id, None)
        assert desk.body("DescribeRun", runId=run_id)["status"] == "PARTIAL"
        desk.time += 100


def test_a_retry_that_an_older_version_left_is_granted_though_nothing_points_to_it(desk: Desk) -> None:
    """Until it is folded in, the run counts as ended; a second retry in the meantime joins the first."""
    run_id = ended(desk, FAILED=2)
    desk.ask("RetryRun", runId=run_id)
    del desk.store.items[retry_pointer(run_id)]
    assert desk.body("DescribeRun", runId=run_id)["status"] == "PARTIAL"
    assert desk.body("RetryRun", runId=run_id, clientToken="again")["created"] is True
    take_in(desk)
    assert desk.body("DescribeRun", runId=run_id)["retries"] == 1


@pytest.mark.parametrize("body", [b"rot", inbox.to_bytes(inbox.CancelRequest("digits", NOW, ""))])
def test_a_pointer_to_what_is_no_retry_tells_nothing(desk: Desk, body: bytes) -> None:
    run_id = ended(desk, FAILED=2)
    desk.store.items |= {retry_pointer(run_id): b"there", (inbox.INBOX, "there"): body}
    assert desk.body("DescribeRun", runId=run_id)["status"] == "PARTIAL"


def test_a_cancel_right_after_a_retry_comes_after_it(desk: Desk) -> None:
    run_id = ended(desk, FAILED=2)
    desk.ask("RetryRun", runId=run_id)
    desk.time -= 50  # the clock of another machine
    desk.ask("CancelRun", runId=run_id)
    assert [type(request).__name__ for request in waiting(desk)] == ["RetryRequest", "CancelRequest"]


@pytest.mark.parametrize(
    ("status", "counts", "fields", "sentence"),
    [
        (RunStatus.SUCCEEDED, {}, {}, "every task of .* succeeded"),
        (
            RunStatus.CANCELLED,
            {"CANCELLED": 4},
            {},
            r"no task of .* failed; 4 were cancelled: retry those with --cancelled",
        ),
        (
            RunStatus.PARTIAL,
            {"FAILED": 4},
            {"failed": False, "cancelled": True},
            r"4 failed: retry those with --failed",
        ),
    ],
)
def test_what_cannot_be_retried_is_refused_and_changes_nothing(
    desk: Desk, status: RunStatus, counts: dict[str, int], fields: dict[str, bool], sentence: str
) -> None:
    run_id = ended(desk, status, **counts)
    before = dict(desk.store.items)
    answer = desk.ask("RetryRun", runId=run_id, **fields)
    assert answer["statusCode"] == 409
    assert __import__("re").search(sentence, error_of(answer)["message"])
    assert desk.store.items == before


def test_a_run_that_still_works_or_does_not_exist_is_refused(desk: Desk) -> None:
    run_id = desk.submit()["runId"]
    assert desk.ask("RetryRun", runId=run_id)["statusCode"] == 409
    assert desk.ask("RetryRun", runId="digits-261121-062733-zzzz")["statusCode"] == 404


def test_asking_for_nothing_is_refused(desk: Desk) -> None:
    answer = desk.ask("RetryRun", runId="x", failed=False)
    assert answer["statusCode"] == 400
    assert "nothing would be retried" in error_of(answer)["fieldList"][0]["message"]


def test_a_run_that_was_never_closed_may_be_retried_although_nothing_failed(desk: Desk) -> None:
    run_id = ended(desk, RunStatus.FAILED)
    body = desk.body("RetryRun", runId=run_id)
    assert (body["created"], body["tasksToRetry"]) == (True, 0)


def test_tasks_that_were_live_when_their_run_was_set_aside_are_tried_again(desk: Desk) -> None:
    run_id = ended(desk, RunStatus.FAILED, RUNNING=2, STARTING=1)
    assert desk.body("RetryRun", runId=run_id)["tasksToRetry"] == 3


def test_the_token_expires_with_the_others(desk: Desk) -> None:
    run_id = ended(desk, FAILED=1)
    desk.ask("RetryRun", runId=run_id, clientToken="t")
    (key,) = [key for key in desk.store.expires_at if b"cancelled" in desk.store.items[key]]
    assert key[0] == inbox.TOKENS
    assert desk.store.expires_at[retry_pointer(run_id)] == desk.store.expires_at[key]
    assert json.loads(desk.store.items[key])["runId"] == run_id


def test_a_reopened_run_keeps_what_succeeded_and_gives_the_rest_a_fresh_budget(desk: Desk) -> None:
    from argosy.lifecycle.revival import revive

    run_id = ended(desk, FAILED=2, CANCELLED=3)
    stored = load_run(desk.store, run_id)
    assert isinstance(stored, Run)
    apply(desk.state, RunRetried(RetryRequest(run_id, NOW), stored), NOW, POLICY)
    run = desk.state.runs[run_id]
    assert not run.complete  # or it would be closed at once
    assert not run.ready
    revive(desk.state, run, POLICY)
    assert (
        run.tasks["status"].tolist()
        == [TaskStatus.PENDING] * 2 + [TaskStatus.CANCELLED] * 3 + [TaskStatus.SUCCEEDED] * 5
    )
    assert run.tasks["user_failures"].tolist() == [0, 0] + [1] * 8
    assert run.tasks["attempts"].tolist() == [1] * 10  # so that the next one is the second
    assert (run.status, run.stopped_at, run.status_reason) == (RunStatus.SUBMITTED, 0.0, "")
    assert (run.revives, run.halted) == ([], False)


def test_a_second_wish_leaves_what_the_run_has_at_work_alone(desk: Desk) -> None:
    """A task whose result is being looked up no longer has an attempt, but it is not lost."""
    from argosy.lifecycle.revival import revive

    run_id = ended(desk, FAILED=2, CANCELLED=3)
    stored = load_run(desk.store, run_id)
    apply(desk.state, RunRetried(RetryRequest(run_id, NOW), stored), NOW, POLICY)
    run = desk.state.runs[run_id]
    revive(desk.state, run, POLICY)
    run.task_definition = "arn"
    run.tasks.set(0, status=TaskStatus.VERIFYING, attempts=2)
    for _ in range(2):  # the same wish twice is granted once
        apply(desk.state, RunRetried(RetryRequest(run_id, NOW, failed=True, cancelled=True), None), NOW, POLICY)
        assert run.revives == [TaskStatus.PENDING, TaskStatus.CANCELLED]
    revive(desk.state, run, POLICY)
    statuses = [TaskStatus.VERIFYING] + [TaskStatus.PENDING] * 4 + [TaskStatus.SUCCEEDED] * 5
    assert run.tasks["status"].tolist() == statuses
    assert (run.tasks["attempts"][0], run.retries, run.halted) == (2, 1, False)


def test_how_often_a_run_was_reopened_is_not_known_of_a_record_that_cannot_be_read(desk: Desk) -> None:
    from argosy.api.reading import retries_of

    run_id = ended(desk, FAILED=2)
    key = next(key for key in desk.store.items if key[0] == documents.RUNS)
    record = documents.decode(desk.store.items[key])
    desk.store.items[key] = documents.encode({**record, "retries": 3})
    assert retries_of(desk.store, run_id) == 3
    desk.store.items[key] = b"rot"
    assert retries_of(desk.store, run_id) == 0
    assert retries_of(desk.store, "nobody-261121-062733-aaaa") == 0


def test_a_suspended_run_is_retried_without_a_new_budget_which_would_be_lost(desk: Desk) -> None:
    run_id = str(desk.submit()["runId"])
    desk.fold_in()
    desk.commit()
    run = desk.state.runs[run_id]
    run.change({"budgetUsd": 5.0})
    run.cost_usd = 5.0
    suspend(desk.state, RunRecord.of(run), "it fails", desk.time)
    desk.commit()
    for more in ({"budgetUsd": 50}, {"memory": 2048}, {"tasks": [[0, 0]]}, {"job": JOB}):
        error = error_of(desk.ask("RetryRun", runId=run_id, **more))
        what = "--budget, --memory, --vcpus, --tasks and --with-program"
        assert error["message"] == f"{run_id} is suspended, and is retried unchanged: leave {what} out"
    assert not waiting(desk)
    assert desk.body("RetryRun", runId=run_id)["created"] is True


def retried(desk: Desk, run_id: str) -> Run:
    """As it is stored once the request is taken in."""
    take_in(desk)
    stored = load_run(desk.store, run_id, ended=False)
    assert stored is not None
    return stored


def test_chosen_tasks_are_asked_for_whatever_they_ended_as(desk: Desk) -> None:
    run_id = ended(desk, FAILED=3, CANCELLED=3)
    asked = {"runId": run_id, "tasks": [[1, 1], [3, 4]], "clientToken": "t"}
    assert desk.body("RetryRun", **asked)["tasksToRetry"] == 3
    assert waiting(desk) == [RetryRequest(run_id, desk.time, failed=True, cancelled=True, tasks=((1, 1), (3, 4)))]
    assert desk.body("RetryRun", **asked)["created"] is False
    assert "clientToken" in error_of(desk.ask("RetryRun", **{**asked, "tasks": [[1, 1]]}))["message"]
    run = retried(desk, run_id)
    assert (run.chosen, run.retried) == ([(1, 1), (3, 4)], [TaskStatus.FAILED, TaskStatus.CANCELLED])


def test_a_retry_with_more_memory_needs_more_from_then_on(desk: Desk) -> None:
    run_id = ended(desk, FAILED=3)
    assert desk.body("RetryRun", runId=run_id, memory=4096, vcpus=0.5)["created"] is True
    run = retried(desk, run_id)
    assert (run.needs.memory_mib, run.needs.cpu_units, run.task_definition) == (4096, 512, "")
    assert run.changes == {"memory": 4096, "vcpus": 0.5}
    assert desk.body("DescribeRun", runId=run_id)["memoryMib"] == 4096


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"tasks": [[2, 10]]}, "there is no task 10 in digits-"),
        ({"tasks": [[1, 4]]}, "task 3 of digits-270115-080000-ypzv succeeded and keeps its result: choose other tasks"),
        ({"tasks": [[2, 1]]}, "tasks[0] must be the first and the last index of a range of tasks, such as [7, 12]"),
        ({"tasks": []}, "tasks must not be empty"),
        ({"tasks": [[1]]}, "tasks[0] must be the first and the last index"),
        ({"memory": 10**6}, "memory asks for 1000000 MiB, but the largest instance type of this"),
        ({"memory": 0}, "memory must be at least 6"),
        ({"vcpus": 33}, "vcpus asks for 33 vCPUs, but the largest instance type"),
    ],
)  # fmt: skip
def test_what_cannot_be_tried_again_so_is_refused_in_a_sentence(desk: Desk, fields: dict[str, Any], said: str) -> None:
    run_id = ended(desk, FAILED=3)
    error = error_of(desk.ask("RetryRun", runId=run_id, **fields))
    shown = " ".join(f"{each['path']} {each['message']}" for each in error["fieldList"])
    assert said in (shown or error["message"])
    assert not waiting(desk)


def test_more_than_the_run_s_own_instances_have_is_refused(desk: Desk) -> None:
    """The deployment has larger ones."""
    desk.api.fleets = [*desk.api.fleets, ("us-east-1", "c5.large", "us-east-1a")]
    run_id = str(desk.submit(placement={"constraints": ["attribute:ecs.instance-type == c5.large"]})["runId"])
    desk.fold_in()
    run = desk.state.runs[run_id]
    run.status = RunStatus.FAILED
    for index in range(10):
        run.tasks.set(index, status=TaskStatus.FAILED, attempts=1)
    desk.state.changed_runs.add(run_id)
    desk.commit()
    error = error_of(desk.ask("RetryRun", runId=run_id, memory=8192))
    assert "is too much: no instance type that the run may use" in error["fieldList"][0]["message"]
    assert desk.body("RetryRun", runId=run_id, memory=2048)["created"] is True


def test_the_size_of_a_task_definition_is_its_own(desk: Desk) -> None:
    form = {"taskDefinition": "mine:3", "container": {"command": ["x"]}, "resources": None}
    run_id = str(desk.submit(**form)["runId"])
    desk.fold_in()
    run = desk.state.runs[run_id]
    run.status = RunStatus.FAILED
    desk.state.changed_runs.add(run_id)
    desk.commit()
    error = error_of(desk.ask("RetryRun", runId=run_id, memory=8192))
    assert error["fieldList"][0]["message"].startswith("is set by the task definition mine:3: register a revision")


def test_a_run_that_was_never_ended_is_taken_in_as_it_is(desk: Desk) -> None:
    """Its attempts of the old size may be alive."""
    run_id = str(desk.submit()["runId"])
    desk.fold_in()
    del desk.store.items[documents.STATE, documents.ROOT]
    for more in ({"memory": 2048}, {"tasks": [[0, 0]]}):
        error = error_of(desk.ask("RetryRun", runId=run_id, **more))
        assert f"{run_id} never ended, and is resumed unchanged" in error["message"]
    assert desk.body("RetryRun", runId=run_id)["created"] is True


OWN = {"run": ["python", "f.py"], "job": f"{JOBS}1a.json", "container": {"image": "argosy/digits"}}


def test_a_retry_with_another_program_says_which_version_its_tasks_run(desk: Desk) -> None:
    run_id = ended(desk, fields=OWN, FAILED=2)
    submitted_at = desk.time - 100
    plain = desk.body("RetryRun", runId=run_id)["program"]
    assert (plain["version"], plain["sha256"], plain["addedAt"]) == (1, "1a", iso(submitted_at))
    take_in(desk)
    desk.state.runs[run_id].status = RunStatus.PARTIAL
    desk.state.changed_runs.add(run_id)
    desk.commit()
    other = desk.body("RetryRun", runId=run_id, job=JOB, clientToken="fixed")
    assert (other["program"]["version"], other["program"]["sha256"]) == (2, "2b")
    assert [request.job for request in waiting(desk) if isinstance(request, RetryRequest)] == [JOB]
    again = desk.ask("RetryRun", runId=run_id, job=f"{JOBS}3c.json", clientToken="again")
    assert "only a run that has ended" in error_of(again)["message"]


def test_a_program_is_judged_as_the_job_of_a_spec(desk: Desk) -> None:
    run_id = ended(desk, fields=OWN, FAILED=2)
    refused = desk.ask("RetryRun", runId=run_id, job="s3://elsewhere/job.json")
    assert "bucket elsewhere is not one" in json.dumps(error_of(refused))
    assert not waiting(desk)


def test_a_run_without_a_program_takes_no_other_version_of_it(desk: Desk) -> None:
    run_id = ended(desk, FAILED=2)
    refused = desk.ask("RetryRun", runId=run_id, job=JOB, clientToken="fixed")
    assert "only possible for a run whose program was uploaded" in json.dumps(error_of(refused))
    assert desk.body("RetryRun", runId=run_id)["program"] is None
