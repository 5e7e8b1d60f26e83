"""`watch`: one line per change when piped, exit codes 0/1/4/130, trouble in between, rate and time to the end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from argosy.cli import figures
from argosy.cli.runs.live import bar, frame
from argosy.cli.runs.views import failure_lines
from argosy.client.failures import kinds_of
from argosy.client.progress import ProgressRate
from argosy.client.waiting import FAILURES_LIMIT
from tests.fakes.cli import FAILURE, NOW, RUN_ID, World, api_error, ended, golden, refusal, run_view, tasks

DOWN = EndpointConnectionError(endpoint_url="https://lambda")


def under_way(*views: Any) -> World:
    return World().answers("DescribeRun", *views)


def test_one_plain_line_per_change_when_piped() -> None:
    golden("watch", story().argosy("watch", RUN_ID).stdout)


def story() -> World:
    waiting = run_view(
        status="PROVISIONING",
        tasks=tasks(pending=18),
        attempts=0,
        interruptions=0,
        costUsd=0,
        onDemandCostUsd=0,
        waiting="2 instances have been ordered",
    )
    return under_way(
        waiting,
        {**waiting, "costUsd": 0.0001},
        run_view(tasks=tasks(pending=6, running=8, succeeded=4), attempts=12, interruptions=0),
        run_view(tasks=tasks(running=6, succeeded=12)),
        ended("PARTIAL", tasks=tasks(succeeded=17, failed=1), failures=[FAILURE], statusReason="1 of 18 tasks failed"),
    )


@pytest.mark.parametrize(("status", "exit_code"), [("SUCCEEDED", 0), ("PARTIAL", 1), ("FAILED", 1), ("CANCELLED", 1)])
def test_the_exit_code_says_how_the_run_ended(status: str, exit_code: int) -> None:
    assert under_way(ended(status)).argosy("watch", RUN_ID).exit_code == exit_code


def test_json_is_the_last_view_however_the_watching_ends() -> None:
    assert json.loads(story().argosy("watch", RUN_ID, "--json").stdout)["status"] == "PARTIAL"
    late = under_way(run_view()).argosy("watch", RUN_ID, "--json", "--wait-timeout", "7")
    assert (late.exit_code, json.loads(late.stdout)["status"]) == (4, "RUNNING")
    left = under_way(run_view())
    left.on_sleep = interrupt
    assert json.loads(left.argosy("watch", RUN_ID, "--json").stdout)["runId"] == RUN_ID


def test_json_lines_are_one_document_per_change() -> None:
    result = story().argosy("watch", RUN_ID, "--json-lines")
    assert [json.loads(line)["status"] for line in result.stdout.splitlines()] == [
        "PROVISIONING",
        "RUNNING",
        "RUNNING",
        "PARTIAL",
    ]


def test_ctrl_c_detaches_and_says_how_to_resume() -> None:
    world = under_way(run_view())
    world.on_sleep = interrupt
    result = world.argosy("watch", RUN_ID)
    assert result.exit_code == 130
    assert result.stderr.splitlines() == [
        f"Detached from {RUN_ID}; the run continues.",
        f"watch it again: argosy watch {RUN_ID}",
        f"stop it:        argosy cancel {RUN_ID}",
    ]
    assert {request["action"] for request in world.functions.requests} == {"DescribeRun"}


def interrupt(_: float) -> None:
    raise KeyboardInterrupt


def test_a_wait_that_times_out_exits_4_and_the_run_continues() -> None:
    world = under_way(run_view())
    result = world.argosy("watch", RUN_ID, "--wait-timeout", "7")
    assert result.exit_code == 4
    assert f"{RUN_ID} was still RUNNING after 7.0 s; the run continues." in result.stderr
    assert sum(world.slept) == 7


def test_a_minute_of_trouble_does_not_end_the_watch() -> None:
    trouble = [DOWN, refusal("ServiceUnavailableException"), api_error(429, "ThrottlingException", "slow down")]
    result = under_way(run_view(), *trouble, ended()).argosy("watch", RUN_ID)
    assert result.exit_code == 0
    assert result.stderr.count("Trying again") == 1


def test_trouble_that_stays_ends_the_watch() -> None:
    world = under_way(run_view(), DOWN)
    assert world.argosy("watch", RUN_ID).exit_code == 3
    assert len(world.functions.requests) == FAILURES_LIMIT + 2


def test_trouble_at_the_first_look_is_reported_at_once() -> None:
    world = under_way(DOWN)
    assert world.argosy("watch", RUN_ID).exit_code == 3
    assert not world.slept


def test_a_refusal_is_not_tried_again() -> None:
    world = under_way(run_view(), api_error(404, "ResourceNotFoundException", "no such run"))
    assert world.argosy("watch", RUN_ID).exit_code == 2


def test_on_a_terminal_the_last_frame_stays_with_the_next_step() -> None:
    world = story()
    world.is_terminal = True
    result = world.argosy("watch", RUN_ID)
    assert result.exit_code == 1
    assert "17 of 18 tasks succeeded, 1 failed" in result.stdout
    assert f"next: argosy logs {RUN_ID} --task 3" in result.stdout.replace("\n", "")


def test_a_frame_shows_pace_cost_and_the_failures() -> None:
    from rich.console import Console

    console = Console(width=100, force_terminal=False)
    failures = [{**FAILURE, "index": index} for index in range(5)]
    view = run_view(failures=failures, waiting="all pools are full")
    with console.capture() as capture:
        console.print(frame(view, "2.0 tasks/s, ETA 3.0 s", NOW, failure_lines(kinds_of(view))))
    golden("watch-frame", capture.get())


@pytest.mark.parametrize(
    ("counts", "share"),
    [
        ({"pending": 3}, "  0 %"),
        ({"succeeded": 1, "running": 2}, " 33 %"),
        ({"failed": 1, "cancelled": 2}, "100 %"),
        ({}, "  0 %"),
    ],
)
def test_the_bar_is_always_as_wide(counts: dict[str, int], share: str) -> None:
    assert bar(tasks(**counts), width=20).plain == "━" * 20 + " " + share


def test_the_rate_is_that_of_the_last_minute() -> None:
    progress = ProgressRate()
    for second in range(0, 200, 10):
        progress.see(NOW + second, run_view(tasks=tasks(succeeded=min(second, 100), pending=200 - min(second, 100))))
    assert figures.rate(progress) == ""  # nothing has finished for more than a minute
    progress.see(NOW + 200, run_view(tasks=tasks(succeeded=160, pending=40)))
    assert figures.rate(progress) == "1.0 tasks/s, ETA 40 s"


def test_a_slow_rate_is_per_minute() -> None:
    progress = ProgressRate()
    progress.see(NOW, run_view(tasks=tasks(pending=10)))
    progress.see(NOW + 60, run_view(tasks=tasks(pending=8, succeeded=2)))
    assert figures.rate(progress) == "2.0 tasks/min, ETA 4m 00s"


def test_a_switch_to_on_demand_and_a_missed_deadline_are_reported_as_they_happen() -> None:
    on_spot = run_view(deadline="2026-11-21T07:00:00.000Z", late=False, purchase={"reason": None})
    turned = {**on_spot, "purchase": {"reason": "on-demand since 06:30 UTC: 14 min of slack left, and spot is short"}}
    late = {**turned, "late": True}
    world = World().answers("DescribeRun", on_spot, turned, late, ended(deadline=on_spot["deadline"], late=True))
    lines = world.argosy("watch", RUN_ID).stdout.splitlines()
    assert [
        ("on-demand since 06:30 UTC: 14 min of slack left" in line, "the deadline is missed" in line)
        for line in lines[:3]
    ] == [
        (False, False),
        (True, False),
        (True, True),
    ]


@pytest.mark.parametrize(
    ("changes", "now", "said"),
    [
        ({}, 1795243200.0, "2026-11-21 07:00:00 UTC, in 20m 00s"),
        ({}, None, "2026-11-21 07:00:00 UTC"),
        ({"late": True}, None, "2026-11-21 07:00:00 UTC, missed: the run continues"),
        ({"status": "SUCCEEDED"}, None, "2026-11-21 07:00:00 UTC, met"),
        ({"status": "SUCCEEDED", "late": True}, None, "2026-11-21 07:00:00 UTC, missed"),
        ({"deadline": None}, None, ""),
    ],
)
def test_a_deadline_is_shown_with_its_progress(changes: dict[str, Any], now: float | None, said: str) -> None:
    assert figures.deadline(run_view(**{"deadline": "2026-11-21T07:00:00.000Z", **changes}), now) == said


def test_local_mode_that_is_gone_ends_the_watching_with_a_sentence() -> None:
    """It does not come back, and a new one would not have the run."""
    endpoint = "http://127.0.0.1:4566"
    gone = EndpointConnectionError(endpoint_url=endpoint)
    world = World().answers("DescribeRun", run_view(), gone)
    result = world.argosy("watch", RUN_ID, "--endpoint-url", endpoint)
    assert result.exit_code == 3
    assert result.stderr.splitlines() == [
        f"warning: Nothing answers at {endpoint}. Trying again.",
        f"error: Nothing answers at {endpoint}.",
        "next: for local AWS, type `argosy local`; otherwise check --endpoint-url, --region and the network",
    ]
    assert sum(world.slept) < 15
