"""Tables at every width: no id and no number is ever cut, and hidden columns are named."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.cli.console import PlainText, PlainTextConsole
from argosy.cli.tables import GAP, TEXT_WIDTH, PlainTable, fitting
from tests.fakes.cli import NOW, OUTPUT, RUN_ID, Pages, World, ended, instance, run_view, task_row, tasks
from tests.fakes.environments import ENDPOINT, deployment, environment
from tests.fakes.histories import cluster_history
from tests.fakes.reader import PLAN
from tests.fakes.sharing import sharing

ROOT = Path(__file__).parents[3]
WIDTHS = (60, 80, 200)
ROWS = st.lists(st.tuples(*[st.text("abcdefgh-0123456789/.$", max_size=30)] * 5), min_size=1, max_size=6)
SENTENCES = st.lists(st.text("abc ", max_size=90), min_size=6, max_size=6)


def drawn(table: Any, width: int) -> str:
    said = io.StringIO()
    PlainTextConsole(file=said, width=width).print(table)
    return said.getvalue()


def table_of(rows: list[tuple[str, ...]], sentences: list[str]) -> PlainTable:
    table = PlainTable("RUN", ">DONE", ">COST", ">SPENT", "ZONE", "~REASON", least=("SPENT", "COST", "ZONE"))
    for row, sentence in zip(rows, sentences, strict=False):
        table.add_row(*row, sentence)
    return table


@given(ROWS, SENTENCES, st.integers(30, 260))
def test_every_id_and_number_is_shown_whole_or_its_column_is_named_as_missing(
    rows: list[tuple[str, ...]], sentences: list[str], width: int
) -> None:
    shown = drawn(table_of(rows, sentences), width)
    named = re.findall(r"not shown, to fit the width: (.*)$", " ".join(shown.split()))
    missing = set(named[-1].split(", ")) if named else set()
    assert missing <= {"SPENT", "COST", "ZONE"}
    for row in rows:
        for heading, cell in zip(("RUN", "DONE", "COST", "SPENT", "ZONE"), row, strict=True):
            assert heading in missing or cell.strip() in ("", "-") or cell in shown or len(cell) > width - 8


@given(ROWS, SENTENCES, st.integers(40, 260))
def test_no_line_is_wider_than_the_terminal_and_no_word_of_a_text_is_lost(
    rows: list[tuple[str, ...]], sentences: list[str], width: int
) -> None:
    shown = drawn(table_of(rows, sentences), width)
    assert all(len(line.rstrip()) <= width for line in shown.splitlines())
    for sentence in sentences[: len(rows)]:
        assert shown.count("b") + shown.count("a") >= sentence.count("b") + sentence.count("a")


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=9), st.sets(st.integers(0, 8)), st.sets(st.integers(0, 8)),
    st.integers(1, 300),
)  # fmt: skip
def test_columns_fit_and_none_goes_without_need(widths: list[int], texts: set[int], goes: set[int], room: int) -> None:
    places = range(len(widths))
    chosen, may_go = [each for each in sorted(texts) if each in places], [each for each in goes if each in places]
    may_go = may_go[: len(widths) - 1]
    found = fitting(widths, chosen, may_go, room)
    if found is None:
        return
    assert sum(found.values()) + GAP * (len(found) - 1) <= room
    assert all(found[place] == widths[place] or place in chosen for place in found)
    assert all(found[place] >= min(widths[place], TEXT_WIDTH) for place in found)
    gone = [place for place in places if place not in found]
    assert gone == sorted(may_go[: len(gone)])
    assert sum(widths) + GAP * (len(widths) - 1) > room or not gone


def test_where_nothing_else_helps_rows_become_blocks() -> None:
    table = PlainTable("RUN", ">DONE", "STATUS", "~REASON")
    table.add_row(RUN_ID, "1/2", PlainText("RUNNING", "cyan"), "no pool has room")
    table.add_row("b", "2/2", "-", "")
    assert drawn(table, 38).splitlines() == [
        f"RUN     {RUN_ID}", "DONE    1/2", "STATUS  RUNNING", "REASON  no pool has room", "",
        "RUN     b", "DONE    2/2",
    ]  # fmt: skip


def test_an_empty_column_is_dropped_first_and_without_a_note() -> None:
    table = PlainTable("RUN", ">COST", "GPU", least=("COST", "GPU"))
    table.add_row("r" * 20, "$1.00", "-")
    assert drawn(table, 28).splitlines()[0].split() == ["RUN", "COST"]
    assert "not shown" not in drawn(table, 28)
    assert " ".join(drawn(table, 21).split()[2:]) == "not shown, to fit the width: COST"


def test_a_line_break_in_a_cell_does_not_break_the_row() -> None:
    table = PlainTable("A", "B")
    table.add_row("x\ny\tz", "1")
    assert drawn(table, 80).splitlines()[1].split() == ["x", "y", "z", "1"]


class Market:
    """EC2 with one spot price."""

    meta = SimpleNamespace(region_name="us-east-1")

    def get_paginator(self, operation: str) -> Pages:
        at = datetime.fromtimestamp(NOW - 600, UTC)
        row = {"InstanceType": "g4dn.12xlarge", "AvailabilityZone": "us-east-1a", "SpotPrice": "1.5", "Timestamp": at}
        return Pages(lambda **_: [{"SpotPriceHistory": [row]}])


COST = {
    "byPool": [
        {
            "instanceType": "g4dn.12xlarge", "availabilityZone": "us-east-1a", "purchase": "on-demand",
            "instanceHours": 3_000.5, "costUsd": 12_345.67, "usefulUsd": 9_000.0, "onDemandCostUsd": 23_456.78,
        }
    ],
    "byWaste": {f"{kind}Usd": 2_469.13 for kind in ("useful", "boot", "idle", "redone", "failed")},
    "byLine": {"instancesUsd": 12_000.0, "disksUsd": 300.0, "addressesUsd": 45.67},
    "estimates": {"assumed": {"logGbPerAttempt": 1e-5, "imageGb": 0.5}, "logsUsd": 1.0, "imageTransferUsd": 2.0},
    "instanceHours": 3_000.5,
}  # fmt: skip
ATTEMPT = {
    "attempt": 12, "outcome": "FAILED", "exitCode": 139, "reason": "SIGSEGV: a segmentation fault",
    "instance": "i-0a1b2c3d4e5f60718", "startedAt": "2026-11-21T06:26:33.000Z", "stoppedAt": "2026-11-21T06:27:33.000Z",
}  # fmt: skip
LONG = "a sentence that says why it ended so, at some length, with the words that ECS has for it"
BIG = tasks(succeeded=999_999, failed=12, cancelled=345)
VIEWS: dict[str, tuple[tuple[str, ...], World, tuple[str, ...]]] = {
    "runs": (
        ("runs",),
        World().answers("ListRuns", {"runs": [run_view(tasks=BIG), ended("FAILED")], "nextToken": None}),
        (RUN_ID, "999,999/1,000,356", "345", "12"),
    ),
    "tasks": (
        ("tasks", RUN_ID),
        World().answers(
            "ListTasks",
            {"tasks": [task_row(123_456, instance="i-0a1b2c3d4e5f60718", reason=LONG)], "nextToken": None, "asOf": 1},
        ),
        ("123456", "i-0a1b2c3d4e5f60718", "SUCCEEDED", "length"),
    ),
    "instances": (
        ("instances",),
        World().answers("ListInstances", {"instances": [instance(instanceType="g4dn.12xlarge")], "nextToken": None}),
        ("i-0a1b2c3d4e5f60718", "g4dn.12xlarge", "ACTIVE"),
    ),
    "status": (
        ("status", RUN_ID),
        World().answers("DescribeRun", run_view(statusReason=LONG)),
        (RUN_ID, "17, 1 interrupted"),
    ),
    "prices": (
        ("prices", "--type", "g4dn.12xlarge"),
        World(others={"ec2": Market()}).answers("DescribeCluster", {"fleets": []}),
        ("g4dn.12xlarge", "us-east-1a", "1.5000"),
    ),
    **{
        f"cost {by}": (
            ("cost", RUN_ID, "--by", by),
            World().answers("DescribeRun", ended(cost=COST, costUsd=12_345.67, onDemandCostUsd=23_456.78)),
            expected,
        )
        for by, expected in (("pool", ("g4dn.12xlarge", "$12,345.67")), ("waste", ("redone",)), ("line", ("together",)))
    },
    "queues": (
        ("queues",),
        World().answers("DescribeSharing", sharing()),
        ("research", "default", "50%"),
    ),
    "env list": (
        ("env", "list"),
        World().answers("ListEnvironments", {"environments": [environment(statusReason=LONG)]}),
        ("web", "COMPLETED"),
    ),
    "env status": (
        ("env", "status", "web"),
        World().answers("DescribeEnvironment", environment(statusReason=LONG)),
        ("3 of 3 healthy", "web-261121-062643-k3f9"),
    ),
    "env endpoints": (
        ("env", "endpoints", "web"),
        World().answers("DescribeEnvironment", environment(endpoints=[ENDPOINT])),
        ("10.0.0.7:32768", "8080", "yes"),
    ),
    "env deployments": (
        ("env", "deployments", "web"),
        World().answers("DescribeEnvironment", environment(deployments=[deployment(1, 1, "FAILED", reason=LONG)])),
        ("FAILED",),
    ),
    "plan": (
        ("plan", str(ROOT / "containers" / "digits" / "run.yaml")),
        World().answers("PlanRun", PLAN),
        ("c6i.2xlarge", "us-east-1a", "0.1432"),
    ),
    "attempts": (
        ("attempts", RUN_ID, "--task", "123456"),
        World()
        .answers("DescribeTask", {"attempts": [ATTEMPT], "attemptsLeftOut": 0, "damaged": 0})
        .answers("DescribeRun", run_view()),
        ("123456", "failed", "139"),
    ),
    "catalogue": (("catalogue", "--type", "g4dn.*"), World(), ("g4dn.12xlarge", "3.9120")),
    "cluster --since": (
        ("cluster", "--since", "1d"),
        World().answers("DescribeCluster", {"history": cluster_history(300)}),
        ("QUEUED", "RUNNING", "$/H"),
    ),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("terminal", ["xterm-256color", "dumb"])
@pytest.mark.parametrize("name", VIEWS)
def test_every_view_shows_its_ids_whole_at_every_width(name: str, terminal: str, width: int) -> None:
    words, world, expected = VIEWS[name]
    world.is_terminal = True
    result = world.argosy(*words, COLUMNS=str(width), TERM=terminal, NO_COLOR="1")
    assert result.exit_code == 0, result.output
    for part in expected:
        assert part in result.stdout
    lines = result.stdout.splitlines()
    assert all(len(line) <= width for line in lines if not line.startswith("next: "))
    assert not any(len(line.strip()) == 1 for line in lines), "a heading of one letter in a line"
    assert "\x1b" not in result.stdout


def test_a_command_to_type_next_is_one_line_and_so_is_an_address() -> None:
    world = World(is_terminal=True).answers("DescribeRun", ended())
    lines = world.argosy("status", RUN_ID, COLUMNS="40").stdout.splitlines()
    assert f"next: argosy results {RUN_ID} --out digits-results" in lines
    assert OUTPUT in "".join(line.strip() for line in lines)


def test_a_dumb_terminal_gets_a_line_per_change_and_no_movements() -> None:
    world = World(is_terminal=True).answers("DescribeRun", run_view(), ended())
    said = world.argosy("watch", RUN_ID, TERM="dumb").stdout
    assert "06:27:33  RUNNING" in said
    assert "\x1b" not in said


@pytest.mark.parametrize("shell", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_an_error_has_no_colour_where_none_is_wanted(shell: dict[str, str]) -> None:
    result = World().argosy("cluster", "--since", "soon", **shell)
    assert result.exit_code == 2
    assert "\x1b" not in result.stderr
