"""When a schedule fires, against brute force: every minute of two years in twenty zones, looked at one by one."""

from __future__ import annotations

import calendar
from datetime import UTC, date, datetime, timedelta
from functools import cache
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
QUARTER = 15  # minutes: every change of a clock in these years is at one
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


@cache
def shown(zone: str) -> NDArray[np.int64]:
    """What the clock shows at each minute, as minutes since 1970 of its own time."""
    info, quarters = ZoneInfo(zone), range(0, MINUTES, QUARTER)
    offsets = [info.utcoffset(datetime.fromtimestamp(START + 60 * each, info)) for each in quarters]
    minutes = np.repeat([int((each or timedelta()).total_seconds()) // 60 for each in offsets], QUARTER)
    return np.arange(START // 60, START // 60 + MINUTES) + minutes[:MINUTES]


def once(clock: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Where the clock shows something that it has not shown before."""
    before = np.maximum.accumulate(np.concatenate([[clock[0] - 1], clock[:-1]]))
    return clock > before


def changes(zone: str) -> list[int]:
    """Epoch seconds at which the clock is set forward or back."""
    steps = np.flatnonzero(np.diff(shown(zone)) != 1)
    return [START + 60 * (each + 1) for each in steps.tolist()]


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
def by_brute_force(cron: str, zone: str) -> NDArray[np.int64]:
    """Epoch seconds of every time in the two years."""
    minute, hour, days, months, weekdays, years = cron.split()
    clock = shown(zone)
    month_words = tuple(each.upper() for each in calendar.month_abbr[1:])
    of_day, day = clock % 1440, clock // 1440
    fits = np.isin(of_day % 60, list(numbers(minute, 0, 59))) & np.isin(of_day // 60, list(numbers(hour, 0, 23)))
    wanted = [
        number
        for number in range(int(day.min()), int(day.max()) + 1)
        if (on := date(1970, 1, 1) + timedelta(days=number)).month in numbers(months, 1, 12, month_words, 1)
        and on.year in numbers(years, 1970, 2199)
        and falls_on(on, days, weekdays)
    ]
    found = np.flatnonzero(fits & np.isin(day, wanted) & once(clock))
    return START + 60 * found


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
