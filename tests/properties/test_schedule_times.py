"""When a schedule fires, against brute force: every minute of two years in twenty zones, looked at one by one."""

from __future__ import annotations

import calendar
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from argosy.model.schedules.expressions import next_time, next_times

FIRST, LAST = datetime(2026, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
START = int(FIRST.timestamp())
MINUTES = int((LAST - FIRST).total_seconds()) // 60
HOUR, QUARTER = 60, 15  # minutes: every change of a clock in these years is at a quarter
NEVER = -1
ZONES = (
    "UTC", "Europe/Berlin", "Europe/London", "Europe/Lisbon", "Atlantic/Azores", "America/New_York", "America/Chicago",
    "America/St_Johns", "America/Havana", "America/Santiago", "America/Asuncion", "Africa/Cairo", "Africa/Casablanca",
    "Asia/Beirut", "Asia/Kathmandu", "Asia/Tokyo", "Australia/Sydney", "Australia/Lord_Howe", "Pacific/Auckland",
    "Pacific/Chatham",
)  # fmt: skip
EXPRESSIONS = (
    "0 3 * * ? *", "30 2 * * ? *", "0 0 * * ? *", "*/20 * * * ? *", "15,45 1-3 * * ? *", "0/7 0/5 1,15,31 * ? *",
    "0 6 L * ? *", "0 6 1W * ? *", "0 6 31W * ? *", "0 6 15W 1-6 ? *", "0 9 ? * MON-FRI *", "0 9 ? * 6L *",
    "0 9 ? * L *", "0 9 ? * 3#2 *", "0 9 ? * SUN#5 *", "5 4 29 2 ? *", "59 23 31 DEC ? 2027", "30 1 ? MAR,OCT,NOV 1 *",
)  # fmt: skip
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@lru_cache(2)
def shown(zone: str) -> NDArray[np.int64]:
    """The clock's reading at each minute, as minutes since 1970 of its own time."""
    info = ZoneInfo(zone)

    def offset(minute: int) -> int:
        return int((info.utcoffset(datetime.fromtimestamp(START + 60 * minute, info)) or timedelta()).total_seconds())

    minutes = range(0, MINUTES + HOUR, HOUR)
    hours = [offset(minute) for minute in minutes]
    offsets = np.repeat(hours[:-1], HOUR)
    for minute, before, after in zip(minutes, hours, hours[1:], strict=False):
        if before != after:
            offsets[minute : minute + HOUR] = np.repeat(
                [offset(minute + each) for each in range(0, HOUR, QUARTER)], QUARTER
            )
    return np.arange(START // 60, START // 60 + MINUTES) + offsets // 60


@lru_cache(2)
def first_shown(zone: str) -> tuple[int, NDArray[np.int64]]:
    """A minute of the zone's own time; of it and of each later one the first minute at which the clock shows it, or
    NEVER."""
    clock = shown(zone)
    base = int(clock.min())
    found = np.full(int(clock.max()) - base + 1, NEVER)
    found[clock[::-1] - base] = np.arange(MINUTES)[::-1]  # of several the first is written last
    return base, found


@cache
def changes(zone: str) -> list[int]:
    """Epoch seconds at which the clock is set forward or back."""
    steps = np.flatnonzero(np.diff(shown(zone)) != 1)
    return [START + 60 * (each + 1) for each in steps.tolist()]


@cache
def numbers(field: str, least: int, greatest: int, words: tuple[str, ...] = (), first: int = 0) -> set[int]:
    for place, word in enumerate(words):
        field = field.replace(word, str(first + place))
    found: set[int] = set()
    for part in field.split(","):
        start, _, step = part.partition("/")
        low, _, high = start.partition("-")
        if step:
            found |= set(range(least if start == "*" else int(start), greatest + 1, int(step)))
        elif part == "*":
            found |= set(range(least, greatest + 1))
        else:
            found |= set(range(int(low), int(high or low) + 1))
    return found


def falls_on(day: date, days: str, weekdays: str) -> bool:
    """Day by day, with no regard to how the code under test does it."""
    last, weekday = calendar.monthrange(day.year, day.month)[1], day.isoweekday() % 7 + 1
    if days == "L":
        return day.day == last
    if days.endswith("W"):
        wanted = int(days[:-1])
        if wanted > last or weekday in (1, 7):
            return False
        month = [date(day.year, day.month, each) for each in range(1, last + 1)]
        working = [each for each in month if each.isoweekday() < 6]
        # Of a Saturday and a Sunday it is the Friday before and the Monday after.
        return day == min(working, key=lambda each: (abs(each.day - wanted), each.day))
    if days != "?":
        return day.day in numbers(days, 1, 31)
    if weekdays == "L":
        return weekday == 7
    if weekdays.endswith("L"):
        return weekday == int(weekdays[:-1]) and day.day > last - 7
    if "#" in weekdays:
        name, _, which = weekdays.partition("#")
        return weekday in numbers(name, 1, 7, _DAYS, 1) and (day.day - 1) // 7 + 1 == int(which)
    return weekday in numbers(weekdays, 1, 7, _DAYS, 1)


@cache
def days_of(days: str, months: str, weekdays: str, years: str) -> NDArray[np.int64]:
    """Days since 1970, those beside the two years included."""
    month_words = tuple(each.upper() for each in calendar.month_abbr[1:])
    beside = [FIRST.date() + timedelta(days=number) for number in range(-1, (LAST - FIRST).days + 1)]
    fit = [
        on
        for on in beside
        if on.month in numbers(months, 1, 12, month_words, 1)
        and on.year in numbers(years, 1970, 2199)
        and falls_on(on, days, weekdays)
    ]
    return np.array([(on - date(1970, 1, 1)).days for on in fit], dtype=np.int64)


@cache
def by_brute_force(cron: str, zone: str) -> NDArray[np.int64]:
    """Epoch seconds of every time in the two years."""
    minute, hour, *fields = cron.split()
    base, first = first_shown(zone)
    of_day = [60 * each + other for each in numbers(hour, 0, 23) for other in numbers(minute, 0, 59)]
    wanted = (1440 * days_of(*fields)[:, None] + of_day).ravel() - base
    found = first[wanted[(wanted >= 0) & (wanted < len(first))]]
    return START + 60 * np.sort(found[found != NEVER])


@pytest.mark.slow
@pytest.mark.parametrize("zone", ZONES)
def test_the_times_of_two_years_are_those_of_brute_force(zone: str) -> None:
    for cron in EXPRESSIONS:
        expected = by_brute_force(cron, zone)
        for first in range(0, len(expected), max(1, len(expected) // 12)):
            some = expected[first : first + 4]
            found = next_times(f"cron({cron})", zone, some[0] - 1, count=len(some))
            assert found == some.tolist(), (cron, zone)
        for change in changes(zone):
            around = expected[(expected > change - 5 * 3600) & (expected < change + 5 * 3600)][:30]
            found = next_times(f"cron({cron})", zone, change - 5 * 3600, count=len(around))
            assert found == around.tolist(), (cron, zone, change)


@given(
    cron=st.sampled_from(EXPRESSIONS),
    zone=st.sampled_from(("Europe/Berlin", "Australia/Lord_Howe")),
    share=st.floats(0, 0.95),
)
def test_the_next_time_is_the_first_one_later_than_any_moment(cron: str, zone: str, share: float) -> None:
    after = START + 3600 + share * MINUTES * 60
    later = by_brute_force(cron, zone)
    later = later[later > after]
    if len(later):
        assert next_time(f"cron({cron})", zone, after) == later[0]


@given(minutes=st.integers(1, 100_000), begins=st.integers(0, 2_000_000_000), after=st.integers(0, 2_100_000_000))
def test_a_rate_counts_from_its_beginning_whatever_the_clock_does(minutes: int, begins: int, after: int) -> None:
    found = next_time(f"rate({minutes} minutes)", "Europe/Berlin", after, begins)
    assert found is not None
    assert found > after
    assert found > begins
    assert (found - begins) % (60 * minutes) == 0
    assert found - 60 * minutes <= max(after, begins)
