"""The table of a run's tasks: filters, order and pages are those of a plain list of rows; hostile text stays text."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.figures.document import ROWS_SHOWN, Page, parts
from argosy.figures.history import attempts_of, column, stored
from argosy.figures.tasks import TaskChoice, tasks_of, tasks_page
from argosy.model.tasks import TaskStatus
from tests.fakes.histories import history

JSON = dict[str, Any]
TASKS, AGE_S = 300, 9_000.0
HOSTILE = "</script><img src=x onerror=alert(1)>"
STATES = [each.name for each in TaskStatus]
SORTS = {"task": "index", "state": "status", "attempts": "attempt", "reason": "why", "instance": "instance"}
SORTS |= {"started": "started", "duration": "seconds"}


def run(attempts: int = 2 * TASKS, tasks: int = TASKS) -> tuple[JSON, JSON, list[JSON]]:
    """(DescribeRun, the page of ListAttempts, a row for each task): some tasks have several attempts, some none, and
    some are at work."""
    view, _, [page] = history(20, attempts)
    columns = {name: column(each).copy() for name, each in page["columns"].items()}
    rng = np.random.default_rng(7)
    columns["index"] = rng.integers(tasks * 9 // 10, size=attempts).astype("u4")
    seen: dict[int, int] = {}
    columns["attempt"] = np.array([seen.setdefault(i, 0) or 0 for i in columns["index"].tolist()], "u4")
    for row, index in enumerate(columns["index"].tolist()):
        seen[index] += 1
        columns["attempt"][row] = seen[index]
    columns["outcome"][rng.random(attempts) < 0.1] = 0
    columns["stopped"][columns["outcome"] == 0] = 0
    page["columns"] = {name: stored(each) for name, each in columns.items()}
    states = rng.integers(len(STATES), size=tasks).astype("u1")
    view = {**view, "statuses": {**stored(states), "values": STATES}}
    rows = [_row(page, columns, index, int(states[index])) for index in range(tasks)]
    return view, page, rows


def _row(page: JSON, columns: Any, index: int, status: int) -> JSON:
    mine = np.flatnonzero(columns["index"] == index)
    row: JSON = {"index": index, "status": status, "attempt": 0, "why": "", "instance": "", "started": 0, "seconds": 0}
    if not len(mine):
        return row
    last = mine[np.argmax(columns["attempt"][mine])]
    started, stopped = columns["started"][last] / 10, columns["stopped"][last] / 10
    end = AGE_S if columns["outcome"][last] == 0 else stopped
    reason, code = page["reasons"][columns["reason"][last]], int(columns["exitCode"][last])
    why = "exit 1" if code == 1 else f"exit 0: {reason}" if reason else ""
    instance = page["instances"][columns["instance"][last]]
    return {**row, "attempt": int(columns["attempt"][last]), "why": why, "instance": instance} | {
        "started": started, "seconds": max(0.0, end - started),
    }  # fmt: skip


VIEW, PAGE, ROWS = run()
TABLE = tasks_of(VIEW, attempts_of([PAGE]), AGE_S)


def fits(row: JSON, choice: TaskChoice) -> bool:
    return (
        (not choice.state or STATES[row["status"]] == choice.state)
        and choice.reason.lower() in row["why"].lower()
        and choice.instance.lower() in row["instance"].lower()
        and row["attempt"] >= choice.attempts
        and row["seconds"] >= choice.seconds - 1e-6
    )


@given(
    state=st.sampled_from(["", *STATES]),
    reason=st.sampled_from(["", "EXIT", "exit 1", "ec2", "nothing like it"]),
    instance=st.sampled_from(["", "i-", "0", "9", PAGE["instances"][0]]),
    attempts=st.integers(0, 5),
    seconds=st.sampled_from([0, 1, 60, 300, 5_000]),
    sort=st.sampled_from([*SORTS, *(f"-{name}" for name in SORTS)]),
)
def test_the_tasks_are_those_that_every_filter_fits_in_the_order_that_was_asked_for(**wanted: Any) -> None:
    choice = TaskChoice(**wanted)
    name, down = SORTS[choice.sort.removeprefix("-")], choice.sort.startswith("-")
    found = [row for row in ROWS if fits(row, choice)]
    expected = sorted(found, key=lambda row: row[name], reverse=down)
    assert [ROWS[index][name] for index in choice.rows(TABLE).tolist()] == [row[name] for row in expected]
    assert sorted(choice.rows(TABLE).tolist()) == [row["index"] for row in found]


def text_of(page: Page) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", parts(page)["tasks"]))


def links(page: Page) -> list[str]:
    return [unescape(each) for each in re.findall(r'href="([^"]+)"', "".join(parts(page).values()))]


def test_the_pages_hold_every_task_once_and_the_last_one_says_so() -> None:
    shown: list[str] = []
    for number in (1, 2):
        html = parts(tasks_page(VIEW, TABLE, TaskChoice.of(f"page={number}")))["tasks"]
        shown += re.findall(r'data-head="Task: " role="cell">(\d+)<', html)
    assert shown == [str(index) for index in range(TASKS)]
    assert f"{ROWS_SHOWN + 1} to {TASKS} of {TASKS} tasks." in html
    beyond = tasks_page(VIEW, TABLE, TaskChoice.of("page=99"))
    assert parts(beyond)["tasks"] == html


def test_a_choice_survives_the_way_through_its_address() -> None:
    choice = TaskChoice("FAILED", "exit 1 & <more>", "i-0", "3,7-12", 2, 60, "-duration", 3)
    assert TaskChoice.of(choice.address().removeprefix("?")) == choice
    assert TaskChoice.of("") == TaskChoice()


@pytest.mark.parametrize(
    "query",
    ["sort=nothing", "page=-1", "seconds=1e9", "attempts=٣", "page=99999999999", "&".join(["a=1"] * 30), "%ff=%00"],
)
def test_what_cannot_be_read_in_an_address_does_not_count(query: str) -> None:
    assert TaskChoice.of(query) == TaskChoice()


def test_indexes_that_are_none_are_named() -> None:
    page = tasks_page(VIEW, TABLE, TaskChoice.of("tasks=3-"))
    assert page.warnings == ["Tasks: '3-' is neither an index nor a range: write 3,7-12."]
    assert "No task is like this." in text_of(page)
    assert TaskChoice.of("tasks=3,7-9").rows(TABLE).tolist() == [3, 7, 8, 9]


def test_each_state_leads_to_its_tasks_and_a_heading_turns_the_order_around() -> None:
    page = tasks_page(VIEW, TABLE, TaskChoice.of("sort=duration&reason=exit"))
    assert "?state=FAILED&reason=exit&sort=duration" in links(page)
    assert "?reason=exit&sort=-duration" in links(page)
    assert 'aria-sort="ascending"' in parts(page)["tasks"]


def test_hostile_reasons_and_filters_stay_text() -> None:
    reasons = [HOSTILE if each else "" for each in PAGE["reasons"]]
    table = tasks_of(VIEW, attempts_of([{**PAGE, "reasons": reasons}]), AGE_S)
    html = "".join(parts(tasks_page(VIEW, table, TaskChoice(reason=HOSTILE))).values())
    assert "<img" not in html
    assert "&lt;img" in html


def test_a_run_without_attempts_has_a_table_too() -> None:
    nothing = {**PAGE, "columns": {name: stored(column(each)[:0]) for name, each in PAGE["columns"].items()}}
    page = tasks_page(VIEW, tasks_of(VIEW, attempts_of([nothing]), AGE_S), TaskChoice())
    assert f"of {TASKS} tasks" in text_of(page)
