"""On which days and minutes does a cron expression of EventBridge Scheduler fall?

Six fields, `? L W #` included: https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html. Expressions
whose meaning AWS leaves open (a range that wraps around, a step within a range, L, W or # within a list) are refused.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property

FIRST_YEAR, LAST_YEAR = 1970, 2199
_MONTHS = {name.upper(): number for number, name in enumerate(calendar.month_abbr) if name}
_DAYS = {name: number for number, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"), start=1)}
NAMES = ("minutes", "hours", "day-of-month", "month", "day-of-week", "year")
SATURDAY = 7


class BadExpression(ValueError):
    """The expression was refused; the message says why in one sentence."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """One of the six fields: its least and greatest value, and the names of its numbers."""

    name: str
    least: int
    greatest: int
    words: Mapping[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        value = self.words.get(text.upper())
        if value is None and re.fullmatch(r"[0-9]{1,4}", text, re.ASCII):
            value = int(text)
        if value is None or not self.least <= value <= self.greatest:
            raise BadExpression(
                f"{text[:20]!r} is not valid for the field {self.name} ({self.least} to {self.greatest})"
            )
        return value

    def values(self, text: str) -> frozenset[int]:
        """All values that a field of numbers, ranges, steps and lists names."""
        return frozenset(value for part in text.split(",") for value in self._part(part))

    def _part(self, text: str) -> range:
        start, slash, step = text.partition("/")
        if slash:
            first = self.least if start == "*" else self.number(start)
            if not re.fullmatch(r"[1-9][0-9]{0,3}", step, re.ASCII):
                raise BadExpression(
                    f"{text[:20]!r} of the field {self.name} has no step: write START/STEP, such as 0/15"
                )
            return range(first, self.greatest + 1, int(step))
        if text == "*":
            return range(self.least, self.greatest + 1)
        low, dash, high = text.partition("-")
        if not dash:
            return range(self.number(text), self.number(text) + 1)
        if self.number(low) > self.number(high):
            raise BadExpression(f"the range {text[:20]} of the field {self.name} runs backwards")
        return range(self.number(low), self.number(high) + 1)


_MINUTES, _HOURS = _Kind("minutes", 0, 59), _Kind("hours", 0, 23)
_DAYS_OF_MONTH, _MONTHS_OF_YEAR = _Kind("day-of-month", 1, 31), _Kind("month", 1, 12, _MONTHS)
_DAYS_OF_WEEK, _YEARS = _Kind("day-of-week", 1, 7, _DAYS), _Kind("year", FIRST_YEAR, LAST_YEAR)


@dataclass(frozen=True)
class Cron:
    """The six fields in AWS's notation. Raises BadExpression for what AWS would refuse."""

    text: str  # the text between the brackets

    def __post_init__(self) -> None:
        if len(self._fields) != len(NAMES):
            count = len(self._fields)
            raise BadExpression(f"a cron expression has six fields ({' '.join(NAMES)}); this one has {count}")
        if (self._days == "?") == (self._weekdays == "?"):
            raise BadExpression("exactly one of the fields day-of-month and day-of-week must be ?")
        _ = self.times, self._months, self._years  # this checks their values
        self._days_of(2024, 2)

    @property
    def _fields(self) -> list[str]:
        return self.text.split()

    @property
    def _days(self) -> str:
        return self._fields[2].upper()

    @property
    def _weekdays(self) -> str:
        return self._fields[4].upper()

    @cached_property
    def times(self) -> list[tuple[int, int]]:
        """(hour, minute) of each time on a day, ascending."""
        minutes, hours = _MINUTES.values(self._fields[0]), _HOURS.values(self._fields[1])
        return [(hour, minute) for hour in sorted(hours) for minute in sorted(minutes)]

    @cached_property
    def _months(self) -> frozenset[int]:
        return _MONTHS_OF_YEAR.values(self._fields[3])

    @cached_property
    def _years(self) -> frozenset[int]:
        return _YEARS.values(self._fields[5])

    def days(self, first: date) -> Iterator[date]:
        """Every day from `first` on that has times, to the end of the last year."""
        for year in sorted(each for each in self._years if each >= first.year):
            for month in sorted(self._months):
                if (year, month) >= (first.year, first.month):
                    yield from (day for day in self._days_of(year, month) if day >= first)

    def _days_of(self, year: int, month: int) -> list[date]:
        last = calendar.monthrange(year, month)[1]
        numbers = self._by_date(year, month, last) if self._weekdays == "?" else self._by_weekday(year, month, last)
        return [date(year, month, number) for number in sorted(numbers)]

    def _by_date(self, year: int, month: int, last: int) -> set[int]:
        text = self._days
        if text == "L":
            return {last}
        if text.endswith("W"):
            number = _DAYS_OF_MONTH.number(text[:-1])
            return {_nearest_weekday(year, month, number, last)} if number <= last else set()
        return {number for number in _DAYS_OF_MONTH.values(text) if number <= last}

    def _by_weekday(self, year: int, month: int, last: int) -> set[int]:
        text = self._weekdays
        if text == "L":
            return _on_weekday(year, month, last, SATURDAY)
        if text.endswith("L"):
            return {max(_on_weekday(year, month, last, _DAYS_OF_WEEK.number(text[:-1])))}
        if "#" in text:
            day, _, which = text.partition("#")
            if not re.fullmatch("[1-5]", which, re.ASCII):
                raise BadExpression(f"{text[:20]!r} of the field day-of-week has no week: write DAY#1 to DAY#5")
            found = sorted(_on_weekday(year, month, last, _DAYS_OF_WEEK.number(day)))
            return set(found[int(which) - 1 : int(which)])
        if "/" in text:
            raise BadExpression("the field day-of-week has no steps")
        return {number for day in _DAYS_OF_WEEK.values(text) for number in _on_weekday(year, month, last, day)}


def weekday_of(day: date) -> int:
    """1 = Sunday, as AWS counts."""
    return day.isoweekday() % 7 + 1


def _on_weekday(year: int, month: int, last: int, weekday: int) -> set[int]:
    return {number for number in range(1, last + 1) if weekday_of(date(year, month, number)) == weekday}


def _nearest_weekday(year: int, month: int, number: int, last: int) -> int:
    """The nearest weekday, Monday to Friday, in the same month: the 1st, a Saturday, gives the 3rd."""
    day = date(year, month, number)
    if weekday_of(day) == SATURDAY:
        return number - 1 if number > 1 else number + 2
    if weekday_of(day) == 1:
        return number + 1 if number < last else number - 2
    return number
