"""Completion in three shells, its proposals for a run, and `help`."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from typer.testing import CliRunner

from argosy.cli.main import app
from argosy.cli.session import Tools
from tests.fakes.cli import CLEAN_SHELL, RUN_ID, World, refusal, run_view


def completed(world: World, line: str, shell: str = "bash", **environment: str) -> list[str]:
    """The completions of the last word."""
    words = line.split(" ")
    asked = {
        "_ARGOSY_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    tools = Tools(world.client)
    result = CliRunner().invoke(app, [], prog_name="argosy", obj=tools, env=CLEAN_SHELL | asked | environment)
    return [each for each in result.stdout.splitlines() if each]


@pytest.mark.parametrize(
    ("shell", "said"), [("bash", ["status"]), ("fish", ["status\tHow a run is doing, at a glance."])]
)
def test_a_command_is_completed_by_its_name(shell: str, said: list[str]) -> None:
    assert completed(World(), "argosy stat", shell) == said


def test_zsh_shows_what_a_command_is_for() -> None:
    assert '"status":"How a run is doing, at a glance."' in completed(World(), "argosy stat", "zsh")[0]


def test_commands_that_are_imported_late_and_options_are_completed() -> None:
    assert completed(World(), "argosy report ") == ["run", "benchmark"]
    assert completed(World(), "argosy submit --det") == ["--detach"]


RUNS = {"runs": [run_view(), run_view(runId="sweep-261121-062733-aaaa", name="sweep")], "nextToken": None}


@pytest.mark.parametrize(
    ("typed", "proposed"),
    [
        ("", ["last", "digits", "sweep", RUN_ID, "sweep-261121-062733-aaaa"]),
        ("l", ["last"]),
        ("sweep-", ["sweep-261121-062733-aaaa"]),
        ("x", []),
    ],
)
@pytest.mark.parametrize("command", ["status", "cancel", "logs", "events", "report run"])
def test_runs_are_proposed_by_name_and_id(command: str, typed: str, proposed: list[str]) -> None:
    world = World().answers("ListRuns", RUNS)
    assert completed(world, f"argosy {command} {typed}") == proposed


def test_the_deployment_that_is_asked_is_that_of_the_command_line_and_is_not_waited_for() -> None:
    world = World().answers("ListRuns", RUNS)
    completed(world, "argosy status --stage dev ", ARGOSY_ENDPOINT_URL="http://127.0.0.1:4567")
    assert {(each.endpoint_url, each.stage) for each in world.connections} == {("http://127.0.0.1:4567", "dev")}
    assert all(each.patience_s for each in world.connections)


@pytest.mark.parametrize("trouble", [refusal("AccessDeniedException"), {"statusCode": 500, "body": {"error": {}}}])
def test_where_no_deployment_answers_nothing_is_proposed(trouble: Any) -> None:
    assert completed(World().answers("ListRuns", trouble), "argosy status ") == []


def test_a_fault_of_ours_is_not_hidden() -> None:
    from argosy.cli.options import runs

    class Context:
        obj = Tools(World().answers("ListRuns", ZeroDivisionError()).client)
        params = MappingProxyType[str, Any]({})

    with pytest.raises(ZeroDivisionError):
        runs(Context(), "")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Usage: argosy [OPTIONS] COMMAND"),
        (["status"], "Usage: argosy status [OPTIONS]"),
        (["report", "run"], "Usage: argosy report run [OPTIONS]"),
        (["query"], "Usage: argosy query [OPTIONS]"),
    ],
)
def test_help_is_that_of_the_command_that_is_named(words: list[str], said: str) -> None:
    result = World().argosy("help", *words)
    assert result.exit_code == 0
    assert said in result.stdout


@pytest.mark.parametrize(
    ("words", "why"), [(["stats"], "No such command 'stats'"), (["status", "x"], "has no subcommands")]
)
def test_help_for_what_is_no_command_is_refused(words: list[str], why: str) -> None:
    result = World().argosy("help", *words)
    assert result.exit_code == 2
    assert why in result.stderr
