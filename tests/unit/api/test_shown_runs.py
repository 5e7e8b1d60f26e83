"""What DescribeRun shows of a run: counts, failures, money, and its tasks by pages."""

from __future__ import annotations

import itertools

import pytest

from argosy.api.requests import page_token
from argosy.api.views import iso
from argosy.figures.history import column
from argosy.model.failure_groups import MOST_GROUPS, note_failure
from argosy.model.tasks import TaskStatus
from argosy.ports import Key
from tests.builders import NOW, fleet, told
from tests.fakes.api import Desk, error_of, running


def test_a_run_shows_its_counts_failures_and_why_it_waits(desk: Desk) -> None:
    view = desk.body("DescribeRun", runId=running(desk))
    assert view["status"] == "RUNNING"
    assert view["tasks"] == {
        "total": 10, "pending": 6, "starting": 1, "running": 2, "succeeded": 0, "failed": 1, "cancelled": 0,
    }  # fmt: skip
    assert [failure["index"] for failure in view["failures"]] == list(range(2, 12))
    assert view["failures"][0] == {
        "index": 2, "attempt": 1, "exitCode": 3, "reason": "exit code 3", "instance": "i-0000000000000000a",
        "taskArn": None,
    }  # fmt: skip
    assert view["waiting"] == "waits for p3.8xlarge"
    assert view["instances"] == 1
    assert view["costUsd"] == pytest.approx(0.25 + 0.5 * 3.0)  # what was charged, and half an hour of the instance
    assert "taskList" not in view
    assert "cost" not in view


def test_a_run_shows_the_status_of_every_task_as_a_column(desk: Desk) -> None:
    run_id = running(desk)
    view = desk.body("DescribeRun", runId=run_id, include=["tasks", "statuses"])
    names, codes = view["statuses"]["values"], column(view["statuses"]).tolist()
    assert [names[code] for code in codes] == [each["status"] for each in view["taskList"]]
    later = desk.submit("t-9", name="later")["runId"]
    assert set(column(desk.body("DescribeRun", runId=later, include=["statuses"])["statuses"]).tolist()) == {0}


def test_failures_beyond_the_groups_share_the_last_one(desk: Desk) -> None:
    run_id = running(desk)
    run = desk.state.runs[run_id]
    run.failure_groups.clear()
    for number in range(MOST_GROUPS + 9):
        note_failure(run.failure_groups, run.reason_row(f"fault {number}"), 1, number, NOW)
    desk.state.changed_runs.add(run_id)
    desk.commit()
    groups = desk.body("DescribeRun", runId=run_id)["failureGroups"]
    assert len(groups) == MOST_GROUPS
    assert (groups[0]["reason"], groups[0]["exitCode"], groups[0]["count"]) == ("(other reasons)", None, 10)


def test_a_run_shows_its_ledger_when_asked(desk: Desk) -> None:
    view = desk.body("DescribeRun", runId=running(desk), include=["cost"])
    [pool] = view["cost"]["byPool"]
    assert (pool["instanceType"], pool["availabilityZone"], pool["cell"]) == ("p3.8xlarge", "us-east-1a", "us-east-1")
    assert (pool["purchase"], pool["instanceHours"]) == ("spot", pytest.approx(0.5))
    assert sum(view["cost"]["byWaste"].values()) == pytest.approx(view["costUsd"])
    assert view["cost"]["byLine"] == pytest.approx(
        {"instancesUsd": 0.25 + 0.5 * 2.975, "disksUsd": 0.5 * 0.02, "addressesUsd": 0.5 * 0.005}
    )
    assert view["cost"]["byWaste"]["usefulUsd"] == pytest.approx(view["usefulUsd"])
    assert view["usefulUsd"] == pytest.approx(30 * 3.0 / 3600 / 2)  # two of its four GPUs for half a minute


