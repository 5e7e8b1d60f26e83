"""`argosy env status --watch`: one line for each change when piped, a picture in a terminal, and how it ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.cli import World, api_error, refusal
from tests.fakes.environments import environment

GONE = api_error(404, "ResourceNotFoundException", "the environment 'web' does not exist")
ONE = environment(status="IN_PROGRESS", healthy=1, running=2, costUsd=0.1)
WATCH = ("env", "status", "web", "--watch")


def story(*views: Any) -> World:
    return World().answers("DescribeEnvironment", *views)


def test_a_pipe_gets_a_line_for_each_change_until_it_is_gone() -> None:
    more = {**ONE, "costUsd": 0.2}
    result = story(ONE, more, environment(statusReason="all is well"), GONE).argosy(*WATCH)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "06:27:33  web  IN_PROGRESS  revision 1: 1 of 3 healthy, 2 running",
        "06:27:37  web  COMPLETED  revision 1: 3 of 3 healthy, 3 running (all is well)",
        "web is gone.",
    ]


def test_json_lines_are_one_document_for_each_change_and_json_is_the_last_one() -> None:
    said = story(ONE, ONE, environment(), GONE).argosy(*WATCH, "--json-lines").stdout.splitlines()
    assert [json.loads(line)["status"] for line in said] == ["IN_PROGRESS", "COMPLETED"]
    assert json.loads(story(ONE, environment(), GONE).argosy(*WATCH, "--json").stdout)["status"] == "COMPLETED"


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_ctrl_c_ends_the_watching_and_changes_nothing(option: list[str]) -> None:
    world = story(ONE)
    world.on_sleep = interrupt
    result = world.argosy(*WATCH, *option)
    assert result.exit_code == 130
    assert result.stderr == "Nothing was changed; watch again: argosy env status web --watch\n"
    assert {request["action"] for request in world.functions.requests} == {"DescribeEnvironment"}


def interrupt(_: float) -> None:
    raise KeyboardInterrupt


def test_one_that_is_not_there_is_an_error_and_no_end() -> None:
    result = story(GONE).argosy(*WATCH)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "'web'" in result.stderr


def test_short_trouble_is_survived_and_a_refusal_is_not() -> None:
    result = story(ONE, refusal("ServiceUnavailableException"), environment(), GONE).argosy(*WATCH)
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 3)
    denied = api_error(400, "ValidationException", "no")
    assert story(ONE, denied).argosy(*WATCH).exit_code == 2


def test_a_terminal_gets_a_picture_that_is_redrawn() -> None:
    world = World(is_terminal=True).answers("DescribeEnvironment", ONE, environment(), GONE)
    result = world.argosy(*WATCH)
    assert result.exit_code == 0
    assert "cost so far $0.250" in result.stdout
    assert "REVISION" in result.stdout
