"""Figures in sentences say as much as a reader needs, and no more."""

from __future__ import annotations

import pytest

from argosy.model.wording import date_and_time, dollars, duration, first_of, hour_and_minute, time_of_day


@pytest.mark.parametrize(("seconds", "said"), [(40, "40 s"), (840, "14 min"), (7500, "2 h 5 min")])
def test_durations_read_naturally(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("usd", "said"),
    [
        (None, "$0.00"),
        (5.0, "$5.00"),
        (1234.5, "$1,234.50"),
        (0.5, "$0.50"),
        (0.0123, "$0.0123"),
        (0.000456, "$0.00046"),
    ],
)
def test_money_has_no_more_digits_than_say_something(usd: float | None, said: str) -> None:
    assert dollars(usd) == said


def test_times_of_day_are_in_utc() -> None:
    assert (time_of_day(50_587.0), hour_and_minute(50_587.0)) == ("14:03:07 UTC", "14:03 UTC")


@pytest.mark.parametrize("at", [1.8e12, 1e30, -1e30, float("inf")])
def test_a_time_that_the_calendar_does_not_have_is_the_nearest_that_it_has(at: float) -> None:
    assert date_and_time(at).endswith("-12-31 00:00:00 UTC" if at > 0 else "-01-01 00:00:00 UTC")


@pytest.mark.parametrize(
    ("names", "count", "said"),
    [
        ([], None, []),
        (["a", "b"], None, ["a", "b"]),
        (["a", "b", "c"], None, ["a", "b", "and 1 more"]),
        (["a", "b", "c"], 1503, ["a", "b", "and 1,501 more"]),  # some of all are given
        (["a"], 3, ["a", "and 2 more"]),
    ],
)
def test_of_many_names_the_first_are_given_and_the_others_are_counted(
    names: list[str], count: int | None, said: list[str]
) -> None:
    assert first_of(names, 2, count) == said
