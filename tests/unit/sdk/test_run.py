"""A run in a program: waited for, changed, read."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

import argosy
from argosy.client.waiting import AWS_INTERVAL_S
from tests.fakes.cli import FAILURE, OUTPUT, RUN_ID, World, api_error, ended, refusal, run_view, tasks
from tests.fakes.histories import history
from tests.fakes.reader import use
from tests.fakes.sdk import client_of

FAILED = ended("PARTIAL", tasks=tasks(succeeded=17, failed=1), failures=[FAILURE], statusReason="1 task failed")


class Logs:
    """CloudWatch Logs with one stream, in pages of one line."""

    refuses = False

    def __init__(self, *lines: str) -> None:
        self.lines = lines

    def get_log_events(self, *, nextToken: str = "0", **request: Any) -> dict[str, Any]:  # noqa: N803 - boto3's
        assert request["logGroupName"] == "/g"
        if self.refuses:
            raise refusal("AccessDeniedException")
        if request["logStreamName"] != "s/2":
            raise refusal("ResourceNotFoundException")
        if not request["startFromHead"]:
            return {"events": [{"message": line} for line in self.lines]}
        place = int(nextToken)
        events = [{"message": line} for line in self.lines[place : place + 1]]
        return {"events": events, "nextForwardToken": str(min(place + 1, len(self.lines)))}


def attempt(number: int) -> dict[str, Any]:
    return {"attempt": number, "logGroup": "/g", "logStream": f"s/{number}", "region": "us-east-1"}


def failed_world() -> World:
    """Its run has ended with a failure, whose attempt printed two lines."""
    tried = {**attempt(2), "exitCode": FAILURE["exitCode"], "reason": FAILURE["reason"]}
    world = World().answers("DescribeRun", FAILED).answers("DescribeTask", {"index": 3, "attempts": [tried]})
    world.others["logs"] = Logs("one", "two")
    return world


def run_of(world: World, endpoint_url: str | None = None, **view: Any) -> argosy.Run:
    world.answers("ListRuns", {"runs": [run_view(**view)], "nextToken": None})
    return client_of(world, endpoint_url).runs(1)[0]


def asked(world: World, place: int = -1) -> dict[str, Any]:
    return world.functions.requests[place]


def test_it_says_what_was_seen_last() -> None:
    world = World().answers("DescribeRun", ended())
    run = run_of(world)
    assert (run.name, run.status, run.has_ended, run.cost, run.output) == ("digits", "RUNNING", False, 0.002134, OUTPUT)
    assert run.refresh().has_ended
    assert run.tasks["succeeded"] == 18


@pytest.mark.parametrize(
    ("endpoint", "slept"),
    [(None, [AWS_INTERVAL_S] * 4), ("http://127.0.0.1:1", [0.04, 0.06, 0.09, pytest.approx(0.135)])],
)
def test_waiting_looks_again_until_it_has_ended(endpoint: str | None, slept: list[float]) -> None:
    """In local mode soon at first: requests cost nothing there, and many programs take milliseconds."""
    world = World().answers("DescribeRun", *[run_view()] * 4, ended())
    assert run_of(world, endpoint).wait().status == "SUCCEEDED"
    assert world.slept == pytest.approx(slept)


def test_watching_gives_it_after_every_look() -> None:
    world = World().answers("DescribeRun", run_view(), ended())
    assert [run.status for run in run_of(world).watch()] == ["RUNNING", "SUCCEEDED"]


def test_a_run_with_failures_raises_and_is_carried() -> None:
    run = run_of(failed_world())
    with pytest.raises(argosy.RunFailed, match=r"PARTIAL \(1 task failed\): 17 of 18 tasks succeeded") as f:
        run.wait()
    assert str(f.value).splitlines()[1] == "  task 3: out of memory: killed (OutOfMemoryError); its last output: two"
    assert f.value.run is run
    assert run.wait(check=False) is run


def test_waiting_ends_in_time() -> None:
    with pytest.raises(argosy.WaitTimedOut, match="was still RUNNING after 5 s"):
        run_of(World().answers("DescribeRun", run_view())).wait(timeout=5)


def test_it_can_be_awaited() -> None:
    run = run_of(World().answers("DescribeRun", run_view(), ended()))

    async def program() -> argosy.Run:
        return await run

    assert asyncio.run(program()).status == "SUCCEEDED"


def test_awaiting_a_run_with_failures_raises() -> None:
    run = run_of(failed_world())

    async def program() -> None:
        await run

    with pytest.raises(argosy.RunFailed):
        asyncio.run(program())


def test_it_is_cancelled_with_a_reason() -> None:
    world = World().answers("CancelRun", ended("CANCELLED"))
    assert run_of(world).cancel("a typo").status == "CANCELLED"
    assert asked(world) == {"action": "CancelRun", "runId": RUN_ID, "reason": "a typo"}
    run_of(world).cancel(indexes=[5, 3, 4]).cancel(indexes=[])
    assert asked(world) == {"action": "CancelRun", "runId": RUN_ID, "tasks": [[3, 5]]}


def test_what_failed_is_tried_again_within_a_budget() -> None:
    world = World().answers("RetryRun", run_view())
    assert run_of(world).retry(budget=5.0).status == "RUNNING"
    assert {key: asked(world)[key] for key in ("failed", "cancelled", "budgetUsd")} == {
        "failed": True,
        "cancelled": False,
        "budgetUsd": 5.0,
    }


def test_chosen_tasks_are_tried_again_with_more_memory() -> None:
    world = World().answers("RetryRun", run_view())
    run_of(world).retry(indexes=[7, 3, 8, 3], memory=8192)
    request = asked(world)
    assert (request["tasks"], request["memory"]) == ([[3, 3], [7, 8]], 8192)
    assert "vcpus" not in request


def test_it_is_changed_by_the_names_of_its_spec() -> None:
    world = World().answers("UpdateRun", run_view())
    assert run_of(world).update(priority=5, budget_usd=20, deadline=None, reason="it is urgent").status == "RUNNING"
    request = asked(world)
    assert request["changes"] == {"priority": 5, "budgetUsd": 20, "deadline": None}
    assert (request["runId"], request["reason"]) == (RUN_ID, "it is urgent")


def test_why_it_waits_is_the_apis_own_answer() -> None:
    world = World().answers("ExplainRun", {"sentence": "no capacity"}).answers("DescribeTask", {"attempts": []})
    assert run_of(world).explain(3) == {"sentence": "no capacity", "startUp": None, "checkpoint": None}
    assert asked(world, -2) == {"action": "ExplainRun", "runId": RUN_ID, "index": 3}


def logged(*attempts: int) -> argosy.Run:
    world = World().answers("DescribeTask", {"index": 7, "attempts": [attempt(each) for each in attempts]})
    world.others["logs"] = Logs("one", "two")
    return run_of(world)


def test_a_task_s_lines_are_those_of_its_last_attempt() -> None:
    assert logged(1, 2).logs(7) == ["one", "two"]


def test_the_lines_of_an_attempt_that_printed_nothing_are_none() -> None:
    assert logged(1, 2).logs(7, attempt=1) == []
    assert logged().logs(7) == []


def test_logs_that_aws_refuses_are_a_sentence() -> None:
    run = logged(1)
    run.access.client("logs").refuses = True
    with pytest.raises(argosy.ArgosyError, match="AWS refused the call"):
        run.logs(7)


def test_an_unknown_attempt_is_reported() -> None:
    with pytest.raises(argosy.ArgosyError, match="Task 7 has no attempt 5; its attempts: 1, 2"):
        logged(1, 2).logs(7, attempt=5)


def test_all_attempts_are_rows() -> None:
    view, _, pages = history(3, 40)
    world = World().answers("ListAttempts", *pages)
    rows = run_of(world).attempts()
    assert len(rows) == 40
    assert set(rows[0]) == {
        *("index", "attempt", "program", "outcome", "exitCode", "reason", "instance"),
        *("startedAt", "stoppedAt", "pullSeconds"),
    }
    assert {row["outcome"] for row in rows} <= {"succeeded", "failed", "interrupted", "lost", "running", "cancelled"}
    assert view["attempts"] >= 40
    typed = World().answers("ListAttempts", *pages).answers("DescribeRun", view)
    assert rows == sorted(typed.document("attempts", RUN_ID)["attempts"], key=rows.index)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]{12}Z", row["startedAt"]) for row in rows)


def test_use_is_that_of_the_attempts_that_were_measured() -> None:
    world = World().answers("DescribeRun", run_view())
    world.objects.put(f"s3://argosy-results/{RUN_ID}/attempts/use/0000003/2.json", use())
    [row] = run_of(world).use()
    assert (row["index"], row["attempt"], row["peakVcpus"], row["memoryMib"]) == (3, 2, 0.4, [100, 310, 250])


def page_world() -> World:
    view, told, pages = history(5, 60)
    world = World().answers("DescribeRun", view).answers("DescribeHistory", told).answers("ListAttempts", *pages)
    return world.answers("ExplainRun", {"sentence": "nothing waits"})


def test_its_page_is_written_as_one_file(tmp_path: Path) -> None:
    file = run_of(page_world()).report(tmp_path / "run.html")
    text = file.read_text()
    assert text.startswith("<!doctype html>")
    assert f"argosy report run {RUN_ID}" in text
    assert "http://" not in text.replace("http://www.w3.org", "")


def test_the_page_of_a_run_that_is_gone_is_refused(tmp_path: Path) -> None:
    world = World().answers("DescribeRun", api_error(404, "ResourceNotFoundException", "no such run"))
    with pytest.raises(argosy.ArgosyError, match="There is no run"):
        run_of(world).report(tmp_path / "run.html")
    assert not list(tmp_path.iterdir())