def test_a_run_of_which_nothing_runs_shows_its_place_in_line_when_asked(desk: Desk) -> None:
    first = desk.submit("first", name="prepare")["runId"]
    second = desk.submit("second", dependsOn=[{"run": first}])["runId"]
    desk.fold_in()
    standing = desk.body("DescribeRun", runId=second, include=["standing"])["standing"]
    assert standing["inLine"] is False
    assert standing["reason"] == "it waits for other runs, or for its start time"
    desk.store.killed = "going home"
    assert desk.body("DescribeRun", runId=second, include=["standing"])["standing"] is None


def test_no_other_run_has_a_place_in_line(desk: Desk) -> None:
    at_work, in_inbox = running(desk), desk.submit("later")["runId"]
    for run_id in (at_work, in_inbox):
        assert desk.body("DescribeRun", runId=run_id, include=["standing"])["standing"] is None
    assert "standing" not in desk.body("DescribeRun", runId=at_work)


def test_an_interrupted_run_shows_where_an_instance_for_it_would_be_bought(desk: Desk) -> None:
    run_id = running(desk)
    assert desk.body("DescribeRun", runId=run_id, include=["standing"])["nextPool"] is None
    run = desk.state.runs[run_id]
    run.interruptions = 1
    desk.state.changed_runs.add(run_id)
    told(desk.state, fleet("p3.8xlarge"))
    desk.commit()
    shown = desk.body("DescribeRun", runId=run_id, include=["standing"])["nextPool"]
    assert shown == {"instanceType": "p3.8xlarge", "availabilityZone": "us-east-1a", "purchase": "spot"}


