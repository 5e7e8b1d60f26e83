"""Text from outside is shown literally: it is not parsed as markup, and it cannot control the terminal."""

# ruff: noqa: N803 - boto3's names

from __future__ import annotations

import ast
import io
import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from argosy.cli.console import PlainText, PlainTextConsole
from argosy.figures.markup import visible
from tests.fakes.cli import FAILURE, RUN_ID, World, api_error, ended, instance, run_view, task_row

CLI = Path(__file__).resolve().parents[3] / "controller" / "argosy" / "cli"
# Markup, a closing tag, an emoji code; a window title, a colour, a C1 sequence, a bidi override, an overwritten line.
HOSTILE = "[x9.large][/b]:smile:\x1b]0;t\x07\x1b[31m\x9b31m\u202eb\rz\x7f"
SHOWN = "[x9.large][/b]:smile:␛]0;t"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def hostile(document: Any, kept: frozenset[str] = frozenset({"status", "verdict", "runId", "purchase"})) -> Any:
    """The document with hostile text after every text, except those that a program has to understand."""
    if isinstance(document, dict):
        return {key: value if key in kept else hostile(value, kept) for key, value in document.items()}
    if isinstance(document, list):
        return [hostile(each, kept) for each in document]
    is_time = isinstance(document, str) and document[:4].isdigit() and document.endswith("Z")
    return document + HOSTILE if isinstance(document, str) and not is_time else document


BROKEN = {**FAILURE, "reason": "broken"}
VIEW = run_view(statusReason="why", waiting="for it", failures=[BROKEN], taskList=[task_row(0, reason="r")])
RUN = hostile({**VIEW, "created": True, "warnings": ["careful"]})
ENDED = hostile({**ended("FAILED"), "statusReason": "why", "failures": [BROKEN]})
SUPPLY = {
    "instances": 1,
    "fits": 0,
    "reasons": [{"refused": 1, "only": 1, "detail": "attribute in", "best": 1, "bestInstance": "i-1"}],
    "relaxation": "less",
}
EXPLAINED = hostile(
    {
        "runId": RUN_ID,
        "verdict": "waiting",
        "sentence": "it waits",
        "cluster": SUPPLY,
        "coming": None,
        "market": SUPPLY,
        "task": {"index": 0, "status": "PENDING", "attempts": 1, "backOffSeconds": 0, "reason": "why"},
    }
)
FORECAST = hostile(
    {
        "name": "digits",
        "tasks": 1,
        "places": 1,
        "placesHere": 0,
        "possible": False,
        "instances": [],
        "rejected": [{"reason": "none", "pools": 1, "instanceTypes": ["t3.nano"]}],
        "relaxations": [{"sentence": "less", "saves": None}],
        "assumptions": ["assumed"],
        "warnings": ["careful"],
    }
)
SPEC = str(CLI.parents[2] / "containers" / "digits" / "run.yaml")
CLUSTER = {"cluster": "argosy", "instances": [hostile(instance())], "fleets": [], "runs": []}
COMMANDS = [
    ("status", "DescribeRun", RUN, 3),
    ("status --tasks", "DescribeRun", RUN, 4),
    ("status", "ListRuns", {"runs": [RUN]}, 0),
    ("watch", "DescribeRun", ENDED, 1),
    ("explain", "ExplainRun", EXPLAINED, 3),
    ("plan", "PlanRun", FORECAST, 4),
]


@pytest.mark.parametrize("is_terminal", [True, False], ids=["terminal", "pipe"])
@pytest.mark.parametrize(
    ("words", "action", "reply", "times"), COMMANDS, ids=[f"{each[0]} {each[1]}" for each in COMMANDS]
)
def test_every_command_shows_outside_text_and_obeys_none_of_it(
    words: str, action: str, reply: Any, times: int, is_terminal: bool
) -> None:
    command, *flags = words.split()
    target = [SPEC] if command == "plan" else [] if action == "ListRuns" else [RUN_ID]
    result = World(is_terminal=is_terminal).answers(action, reply).argosy(command, *target, *flags)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert not OBEYED.search(result.stdout + result.stderr)
    assert result.stdout.replace("\n", "").count(SHOWN) >= times


def test_an_error_of_the_api_is_shown_too() -> None:
    fault = api_error(400, "ValidationException", "bad" + HOSTILE, ("name" + HOSTILE, "wrong" + HOSTILE))
    result = World().answers("DescribeRun", fault).argosy("status", RUN_ID)
    assert not OBEYED.search(result.stderr)
    assert SHOWN in result.stderr


