"""Answers to any request: unknown ones, lists, cancels, explanations, and faults of ours."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.api.reading import cancel_pointer
from argosy.api.refusals import envelope_of_error
from argosy.api.requests import page_token
from argosy.model import inbox
from argosy.model.damage import UnreadableState
from argosy.model.runs import RunStatus
from argosy.model.stored import documents
from argosy.model.tasks import TaskStatus
from argosy.ports import Key
from tests.builders import NOW
from tests.fakes.api import SPEC, Desk, error_of

ACTIONS = (
    "known: SubmitRun, ValidateRun, PlanRun, DescribeRun, ListRuns, CancelRun, RetryRun, UpdateRun, ExplainRun, "
    "DescribeCluster, ScaleCluster, DrainInstance, ListChanges, DescribeHistory, DescribeTask, ListAttempts, "
    "ListTasks, ListInstances, CreateEnvironment, UpdateEnvironment, StartDeployment, RollBackDeployment, "
    "StopDeployment, ScaleEnvironment, FreezeEnvironment, ThawEnvironment, DeleteEnvironment, "
    "DescribeEnvironment, ListEnvironments, "
    "CreateSchedule, UpdateSchedule, DescribeSchedule, ListSchedules, PauseSchedule, ResumeSchedule, RunScheduleNow, "
    "DeleteSchedule, FireSchedule, ReleaseSchedules, ApplySharing, DescribeSharing"
)


@pytest.mark.parametrize(
    ("request_", "faults"),
    [
        (None, [("", "a request is a JSON object with an action")]),
        ([], [("", "a request is a JSON object with an action")]),
        ({}, [("action", f"is required; {ACTIONS}")]),
        ({"action": 5}, [("action", f"is unknown; {ACTIONS}")]),
        ({"action": "Tick"}, [("action", f"is unknown; {ACTIONS}")]),
        ({"action": "SubmitRun"}, [("spec", "is required")]),
        ({"action": "SubmitRun", "spec": "x"}, [("spec", 'must be a mapping, not the text "x"')]),
        ({"action": "SubmitRun", "spec": {}, "clientToken": "", "dryRun": 1},
         [("clientToken", "must not be empty"), ("dryRun", "unknown field; known: action, clientToken, spec")]),
        ({"action": "SubmitRun", "spec": {}, "clientToken": "x" * 65},
         [("clientToken", "must have at most 64 characters")]),
        ({"action": "SubmitRun", "spec": {}, "clientToken": "\x1b"}, [("clientToken", "must be printable ASCII")]),
        ({"action": "ValidateRun", "spec": {}, "clientToken": "t"},
         [("clientToken", "unknown field; known: action, spec")]),
        ({"action": "DescribeRun"}, [("runId", "is required")]),
        ({"action": "DescribeRun", "runId": 5, "include": ["logs"], "maxResults": 0}, [
            ("runId", "must be text (in quotes), not the number 5"),
            ("include[0]", "must be 'tasks', 'statuses', 'cost' or 'standing', not the text \"logs\""),
            ("maxResults", "must be at least 1"),
        ]),
        ({"action": "ListRuns", "maxResults": 101}, [("maxResults", "must be at most 100")]),
        *(
            ({"action": "ListRuns", "nextToken": token}, [("nextToken", "is not a token that this api has issued")])
            for token in ("!", "", page_token(""), page_token("x" * 201), page_token("\n"), "\ud800")
        ),
        ({"action": "CancelRun", "runId": "x", "reason": "\n"}, [("reason", "must be printable ASCII")]),
        (
            {"action": "DescribeCluster", "x": 1},
            [("x", "unknown field; known: action, form, include, historyHours, until")],
        ),
    ],
)  # fmt: skip
def test_invalid_requests_get_every_fault(desk: Desk, request_: Any, faults: list[tuple[str, str]]) -> None:
    answer = desk.api.handle(request_, "r")
    assert answer["statusCode"] == 400
    error = error_of(answer)
    assert error["code"] == "ValidationException"
    assert [(fault["path"], fault["message"]) for fault in error["fieldList"]] == faults
    assert error["message"] == ("1 field is invalid" if len(faults) == 1 else f"{len(faults)} fields are invalid")


@pytest.mark.parametrize("run_id", ["digits-261121-062733-k3f9", "nonsense", "", "a" * 5000, "../../x", "\ud800"])
@pytest.mark.parametrize("action", ["DescribeRun", "CancelRun"])
def test_an_unknown_run_is_not_found(desk: Desk, action: str, run_id: str) -> None:
    answer = desk.ask(action, runId=run_id)
    assert answer["statusCode"] == 404
    assert error_of(answer)["code"] == "ResourceNotFoundException"
    assert len(error_of(answer)["message"]) < 200
    assert desk.store.items == {}


def test_a_run_taken_in_between_two_reads_is_found(desk: Desk) -> None:
    run_id = desk.submit()["runId"]
    real, looks = desk.store.read, []

    def read(key: Key) -> bytes | None:
        looks.append(key[0])
        if key == ("SUBMITTED", run_id) and looks.count(key[0]) == 1:
            desk.fold_in()  # right after the first look, before the inbox is read
        return real(key)

    desk.store.read = read  # type: ignore[method-assign]
    assert desk.body("DescribeRun", runId=run_id)["runId"] == run_id
    assert looks[:4] == [documents.RUNS, "SUBMITTED", "INBOX", documents.RUNS]


def test_runs_are_listed_newest_first_by_pages(desk: Desk) -> None:
    ids = []
    for number in range(5):
        desk.time += 1
        ids.append(desk.submit(f"t-{number}")["runId"])
    desk.fold_in()
    desk.time += 1
    waiting = desk.submit("t-9")["runId"]
    first = desk.body("ListRuns", maxResults=2)
    second = desk.body("ListRuns", maxResults=2, nextToken=first["nextToken"])
    third = desk.body("ListRuns", maxResults=2, nextToken=second["nextToken"])
    listed = [[run["runId"] for run in page["runs"]] for page in (first, second, third)]
    assert listed == [[waiting, ids[4]], [ids[3], ids[2]], [ids[1], ids[0]]]
    assert third["nextToken"] is None
    assert "failures" not in first["runs"][0]


def test_an_unreadable_request_does_not_hide_the_others(desk: Desk) -> None:
    run_id = desk.submit()["runId"]
    desk.store.items[inbox.INBOX, "0"] = b'{"kind":"newer"}'
    assert [run["runId"] for run in desk.body("ListRuns")["runs"]] == [run_id]


def test_cancelling_asks_the_controller_and_waits_for_nothing(desk: Desk) -> None:
    run_id = desk.submit()["runId"]
    desk.fold_in()
    body = desk.body("CancelRun", runId=run_id, reason="wrong data")
    assert body["runId"] == run_id
    (stored,) = desk.store.read_partition(inbox.INBOX).values()
    assert inbox.from_bytes(stored) == inbox.CancelRequest(run_id, NOW, "wrong data")
    assert desk.wake.calls == 2
    assert desk.body("CancelRun", runId=run_id)["status"] == "CANCELLING"  # the same request, delivered twice
    desk.fold_in()
    assert desk.body("DescribeRun", runId=run_id)["tasks"]["cancelled"] == 10


def test_cancelling_tasks_leaves_the_run_open(desk: Desk) -> None:
    run_id = desk.submit()["runId"]
    desk.fold_in()
    assert desk.body("CancelRun", runId=run_id, tasks=[[3, 3], [7, 8]])["status"] != "CANCELLING"
    (stored,) = desk.store.read_partition(inbox.INBOX).values()
    assert inbox.from_bytes(stored) == inbox.CancelTasksRequest(run_id, NOW, ((3, 3), (7, 8)))
    desk.fold_in()
    assert desk.body("DescribeRun", runId=run_id)["tasks"]["cancelled"] == 3
    for changes, sentence in (
        ({"tasks": [[3, 10]]}, "there is no task 10"),
        ({"tasks": [[0, 20]]}, "20 tasks at once"),
        ({"tasks": [[0, 1]], "dependents": True}, "of a whole run"),
    ):
        assert sentence in str(desk.ask("CancelRun", runId=run_id, **changes))


def test_from_the_request_to_cancel_it_to_its_end_a_run_is_cancelling(desk: Desk) -> None:
    run_id, other = desk.submit("a")["runId"], desk.submit("b")["runId"]
    desk.fold_in()

    def shown() -> list[str]:
        listed = {run["runId"]: run["status"] for run in desk.body("ListRuns")["runs"]}
        explained = desk.body("ExplainRun", runId=run_id)["status"]
        return [desk.body("DescribeRun", runId=run_id)["status"], listed[run_id], explained, listed[other]]

    desk.body("CancelRun", runId=run_id)
    assert shown()[:2] == ["CANCELLING", "CANCELLING"]  # the request is not taken in yet
    desk.fold_in()
    assert shown() == ["CANCELLING", "CANCELLING", "CANCELLING", "SUBMITTED"]
    refused = desk.ask("RetryRun", runId=run_id)["body"]["error"]["message"]
    assert "is CANCELLING: only a run that has ended" in refused
    desk.state.runs[run_id].status = RunStatus.CANCELLED
    desk.state.changed_runs.add(run_id)
    desk.commit()
    assert shown()[:2] == ["CANCELLED", "CANCELLED"]
    desk.body("RetryRun", runId=run_id, cancelled=True)
    assert shown()[:2] == ["SUBMITTED", "SUBMITTED"]


def test_a_pointer_to_what_is_no_cancel_tells_nothing(desk: Desk) -> None:
    run_id = desk.submit()["runId"]
    desk.fold_in()
    desk.store.items |= {cancel_pointer(run_id): b"there", (inbox.INBOX, "there"): b"rot"}
    assert desk.body("DescribeRun", runId=run_id)["status"] == "SUBMITTED"


def test_a_run_may_be_cancelled_before_it_is_folded_in(desk: Desk) -> None:
    """Also when the clock of the machine that cancels is behind the clock of the one that submitted."""
    run_id = desk.submit()["runId"]
    desk.time -= 5
    desk.ask("CancelRun", runId=run_id)
    desk.fold_in()
    assert desk.state.runs[run_id].tasks.statuses().tolist() == [TaskStatus.CANCELLED] * 10


def test_cancelling_a_run_that_has_ended_changes_nothing(desk: Desk) -> None:
    run_id = desk.submit()["runId"]
    desk.fold_in()
    desk.state.runs[run_id].status = RunStatus.SUCCEEDED
    desk.state.changed_runs.add(run_id)
    desk.commit()
    before = dict(desk.store.items)
    assert desk.body("CancelRun", runId=run_id)["status"] == "SUCCEEDED"
    assert desk.store.items == before


def test_faults_of_ours_are_raised_not_answered(desk: Desk) -> None:
    desk.store.items[documents.STATE, documents.ROOT] = b"not ours"
    with pytest.raises(UnreadableState, match="incorrect header"):
        desk.ask("DescribeCluster")


@pytest.mark.parametrize(("code", "status"), [("ThrottlingException", 429), ("InternalError", 500)])
def test_the_other_codes_have_their_status(code: str, status: int) -> None:
    assert envelope_of_error(code, "m", "r") == {
        "statusCode": status,
        "body": {"error": {"code": code, "message": "m", "requestId": "r", "fieldList": []}},
    }


def test_explaining_a_run_that_is_not_taken_in_says_so() -> None:
    desk = Desk()
    run_id = desk.ask("SubmitRun", spec=SPEC)["body"]["runId"]
    assert desk.ask("ExplainRun", runId=run_id)["body"]["sentence"] == "the controller has not picked up the run yet"


def test_explaining_a_task_that_does_not_exist_is_refused() -> None:
    desk = Desk()
    run_id = desk.ask("SubmitRun", spec=SPEC)["body"]["runId"]
    reply = desk.ask("ExplainRun", runId=run_id, index=10)
    assert reply["body"]["error"]["fieldList"] == [{"path": "index", "message": "the run has 10 tasks, counted from 0"}]


def test_explaining_an_open_run_gives_a_verdict() -> None:
    desk = Desk()
    run_id = desk.ask("SubmitRun", spec=SPEC)["body"]["runId"]
    desk.fold_in()
    body = desk.ask("ExplainRun", runId=run_id)["body"]
    assert (body["verdict"], body["pending"]) == ("never", 10)


def test_what_the_api_writes_is_outside_of_the_versioned_partitions_and_pointers_and_tokens_expire(desk: Desk) -> None:
    run_id = desk.submit()["runId"]
    assert {partition for partition, _ in desk.store.items} == {"INBOX", "TOKENS", "SUBMITTED"}
    expiring = {partition for partition, _ in desk.store.expires_at}
    assert expiring == {"TOKENS", "SUBMITTED"}
    assert set(desk.store.expires_at.values()) == {NOW + 30 * 86_400}
    assert desk.store.read(("SUBMITTED", run_id)) is not None
