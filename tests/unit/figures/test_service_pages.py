"""The pages of services and schedules say what the replies say."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from argosy.client.failures import AlikeAttempts
from argosy.figures.document import Page, parts
from argosy.figures.environment import ServiceSeen, environment_page
from argosy.figures.schedules import schedule_page, schedules_page
from argosy.figures.services import services_page
from tests.fakes.cli import NOW, RUN_ID
from tests.fakes.environments import FAILED, RUN, RUN_3, created, environment, in_use, live_tasks
from tests.fakes.schedule_views import fire, schedule

AT = "2026-11-21T06:50:00Z"


def text_of(page: Page, key: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", parts(page)[key]))).strip()


def tiles(page: Page) -> dict[str, tuple[str, str]]:
    return {each.label: (each.value, each.note) for each in page.tiles}


def test_services_are_a_row_each_with_what_is_to_be_counted() -> None:
    frozen = environment(name="stopped", status="FROZEN", statusReason="looking at it", healthy=0, total=4)
    page = services_page([in_use(), frozen, {**created(), "name": "new"}])
    rows = text_of(page, "services")
    assert "web service 1 3 WAITING 2 3 3 3 1 waits for instances: no capacity for c5.large" in rows
    assert "stopped service 1 1 FROZEN 0 3 0 4 0 looking at it" in rows
    assert "new service - - CREATED 0 3 0 0 0" in rows
    assert tiles(page)["Healthy"] == ("3", "of 9 tasks desired")
    assert tiles(page)["Being deployed"] == ("1", "of 3 environments")
    assert tiles(page)["Needs attention"] == ("1", "stopped")
    assert 'href="/services/web"' in parts(page)["services"]


def test_a_deployment_that_does_not_tell_all_that_is_alive_has_its_running_tasks_shown() -> None:
    before = {name: value for name, value in environment().items() if name != "total"}
    assert "web service 1 1 COMPLETED 0 3 3 3 0" in text_of(services_page([before]), "services")


def test_no_services_and_no_schedules_say_so_and_what_to_type() -> None:
    page = services_page([])
    assert "No environment has been created yet" in text_of(page, "services")
    assert "argosy env create FILE" in text_of(page, "summary")
    page = schedules_page([], NOW)
    assert "No schedule has been created yet" in text_of(page, "schedules")
    assert "argosy schedule create NAME" in text_of(page, "summary")


def seen(**changes: Any) -> ServiceSeen:
    return ServiceSeen(NOW, {1: live_tasks(RUN), 3: live_tasks(RUN_3)}, **changes)


def test_deployments_are_stretches_of_time_in_the_row_of_their_revision() -> None:
    page = environment_page(in_use(), seen())
    drawn = parts(page)["deployments"]
    assert drawn.count('class="band s-alive"') == drawn.count('class="stretch') == 4
    assert drawn.count('class="stretch s-succeeded"') == 2
    assert f"<title>deployment 2: failed after 7.0 s: {FAILED}</title>" in drawn
    said = text_of(page, "deployments")
    assert "4 deployments of 3 revisions, the last waits for instances." in parts(page)["deployments"]
    assert "4 3 WAITING 2026-11-21 06:27:30 UTC" in said
    assert "3 1 (roll-back) COMPLETED 2026-11-21 06:27:20 UTC 8.0 s 0 deployment 2 failed" in said
    assert "completed 2" in said


def test_an_environment_says_which_revision_runs_where_and_what_comes_next() -> None:
    page = environment_page(in_use(), seen(pools={f"i-{0:017x}": "c5.large in us-east-1a, spot"}))
    assert page.status == "WAITING"
    assert list(page.warnings) == ["waits for instances: no capacity for c5.large"]
    revisions = text_of(page, "revisions")
    assert "4 not deployed yet - - 0 0" in revisions
    assert f"3 target WAITING {RUN_3} 1 1" in revisions
    assert f"1 completed before COMPLETED {RUN} 2 2" in revisions
    assert f'href="/runs/{RUN_3}"' in parts(page)["revisions"]
    tasks = text_of(page, "tasks")
    assert f"0 3 RUNNING i-{0:017x} 12 s 3 exit code 3" in tasks
    assert "1 3 PENDING - - 0" in tasks
    here = text_of(page, "instances")
    assert f"i-{0:017x} c5.large in us-east-1a, spot 2 revision 3: 1, revision 1: 1" in here
    assert f"i-{1:017x} - 1 revision 1" in here
    assert "argosy env deploy web" in text_of(page, "summary")


def test_tasks_that_are_left_out_are_counted_with_the_command_that_lists_them() -> None:
    page = environment_page(in_use(), seen(tasks_left=300))
    assert f"300 more tasks: argosy tasks {RUN_3}" in text_of(page, "tasks")


def test_the_tasks_over_time_hold_from_sample_to_sample_and_end_as_they_are_now() -> None:
    def course(*samples: tuple[float, int, int]) -> dict[str, Any]:
        at, starting, running = (list(each) for each in zip(*samples, strict=True))
        return {"series": {"at": at, "starting": starting, "running": running, "intervalSeconds": 2.0}}

    first, third = course((NOW - 90, 3, 0), (NOW - 60, 0, 3)), course((NOW - 30, 1, 0))
    page = environment_page(in_use(), seen(histories={1: first, 3: third, 2: {"series": {}}}))
    assert text_of(page, "over-time").endswith(
        "When Revision 1 Revision 3 0.0 s ago 2 1 28 s ago 2 1 30 s ago 2 1 58 s ago 2 0 1m 00s ago 3 0 1m 30s ago 3 0"
    )
    assert "Tasks of 2 revisions that are starting or running; 3 at most." in parts(page)["over-time"]


def test_failures_of_the_latest_deployments_say_how_to_read_more() -> None:
    page = environment_page(in_use(), seen(failures={3: [AlikeAttempts("x", 3, 4, 0, 2, said="boom")]}))
    assert f"3 4 exit 3: x boom argosy logs {RUN_3} --task 0" in text_of(page, "failures")


def test_why_tasks_wait_is_shown_while_any_does() -> None:
    why = {"sentence": "no instance fits"}
    assert "no instance fits" in text_of(environment_page(in_use(), seen(explained=why)), "explain")
    assert "None does." in text_of(environment_page(environment(), seen(explained=why)), "explain")


def test_one_that_was_never_deployed_says_so_everywhere() -> None:
    page = environment_page(created(), ServiceSeen(NOW))
    assert {each.key for each in page.figures if each.empty} == {
        *("deployments", "over-time", "explain", "tasks", "instances", "failures"),
    }
    assert "1, not deployed yet" in text_of(page, "summary")


@pytest.mark.parametrize(("target", "can_go_back"), [(1, False), (2, True)])
def test_a_frozen_environment_names_the_ways_out(target: int, can_go_back: bool) -> None:
    frozen = environment(status="FROZEN", statusReason="a look", targetRevision=target)
    said = text_of(environment_page(frozen, ServiceSeen(NOW)), "summary")
    assert "argosy env thaw web" in said
    assert ("argosy env rollback web" in said) is can_go_back


@pytest.mark.parametrize(("kind", "is_scaled"), [("service", True), ("daemon", False)])
def test_only_a_service_is_offered_more_tasks(kind: str, is_scaled: bool) -> None:
    said = text_of(environment_page(environment(kind=kind), ServiceSeen(NOW)), "summary")
    assert ("argosy env scale web TASKS" in said) is is_scaled


def test_a_schedule_by_utc_tells_each_time_once() -> None:
    said = text_of(schedule_page(schedule(zone="UTC"), NOW), "next")
    assert "2026-11-21 07:40:00 UTC" in said
    assert "+0000" not in said


def test_tasks_that_were_left_may_be_stopped_or_taken_over() -> None:
    said = text_of(environment_page(environment(status="LEFT"), ServiceSeen(NOW)), "summary")
    assert "argosy env delete web" in said
    assert "argosy env create FILE" in said


def test_schedules_are_shown_in_the_time_of_their_zone() -> None:
    late = schedule(name="torn", armed=False, last=fire(10, "refused", reason="spec is invalid"), next=None)
    page = schedules_page([schedule(), late], NOW)
    rows = text_of(page, "schedules")
    assert "often ENABLED rate(10 minutes) Europe/Berlin 2026-11-21 08:00 +0100" in rows
    assert f"ran {RUN_ID}" in rows
    assert "torn NOT SET rate(10 minutes) Europe/Berlin - - refused - spec is invalid" in rows
    assert tiles(page)["Needs attention"] == ("1", "torn")
    assert tiles(page)["Next"][1] == "often"


def test_a_schedule_shows_every_time_in_the_row_of_its_verdict_and_those_to_come() -> None:
    page = schedule_page(schedule(), NOW)
    drawn = parts(page)["times"]
    assert drawn.count('class="stretch') == 10
    assert "<title>2026-11-21 07:40 +0100: skipped, it was skipped</title>" in drawn
    assert "5 times that were, and the next 5." in drawn
    assert "ran 2 queued 1 skipped 1 refused 1 to come 5" in text_of(page, "times")
    assert "2026-11-21 08:40 +0100 2026-11-21 07:40:00 UTC" in text_of(page, "next")
    assert f"2026-11-21 07:50 +0100 ran the clock {RUN_ID}" in text_of(page, "verdicts")
    assert '"name": "digits"' in text_of(page, "spec")
    assert "argosy schedule pause often" in text_of(page, "summary")


def test_faults_of_a_schedule_come_first() -> None:
    page = schedule_page(schedule(armed=False, overdue=AT, waiting=AT), NOW)
    assert page.status == "NOT SET"
    assert [each.partition(" 2026")[0] for each in page.warnings] == [
        "EventBridge Scheduler does not have the last change: run that command again.",
        "No run was started for",
        "The start of",
    ]
    assert schedule_page(schedule(overdue=AT), NOW).status == "OVERDUE"


def test_a_paused_schedule_has_no_next_times_and_can_be_resumed() -> None:
    page = schedule_page(schedule(state="PAUSED", nextTimes=[], fires=[]), NOW)
    assert "It is paused." in text_of(page, "next")
    assert "It has no past times" in text_of(page, "times")
    assert "None of its times has come yet." in text_of(page, "verdicts")
    assert "argosy schedule resume often" in text_of(page, "summary")
    assert "its times are in the past" in text_of(schedule_page(schedule(nextTimes=[]), NOW), "next")
