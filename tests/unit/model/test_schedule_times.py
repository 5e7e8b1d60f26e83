"""Single times of schedules: daylight saving both ways, the signs of AWS's cron, and refusals."""

from __future__ import annotations

import math
from datetime import datetime

import pytest

from argosy.model.schedules.cron import BadExpression
from argosy.model.schedules.expressions import next_time, next_times, parsed, zone_of


def local(zone: str, text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone_of(zone)).timestamp()


def times(expression: str, zone: str, after: str, count: int = 3) -> list[str]:
    found = next_times(expression, zone, local(zone, after), count=count)
    return [datetime.fromtimestamp(each, zone_of(zone)).isoformat() for each in found]


def test_a_time_that_the_clock_leaves_out_in_spring_is_skipped() -> None:
    assert times("cron(30 2 * * ? *)", "Europe/Berlin", "2026-03-28T00:00", 2) == [
        "2026-03-28T02:30:00+01:00",
        "2026-03-30T02:30:00+02:00",
    ]


def test_a_time_that_the_clock_shows_twice_in_autumn_comes_once() -> None:
    assert times("cron(30 2 * * ? *)", "Europe/Berlin", "2026-10-24T12:00", 2) == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-26T02:30:00+01:00",
    ]


def test_a_rate_of_a_day_is_24_hours() -> None:
    begins = local("Europe/Berlin", "2026-03-28T12:00")
    assert next_time("rate(1 day)", "Europe/Berlin", begins, begins) == begins + 86_400


def test_once_is_once() -> None:
    text = "at(2026-12-24T18:00:00)"
    assert times(text, "Asia/Tokyo", "2026-01-01T00:00") == ["2026-12-24T18:00:00+09:00"]
    assert times(text, "Asia/Tokyo", "2026-12-24T18:00") == []


def test_nothing_fires_before_its_schedule_began() -> None:
    begins = local("UTC", "2026-06-01T03:00")
    assert next_time("cron(0 3 * * ? *)", "UTC", 0.0, begins) == begins
    assert next_time("cron(0 3 * * ? *)", "UTC", 0.0, begins + 1) == begins + 86_400


@pytest.mark.parametrize("after", [-math.inf, 0.0, 7.2e9, 1e12, math.inf])
def test_any_moment_may_be_asked_about(after: float) -> None:
    found = next_time("cron(0 0 1 1 ? *)", "UTC", after)
    assert found is None or found > after


@pytest.mark.parametrize(
    ("expression", "zone", "sentence"),
    [
        ("cron(0 0 30 2 ? *)", "UTC", "cron(0 0 30 2 ? *) never fires in UTC"),
        ("cron(0 0 31 4,6,9,11 ? *)", "UTC", "cron(0 0 31 4,6,9,11 ? *) never fires in UTC"),
        ("at(2026-03-29T02:30:00)", "Europe/Berlin", "at(2026-03-29T02:30:00) never fires in Europe/Berlin"),
        ("cron(0 3 * * ? *)", "Mars/Base", "there is no time zone 'Mars/Base': write one such as Europe/Berlin"),
        ("cron(0 3 * * ? *)", "../../etc/passwd", "there is no time zone '../../etc/passwd': write one such as"),
        ("cron(0 3 * * * *)", "UTC", "exactly one of the fields day-of-month and day-of-week must be ?"),
        ("cron(0 3 ? * ? *)", "UTC", "exactly one of the fields day-of-month and day-of-week must be ?"),
        ("cron(0 3 * * ?)", "UTC", "a cron expression has six fields"),
        ("cron(60 3 * * ? *)", "UTC", "'60' is not valid for the field minutes (0 to 59)"),
        ("cron(0 3 ? * SUM *)", "UTC", "'SUM' is not valid for the field day-of-week (1 to 7)"),
        ("cron(0 3 ? * 2#6 *)", "UTC", "'2#6' of the field day-of-week has no week"),
        ("cron(0 3 ? * 2/3 *)", "UTC", "the field day-of-week has no steps"),
        ("cron(0/0 3 * * ? *)", "UTC", "'0/0' of the field minutes has no step"),
        ("cron(0 3 ? * FRI-MON *)", "UTC", "the range FRI-MON of the field day-of-week runs backwards"),
        ("cron(0 3 32W * ? *)", "UTC", "'32' is not valid for the field day-of-month (1 to 31)"),
        ("rate(0 hours)", "UTC", "'0 hours' is not a rate"),
        ("rate(1 week)", "UTC", "'1 week' is not a rate"),
        ("at(2026-02-30T00:00:00)", "UTC", "'2026-02-30T00:00:00' is not a time"),
        ("every day", "UTC", "'every day' is not a schedule expression: write cron(0 3 * * ? *)"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(expression: str, zone: str, sentence: str) -> None:
    with pytest.raises(BadExpression) as refusal:
        parsed(expression, zone)
    assert str(refusal.value).startswith(sentence)
