"""Axes name round values inside their bounds, stacks add up, and every chart is well-formed and has a description."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.figures import axes, svg
from argosy.figures.axes import Axis

SIZES = st.floats(min_value=1e-6, max_value=1e12)


@given(SIZES)
def test_an_axis_of_numbers_holds_its_largest_value_with_two_to_twelve_rising_ticks(high: float) -> None:
    axis = axes.numbers(high)
    values = [value for value, _ in axis.ticks]
    assert axis.high >= high * (1 - 1e-9)
    assert (values[0], values[-1]) == (0.0, axis.high)
    assert values == sorted(set(values))
    assert 2 <= len(values) <= 12
    assert len({label for _, label in axis.ticks}) == len(values)


@given(st.floats(0, 1e7), st.floats(0.001, 1e8))
def test_an_axis_of_time_has_its_ticks_inside(low: float, span: float) -> None:
    axis = axes.seconds(low, low + span)
    values = [value for value, _ in axis.ticks]
    assert all(low - 1e-3 <= value <= low + span + 1e-3 for value in values)
    assert values == sorted(set(values))
    assert len(values) <= 8


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.25, "0.25"), (1500, "1,500"), (20_000, "20k"), (1.5e6, "1.5M"), (3e9, "3G")]
)
def test_large_numbers_are_written_short(value: float, text: str) -> None:
    assert axes.number(value) == text


@pytest.mark.parametrize(
    ("high", "labels"),
    [(0.0, ["$0.0", "$0.2"]), (0.0042, ["$0.000", "$0.001"]), (7.0, ["$0", "$2"]), (250.0, ["$0", "$50"])],
)
def test_dollars_have_as_many_decimals_as_the_step_needs(high: float, labels: list[str]) -> None:
    assert [label for _, label in axes.dollars(high).ticks][:2] == labels


def test_tasks_are_not_counted_in_halves() -> None:
    assert [label for _, label in axes.counts(2).ticks] == ["0", "1", "2"]


def test_times_before_an_origin_are_negative_and_odd_ones_exact() -> None:
    assert [label for _, label in axes.seconds(-86_400.0 * 3, 0.0).ticks][:1] == ["-3 d"]
    assert ("2h 30m") not in [label for _, label in axes.seconds(0, 36_000).ticks]


def frame(**changes: object) -> svg.Frame:
    given = {"x": Axis(0.0, 10.0, [(0.0, "0"), (10.0, "10")]), "y": Axis(0.0, 4.0, [(0.0, "0"), (4.0, "4")])}
    given |= {"x_name": "time", "y_name": "tasks", "said": "What it shows.", **changes}  # type: ignore[dict-item]
    return svg.Frame(**given)  # type: ignore[arg-type]


def shapes(chart: str) -> list[list[tuple[float, float]]]:
    found = re.findall(r' d="([^"]+)"', chart)
    return [[(float(x), float(y)) for x, y in re.findall(r"([-\d.]+) ([-\d.]+)", path)] for path in found]


def test_areas_lie_on_each_other() -> None:
    at = np.array([0.0, 10.0])
    made = svg.areas(
        frame(), at, [svg.Layer("a", "useful", np.array([1.0, 2.0])), svg.Layer("b", "idle", np.array([1.0, 2.0]))]
    )
    first, second = shapes(made)
    assert first == [(0, 750), (1000, 500), (1000, 1000), (0, 1000)]
    assert second == [(0, 500), (1000, 0), (1000, 500), (0, 750)]


def test_where_a_value_is_not_known_there_is_a_hole() -> None:
    at, values = np.array([0.0, 2.0, 4.0, 6.0, 8.0]), np.array([1.0, 1.0, np.nan, 2.0, 2.0])
    layer, empty = svg.Layer("a", "0", values), svg.Layer("b", "1", np.full(5, np.nan))
    [line] = re.findall(r' d="([^"]+)"', svg.lines(frame(), [(at, layer), (at, empty)]))
    assert line == "M0.0 750.0L200.0 750.0M600.0 500.0L800.0 500.0"
    [area] = re.findall(r' d="([^"]+)"', svg.areas(frame(), at, [layer]))
    assert area.count("M") == area.count("Z") == 2
    assert "nan" not in area


def test_a_line_of_prices_holds_until_the_next() -> None:
    series = svg.Layer("a", "0", np.array([1.0, 3.0]))
    [line] = shapes(svg.lines(frame(), [(np.array([0.0, 10.0]), series)], steps=True))
    assert line == [(0, 750), (1000, 750), (1000, 250)]


def test_nothing_is_drawn_for_a_series_of_zeros_but_it_has_its_place_in_the_legend() -> None:
    made = svg.areas(frame(), np.array([0.0, 1.0]), [svg.Layer("none", "failed", np.zeros(2), "0")])
    assert shapes(made) == []
    assert "none" in made


def test_points_say_their_names_and_marks_outside_are_left_out() -> None:
    found = [svg.Point("this plan", "0", 5.0, 2.0, (1.0, 9.0), (1.0, 3.0)), svg.Point("other", "1", 1.0, 1.0)]
    made = svg.points(frame(marks=[(5.0, "now"), (50.0, "never")]), found)
    assert (made.count("whisker"), "<title>this plan</title>" in made) == (2, True)
    assert ("now" in made, "never" in made) == (True, False)


@given(st.lists(st.floats(0, 1e9), min_size=2, max_size=20), st.text(max_size=20))
def test_every_chart_is_well_formed_and_stays_inside(values: list[float], name: str) -> None:
    at = np.arange(len(values), dtype="f8")
    top = axes.counts(max(values))
    made = svg.areas(frame(x=axes.seconds(0.0, at[-1]), y=top), at, [svg.Layer(name, "useful", np.array(values))])
    ElementTree.fromstring(made)
    assert all(-0.1 <= y <= 1000.1 for path in shapes(made) for _, y in path)
    assert "style=" not in made
    assert 'aria-label="What it shows."' in made


def test_bars_leave_out_what_is_empty() -> None:
    made = svg.bars(frame(), np.array([0.0, 5.0, 10.0]), [svg.Layer("a", "useful", np.array([2.0, 0.0]))])
    assert made.count("V500.0") == 1