class OneLine:
    """CloudWatch Logs with one hostile line."""

    def get_log_events(self, **request: Any) -> Any:
        assert request["startFromHead"]
        events = [{"timestamp": 1_795_242_453_000, "message": HOSTILE}] if "nextToken" not in request else []
        return {"events": events, "nextForwardToken": "f"}


class Ecs:
    """One task, which runs."""

    def describe_tasks(self, *, cluster: str, tasks: list[str]) -> Any:
        overrides = {"containerOverrides": [{"name": "main"}]}
        return {"tasks": [{"taskArn": arn, "taskDefinitionArn": cluster, "overrides": overrides} for arn in tasks]}

    def describe_task_definition(self, *, taskDefinition: str) -> Any:
        assert taskDefinition
        options = {"awslogs-group": "/ecs/argosy/tasks", "awslogs-stream-prefix": "argosy"}
        log = {"logDriver": "awslogs", "options": options}
        return {"taskDefinition": {"containerDefinitions": [{"name": "main", "logConfiguration": log}]}}


def log_of(*flags: str, is_terminal: bool) -> Any:
    arn = "arn:aws:ecs:us-east-1:1:task/argosy/aa"
    rows = {"tasks": [task_row(0, status="RUNNING", taskArn=arn)], "nextToken": None}
    world = World(others={"logs": OneLine(), "ecs": Ecs()}, is_terminal=is_terminal)
    return world.answers("DescribeRun", run_view()).answers("ListTasks", rows).argosy("logs", RUN_ID, *flags)


def test_a_log_on_a_terminal_is_shown() -> None:
    result = log_of(is_terminal=True)
    assert result.stdout == f"06:27:33 [task 0] {visible(HOSTILE)}\n"
    assert not OBEYED.search(result.stdout)


def test_a_log_in_a_pipe_is_what_the_task_wrote() -> None:
    assert log_of(is_terminal=False).stdout_bytes == f"06:27:33 [task 0] {HOSTILE}\n".encode()


def test_a_log_as_json_can_be_read_back() -> None:
    assert json.loads(log_of("--json", is_terminal=True).stdout)["lines"][0]["message"] == HOSTILE


@given(st.text(st.characters(exclude_characters="\n\t", exclude_categories=["Cs"]), max_size=40))
def test_whatever_rich_prints_is_shown_verbatim_but_for_control_characters(text: str) -> None:
    text = f"<{text}>"  # rich leaves out blanks at an end
    table = Table.grid()
    table.add_column(no_wrap=True)
    table.add_row(text)
    for renderable in (text, PlainText(text), PlainText().append(text), table):
        said = io.StringIO()
        PlainTextConsole(file=said, width=1000, soft_wrap=True).print(renderable)
        assert said.getvalue().rstrip("\n") == visible(text)


@given(st.text(max_size=60))
def test_visible_text_has_as_many_characters_and_only_harmless_ones(text: str) -> None:
    shown = visible(text)
    assert len(shown) == len(text)
    assert visible(shown) == shown
    assert all(unicodedata.category(each) not in ("Cc", "Cs") or each in "\t\n" for each in shown)
    assert not any(unicodedata.bidirectional(each) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI") for each in shown)
    shown.encode()


def test_commands_print_only_through_what_shows_control_characters() -> None:
    """No other way out: neither click's nor Python's own printing, no console with markup, no text made from it."""
    forbidden = {"echo", "echo_via_pager", "Console", "Text", "from_markup", "from_ansi", "escape"}
    allowed = {
        ("outside_text.py", "echo"),  # behind `visible`
        ("logs.py", "echo"),  # into a pipe or a file
        ("exec.py", "echo"),  # the output of a user's own command, byte for byte
        *(("console.py", each) for each in ("Console", "Text")),  # the base classes
    }
    found = set()
    for path in CLI.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = (
                getattr(node, "attr", getattr(node, "id", None)) if isinstance(node, ast.Attribute | ast.Name) else None
            )
            if name in forbidden:
                found.add((path.name, name))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                found.add((path.name, "print"))
    assert found - {(name, "Console") for name, what in found if what == "Console" and _is_annotation(name)} == allowed


def _is_annotation(name: str) -> bool:
    """Modules that name rich's Console as a type only."""
    [path] = list(CLI.rglob(name))
    return "if TYPE_CHECKING:\n    from rich.console import Console\n" in path.read_text(encoding="utf-8")
