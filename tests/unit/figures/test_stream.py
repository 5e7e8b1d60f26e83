"""The task stream: every attempt of the hour once for each device that it held, at its own time, and none of others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.figures.document import Page, parts
from argosy.figures.history import attempts_of, column
from argosy.figures.lanes import Lifetime, by_device
from argosy.figures.stream import SPAN_S, RunHistory, stream_page
from tests.fakes.histories import ORIGIN, history

NOW = ORIGIN + 5_000.0


def record(run_id: str, attempts: int = 200, seed: int = 0, later_s: float = 0.0) -> RunHistory:
    """A run whose every time is so much later, on instances with four GPUs if their type has any."""
    _, told, pages = history(12, attempts, seed)
    found = attempts_of(pages)
    has_gpus = np.array([each["type"].startswith("g") for each in told["instances"]])[found.instance]
    mask = np.where(has_gpus, np.arange(attempts) % 15 + 1, 0).astype("u4")
    return RunHistory(run_id, {**told, "origin": told["origin"] + later_s}, replace(found, gpu_mask=mask))


def drawn(page: Page) -> list[tuple[str, str, int, float]]:
    """(run, row, task, start in seconds) of each bar."""
    data: Any = page.figures[0].data
    bars = (column(data["attempts"][name]).tolist() for name in ("run", "lane", "index", "start"))
    return sorted(
        (data["runs"][run], data["instances"]["ids"][lane], index, start / 10)
        for run, lane, index, start in zip(*bars, strict=True)
    )


@settings(deadline=None, max_examples=10)
@given(st.integers(1, 60), st.integers(0, 3), st.floats(-2_000, 2_000))
def test_each_attempt_of_the_hour_is_one_bar_on_each_device_that_it_held(count: int, seed: int, later_s: float) -> None:
    told = [record("a-1", count, seed), record("b-2", count, seed + 1, later_s)]
    wanted = []
    for run in told:
        begun = run.history["origin"] - (NOW - SPAN_S)
        for row in range(count):
            started, stopped = (float(each[row]) + begun for each in (run.attempts.started, run.attempts.stopped))
            if stopped <= 0.1 or started >= SPAN_S:
                continue
            name = run.attempts.instances[run.attempts.instance[row]]
            mask = int(run.attempts.gpu_mask[row])
            rows = [f"{name} GPU {bit}" for bit in range(4) if mask >> bit & 1] or [name]
            wanted += [(run.run_id, each, int(run.attempts.index[row]), max(0.1, started)) for each in rows]
    page = stream_page(told, NOW)
    found = drawn(page) if page.figures[0].data else []
    assert [each[:3] for each in found] == [each[:3] for each in sorted(wanted)]
    assert np.allclose([each[3] for each in found], [each[3] for each in sorted(wanted)], atol=0.051)


def test_the_table_sums_each_run_and_leads_to_it() -> None:
    page = stream_page([record("a-1"), record("b-2", 100, 1)], NOW)
    table = page.figures[0].table
    assert table is not None
    assert {'href="/runs/a-1"' in str(row[0]) for row in table.rows} == {True, False}
    assert "At work" in parts(page)["stream"]


def test_an_instance_whose_run_ended_before_it_ends_with_its_last_attempt_once_it_is_gone() -> None:
    run = record("a-1")
    for each in run.history["instances"]:
        each["endedAt"] = None
    ends = [
        column(stream_page([run], NOW, living).figures[0].data["instances"]["ended"])  # type: ignore[index]
        for living in (None, frozenset[str]())
    ]
    assert (ends[0] == 10 * SPAN_S).all()
    assert (ends[1] < 10 * SPAN_S).any()


def test_an_instance_that_joined_before_the_picture_begins_is_never_drawn_as_starting() -> None:
    data: Any = stream_page([record("a-1", 2_000)], NOW + 600).figures[0].data
    launched, registered = (column(data["instances"][name]) for name in ("launched", "registered"))
    assert (registered[launched == 0] > 0).all()


def test_instances_of_one_kind_have_as_many_rows_even_where_a_gpu_was_idle() -> None:
    attempts = record("a-1", 2).attempts
    attempts = replace(
        attempts, instances=["i-1", "i-2"], instance=np.array([0, 1], "u4"), gpu_mask=np.array([0b11, 0b1], "u4")
    )
    lives = [Lifetime(name, "g", 0.0, 1.0, 9.0, interrupted=False) for name in ("i-1", "i-2", "i-3")]
    rows, held = by_device(lives, attempts)
    assert [each.id for each in rows] == [f"i-{number} GPU {gpu}" for number in (1, 2, 3) for gpu in (0, 1)]
    assert len(held) == 3


def test_without_a_task_in_the_hour_the_page_says_so_and_names_the_runs_that_it_lacks() -> None:
    page = stream_page([record("a-1")], NOW + 1e6, left_out=3)
    assert "No task has run" in page.figures[0].empty
    assert page.warnings == ["3 earlier runs of this hour cannot be shown here."]
    assert stream_page([], NOW).figures[0].empty