def test_while_the_controller_is_busy_a_run_is_shown_without_its_place(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = desk.submit()["runId"]
    desk.fold_in()
    versions = itertools.count()
    monkeypatch.setattr(desk.store, "version", lambda: next(versions))
    view = desk.body("DescribeRun", runId=run_id, include=["standing"])
    assert (view["runId"], view["standing"]) == (run_id, None)


def test_what_a_run_without_any_instance_shows_costs_nothing(desk: Desk) -> None:
    run_id = desk.submit(capacity={"budgetUsd": 5, "onCap": "finish"})["runId"]
    view = desk.body("DescribeRun", runId=run_id, include=["cost"])
    assert view["cost"] == {
        "estimates": {
            "logsUsd": 0,
            "imageTransferUsd": 0,
            "assumed": {"logGbPerAttempt": pytest.approx(1e-5), "imageGb": 0.5},
        },
        "byLine": {"instancesUsd": 0, "disksUsd": 0, "addressesUsd": 0},
        "byWaste": {"usefulUsd": 0, "bootUsd": 0, "idleUsd": 0, "redoneUsd": 0, "failedUsd": 0, "displacedUsd": 0},
        "byPool": [],
        "instanceHours": 0,
    }
    assert view["budget"] == {
        "budgetUsd": 5.0, "spentUsd": 0.0, "reservedUsd": 0.0, "maxHourlyCost": None, "usdPerHour": 0.0,
        "onCap": "finish", "usedUp": False,
    }  # fmt: skip
    desk.fold_in()
    assert desk.body("DescribeRun", runId=run_id, include=["cost"]) == view


def test_tasks_show_their_last_attempt_or_the_one_that_is_alive(desk: Desk) -> None:
    view = desk.body("DescribeRun", runId=running(desk), include=["tasks"], maxResults=3)
    assert view["taskList"] == [
        {
            "index": 0, "status": "FAILED", "attempts": 1, "exitCode": 3, "reason": "exit code 3",
            "instance": "i-0000000000000000a", "seconds": 2.5, "gpuIds": ["g2", "g3"], "taskArn": None,
            "program": None,
        },
        {
            "index": 1, "status": "RUNNING", "attempts": 2, "exitCode": None, "reason": None,
            "instance": "i-0000000000000000a", "seconds": 30.0, "gpuIds": ["g0", "g1"],
            "taskArn": "arn:aws:ecs:us-east-1:123456789012:task/argosy/f00", "program": None,
        },
        {
            "index": 2, "status": "STARTING", "attempts": 1, "exitCode": None, "reason": None,
            "instance": "i-0000000000000000a", "seconds": None, "gpuIds": [], "taskArn": None,
            "program": None,
        },
    ]  # fmt: skip


def test_a_commit_between_two_reads_does_not_tear_a_task_from_its_reason(desk: Desk) -> None:
    run_id = running(desk)
    read = desk.store.read

    def read_late(key: Key) -> bytes | None:
        """The first read of the tasks finds the state that a tick has just committed."""
        if key[1].startswith("TASKS#"):
            desk.store.read = read  # type: ignore[method-assign]
            run = desk.state.runs[run_id]
            run.tasks.set(4, status=TaskStatus.FAILED, reason=run.reason_row("CannotPullContainerError: gone"))
            desk.state.changed_runs.add(run_id)
            desk.commit()
        return read(key)

    desk.store.read = read_late  # type: ignore[method-assign]
    view = desk.body("DescribeRun", runId=run_id, include=["tasks"])
    assert view["taskList"][4]["reason"] == "CannotPullContainerError: gone"


def test_tasks_come_by_pages_across_stored_chunks(desk: Desk) -> None:
    run_id = desk.submit(array={"size": 20_000}, container={"image": "a"})["runId"]
    desk.fold_in()
    desk.state.runs[run_id].tasks.set(8192, status=TaskStatus.SUCCEEDED)
    desk.state.changed_runs.add(run_id)
    desk.commit()
    page = desk.body("DescribeRun", runId=run_id, include=["tasks"], nextToken=page_token("8190"), maxResults=1000)
    assert [task["index"] for task in page["taskList"]] == list(range(8190, 9190))
    assert [task["index"] for task in page["taskList"] if task["status"] == "SUCCEEDED"] == [8192]
    last = desk.body("DescribeRun", runId=run_id, include=["tasks"], nextToken=page_token("19990"))
    assert [task["index"] for task in last["taskList"]] == list(range(19990, 20000))
    assert last["nextToken"] is None
    assert desk.body("DescribeRun", runId=run_id, include=["tasks"], nextToken=page_token("20000"))["taskList"] == []


def test_all_pages_together_show_every_task_once(desk: Desk) -> None:
    run_id = desk.submit()["runId"]
    seen: list[int] = []
    token = None
    while True:
        more = {} if token is None else {"nextToken": token}
        page = desk.body("DescribeRun", runId=run_id, include=["tasks"], maxResults=3, **more)
        seen += [task["index"] for task in page["taskList"]]
        token = page["nextToken"]
        if token is None:
            break
    assert seen == list(range(10))


@pytest.mark.parametrize("token", [page_token("x"), page_token("-1"), "%%", "\u00e9", page_token("1" * 50)])
def test_tokens_that_were_not_given_out_are_refused(desk: Desk, token: str) -> None:
    run_id = desk.submit()["runId"]
    answer = desk.ask("DescribeRun", runId=run_id, include=["tasks"], nextToken=token)
    assert error_of(answer)["fieldList"] == [
        {"path": "nextToken", "message": "is not a token that this api has issued"}
    ]


def test_a_page_of_tasks_without_tasks_is_refused(desk: Desk) -> None:
    run_id = desk.submit()["runId"]
    answer = desk.ask("DescribeRun", runId=run_id, nextToken=page_token("3"))
    assert error_of(answer)["fieldList"][0]["message"] == 'is only possible with include: ["tasks"]'


def test_a_deadline_and_what_is_bought_are_shown_from_the_first_moment_on(desk: Desk) -> None:
    run = desk.submit(capacity={"deadline": "2h"})
    assert run["purchase"] == {"wanted": "spot-then-on-demand", "now": "spot", "since": None, "reason": None}
    assert (run["deadline"], run["late"]) == (iso(NOW + 7200), False)
    desk.fold_in()
    assert desk.body("DescribeRun", runId=run["runId"])["deadline"] == run["deadline"]
