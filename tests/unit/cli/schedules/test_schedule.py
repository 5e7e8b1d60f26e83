"""`argosy schedule`: the requests to the api, the output, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.cli import RUN_ID, World, api_error, run_view

FIRE = {
    "scheduledTime": "2026-11-23T02:00:00Z", "verdict": "skipped", "decidedAt": "2026-11-23T02:00:01.000Z",
    "runId": RUN_ID, "reason": "its last run was still open", "replaced": [], "byHand": False,
}  # fmt: skip
VIEW: dict[str, Any] = {
    "name": "nightly", "state": "ENABLED", "expression": "cron(0 3 * * ? *)", "zone": "Europe/Berlin",
    "overlap": "skip", "startWithin": 1800.0, "revision": 3, "armed": True, "next": "2026-11-24T02:00:00Z",
    "overdue": None, "waiting": None, "last": FIRE, "nextTimes": ["2026-11-24T02:00:00Z"], "fires": [FIRE], "spec": {},
}  # fmt: skip
TEXT = 'version: 1\nname: digits\ncontainer: {image: argosy/digits, command: ["${range}"]}\narray: {range: "0:10"}\n'


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "run.yaml").write_text(TEXT)
    return str(tmp_path / "run.yaml")


INVALID = api_error(400, "ValidationException", "1 field is invalid", ("container.image", "is unknown"))


def test_create_sends_the_spec_with_when_and_how(file: str) -> None:
    world = World().answers("CreateSchedule", {**VIEW, "warnings": ["it has no limit"]})
    words = ["--cron", "0 3 * * ? *", "--zone", "Europe/Berlin", "--overlap", "queue", "--start-within", "10m"]
    result = world.argosy("schedule", "create", "nightly", "--spec", file, *words)
    assert result.exit_code == 0, result.stderr
    (request,) = world.functions.requests
    assert {name: request[name] for name in request if name != "spec"} == {
        "action": "CreateSchedule", "name": "nightly", "expression": "cron(0 3 * * ? *)", "zone": "Europe/Berlin",
        "overlap": "queue", "startWithin": 600,
    }  # fmt: skip
    assert request["spec"]["name"] == "digits"
    assert "next: Tue 2026-11-24 03:00 +0100" in result.stdout
    assert "it has no limit" in result.stderr


@pytest.mark.parametrize(
    ("words", "expression"),
    [(["--rate", "6 hours"], "rate(6 hours)"), (["--at", "2026-12-24T18:00"], "at(2026-12-24T18:00:00)")],
)
def test_the_other_ways_to_say_when(file: str, words: list[str], expression: str) -> None:
    world = World().answers("CreateSchedule", VIEW)
    world.argosy("schedule", "create", "nightly", "--spec", file, *words)
    assert world.functions.requests[0]["expression"] == expression


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--spec", "run.yaml"], "Say when"),
        (["--rate", "1 hour"], "Say what to run"),
        (["--rate", "1 hour", "--at", "2026-12-24T18:00"], "--rate and --at exclude each other"),
        (
            ["--rate", "1 hour", "--spec", "run.yaml", "--start-within", "soon"],
            "--start-within 'soon' is not a duration",
        ),
    ],
)
def test_missing_and_superfluous_options_are_reported(words: list[str], sentence: str) -> None:
    world = World()
    result = world.argosy("schedule", "create", "nightly", *words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert world.functions.requests == []


def test_a_fault_of_the_deployment_is_placed_in_the_file(file: str) -> None:
    world = World().answers("CreateSchedule", INVALID)
    result = world.argosy("schedule", "create", "nightly", "--spec", file, "--rate", "1 hour")
    assert result.exit_code == 2
    assert f"{file}:3:" in result.stderr
    assert "1 fault; no schedule was changed." in " ".join(result.stderr.split())


TIMES = ("expression", "cron(0 3 30 2 ? *) never fires in UTC")
NAMED = ("name", "must be a name")


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ([TIMES], ["error: --cron, --rate or --at: cron(0 3 30 2 ? *) never fires in UTC; no schedule was changed."]),
        ([NAMED], ["error: NAME: must be a name; no schedule was changed."]),
        (
            [TIMES, ("container.image", "is unknown")],
            ["error: there are 2 faults; no schedule was changed.", f"  --cron, --rate or --at: {TIMES[1]}",
             "  FILE:3:13: container.image: is unknown"],
        ),
    ],
)  # fmt: skip
def test_what_is_typed_wrongly_has_no_place_in_the_file(
    file: str, faults: list[tuple[str, str]], said: list[str]
) -> None:
    world = World().answers("CreateSchedule", api_error(400, "ValidationException", "invalid", *faults))
    result = world.argosy("schedule", "create", "nightly", "--spec", file, "--cron", "0 3 30 2 ? *")
    assert result.exit_code == 2
    assert result.stderr.replace(file, "FILE").splitlines() == said


def test_a_name_that_is_wrong_in_the_file_has_its_place_there(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(TEXT.replace("digits", "No Name", 1))
    result = World().argosy("schedule", "create", "nightly", "--spec", str(tmp_path / "run.yaml"), "--rate", "1 day")
    assert result.exit_code == 2
    assert "run.yaml:2:1: name:" in result.stderr


def test_an_update_without_a_file_is_refused_in_the_words_of_its_options() -> None:
    world = World().answers("DescribeSchedule", VIEW)
    world.answers("UpdateSchedule", api_error(400, "ValidationException", "invalid", ("startWithin", "is too long")))
    result = world.argosy("schedule", "update", "nightly", "--start-within", "2d")
    assert (result.exit_code, result.stderr) == (2, "error: --start-within: is too long; no schedule was changed.\n")
    world.answers("UpdateSchedule", api_error(409, "ConflictException", "read its current state, then try again"))
    assert (
        world.argosy("schedule", "update", "nightly", "--zone", "UTC").stderr
        == "error: read its current state, then try again\n"
    )


def test_show_asks_for_as_many_times_as_are_wanted() -> None:
    world = World().answers("DescribeSchedule", VIEW)
    world.argosy("schedule", "show", "nightly", "--next", "7")
    world.argosy("schedule", "show", "nightly")
    asked = {"action": "DescribeSchedule", "name": "nightly"}
    assert world.functions.requests == [{**asked, "times": 7}, asked]


def test_update_asks_for_the_revision_that_there_is(file: str) -> None:
    world = World().answers("DescribeSchedule", VIEW).answers("UpdateSchedule", VIEW)
    assert world.argosy("schedule", "update", "nightly", "--overlap", "allow").exit_code == 0
    assert world.functions.requests[-1] == {
        "action": "UpdateSchedule", "name": "nightly", "overlap": "allow", "revision": 3,
    }  # fmt: skip
    world.argosy("schedule", "update", "nightly", "--spec", file, "--revision", "2", "--zone", "UTC")
    request = world.functions.requests[-1]
    assert (request["revision"], request["zone"], request["spec"]["name"]) == (2, "UTC", "digits")
    assert "Say what to change" in world.argosy("schedule", "update", "nightly").stderr


def test_list_shows_next_time_and_last_verdict_by_the_clock_of_the_zone() -> None:
    late = {**VIEW, "name": "other", "overdue": "2026-11-23T02:00:00Z", "last": None}
    unset = {**VIEW, "name": "unset", "armed": False, "next": None}
    world = World().answers("ListSchedules", {"schedules": [VIEW, late, unset], "nextToken": None})
    result = world.argosy("schedule", "list")
    lines = result.stdout.splitlines()
    assert "skipped 2026-11-23 03:00 +0100" in lines[1]
    assert ("ENABLED" in lines[1], "OVERDUE" in lines[2], "NOT SET" in lines[3]) == (True, True, True)
    assert '"schedules"' in world.argosy("schedule", "list", "--json").stdout
    empty = World().answers("ListSchedules", {"schedules": [], "nextToken": None})
    assert empty.argosy("schedule", "list").stdout == "There are no schedules.\n"


def test_show_says_what_is_wrong_and_what_became_of_its_times() -> None:
    view = {**VIEW, "armed": False, "overdue": "2026-11-23T02:00:00Z", "waiting": "2026-11-22T02:00:00Z"}
    result = World().answers("DescribeSchedule", view).argosy("schedule", "show", "nightly")
    for sentence in (
        "does not have the last change",
        "no run was started for",
        "waits for the previous run to end",
        "its last run was still open",
        RUN_ID,
    ):
        assert sentence in result.stdout
    by_hand = {**VIEW, "state": "PAUSED", "nextTimes": [], "fires": [{**FIRE, "byHand": True, "verdict": "ran"}]}
    shown = World().answers("DescribeSchedule", by_hand).argosy("schedule", "show", "nightly").stdout
    assert "next: paused" in shown
    assert "ran by hand" in shown


def test_pause_resume_run_now_and_delete() -> None:
    world = World().answers("PauseSchedule", {**VIEW, "state": "PAUSED", "nextTimes": []})
    world.answers("ResumeSchedule", VIEW).answers("RunScheduleNow", run_view()).answers("DeleteSchedule", {"name": "n"})
    assert "next: paused" in world.argosy("schedule", "pause", "nightly").stdout
    assert "next: Tue 2026-11-24 03:00 +0100" in world.argosy("schedule", "resume", "nightly").stdout
    assert f"{RUN_ID} started" in world.argosy("schedule", "run-now", "nightly").stdout
    assert world.functions.requests[-1]["clientToken"] == "token-1"
    assert "its runs are kept" in world.argosy("schedule", "delete", "nightly").stdout
    for words in (["pause", "n"], ["run-now", "n"], ["delete", "n"]):
        assert world.argosy("schedule", *words, "--json").stdout.startswith("{")


def test_a_schedule_that_is_not_there_names_the_list() -> None:
    world = World().answers("DescribeSchedule", api_error(404, "ResourceNotFoundException", "there is no schedule 'x'"))
    result = world.argosy("schedule", "show", "x")
    assert "argosy schedule list" in result.stderr
