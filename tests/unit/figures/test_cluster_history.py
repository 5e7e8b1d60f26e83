"""The cluster's history: rest is zero, time without samples is a gap, sums become counts by time."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from argosy.figures.cluster_history import bought, columns_of, history_figures
from argosy.figures.document import Figure
from tests.fakes.histories import ORIGIN, cluster_history

LEVELS = ("spot", "onDemand", "running", "starting", "queued", "cpuUsed", "memoryUsed", "gpuUsed", "usdPerHour")


def told(at: list[float], gaps: list[dict[str, Any]] | None = None, **changes: Any) -> dict[str, Any]:
    """A history of an hour before ORIGIN with these samples (seconds before the end)."""
    levels = {name: [1.0] * len(at) for name in LEVELS}
    found = {"from": ORIGIN - 3600, "to": ORIGIN, "at": [ORIGIN - each for each in at], "gaps": gaps or []}
    return {
        **found,
        **levels,
        "interruptions": [0] * len(at),
        "orders": [],
        "ordersLeftOut": 0,
        "damaged": 0,
        **changes,
    }


def figure_of(history: Any, key: str) -> Figure:
    return next(each for each in (*history_figures(history), *bought(history)) if each.key == key)


@pytest.mark.parametrize(("at_rest", "between"), [(True, 0.0), (False, np.nan)])
def test_between_samples_there_is_rest_or_a_hole(at_rest: bool, between: float) -> None:
    gap = {"from": ORIGIN - 3000, "to": ORIGIN - 600, "atRest": at_rest}
    columns = columns_of(told([3300, 3000, 600, 300], [gap]))
    assert columns.at.tolist() == [-3300, -3000, -3000, -600, -600, -300]
    assert np.array_equal(columns.values["spot"], [1, 1, between, between, 1, 1], equal_nan=True)


def test_a_level_holds_until_the_next_sample_and_is_no_ramp() -> None:
    drawn = str(
        figure_of(told([3000, 600], queued=[0, 60], running=[0, 0], starting=[0, 0]), "tasks-over-time").picture
    )
    path = re.search(r'class="area [^"]*queued[^"]*"[^>]* d="([^"]*)"|d="([^"]*)"[^>]*class="[^"]*queued', drawn)
    assert path is not None, drawn
    corners = len(re.findall(r"[ML]", path[1] or path[2]))
    assert corners == 2 * 3  # above and below: the first, where it ends, and the second


def test_interruptions_are_counted_by_time_and_none_twice() -> None:
    history = told([3300, 2400, 1500, 600], interruptions=[7, 7, 9, 12])
    found = figure_of(history, "interruptions")
    assert found.table is not None
    assert [count for _, count in found.table.rows] == [
        "3",
        "2",
    ]  # not the time before the first sample
    assert "5 interruptions" in str(found.picture)
    assert figure_of(told([3300, 600], interruptions=[7, 7]), "interruptions").empty


def test_a_teardown_that_begins_again_revokes_no_interruption() -> None:
    assert figure_of(told([3300, 600], interruptions=[7, 0]), "interruptions").empty


@pytest.mark.parametrize("samples", [12, 288, 1000])
def test_every_picture_of_a_course_has_a_table_of_all_of_its_time(samples: int) -> None:
    history = cluster_history(samples)
    figures = [*history_figures(history), *bought(history)]
    assert [each.key for each in figures] == [
        "over-time", "interruptions", "tasks-over-time", "in-use", "spending", "bought",
    ]  # fmt: skip
    for each in figures:
        assert each.table is not None
        assert len(each.table.rows) <= 200
        assert "nan" not in str(each.picture)
        assert not any("nan" in str(cell) for row in each.table.rows for cell in row)


def test_a_deployment_without_a_history_or_with_an_empty_one_says_so() -> None:
    for history in (None, told([])):
        [only] = history_figures(history)
        assert "Nothing was recorded" in only.empty
        assert not list(bought(history))
    assert figure_of(told([300]), "bought").empty == "Nothing was bought in this period."
    assert figure_of(told([300], cpuUsed=[0], memoryUsed=[0], gpuUsed=[0]), "in-use").empty


def test_records_that_cannot_be_read_are_counted_and_orders_left_out_too() -> None:
    history = {**cluster_history(48, orders=30), "damaged": 2, "ordersLeftOut": 5}
    assert figure_of(history, "over-time").note == "2 records of this period cannot be read."
    table = figure_of(history, "bought").table
    assert table is not None
    assert table.left == 5
    assert table.rows[0][0] > table.rows[-1][0]  # the newest first
