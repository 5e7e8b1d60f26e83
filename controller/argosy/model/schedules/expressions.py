"""When does a schedule fire next?

It takes `cron(...)`, `rate(...)` and `at(...)` like EventBridge Scheduler, and treats daylight saving as documented
there: a local time that is skipped in spring does not fire, and one that occurs twice in autumn fires once. A rate
ignores changes of the clock: a day is 24 hours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import takewhile
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from argosy.model.schedules.cron import FIRST_YEAR, LAST_YEAR, BadExpression, Cron

END_S = datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC).timestamp()
_UNITS = {"minute": 60, "hour": 3600, "day": 86_400}
_RATE = re.compile(r"([1-9][0-9]{0,8}) +(minute|hour|day)s?", re.ASCII)
_AT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}", re.ASCII)
_FORM = re.compile(r"(cron|rate|at)\((.*)\)", re.ASCII)
_HINT = "write cron(0 3 * * ? *), rate(6 hours) or at(2026-12-24T18:00:00)"


@dataclass(frozen=True, slots=True)
class Rate:
    """Fires at a fixed interval from the beginning of the schedule."""

    every_s: int


@dataclass(frozen=True, slots=True)
class SingleTime:
    """Fires once, at a local time in the schedule's zone."""

    at: datetime


Expression = Cron | Rate | SingleTime


def parsed(text: str, zone: str = "UTC") -> Expression:
    """Raises BadExpression, also for an expression that never fires in this zone, and for an unknown zone."""
    expression = _read(text)
    zone_of(zone)
    if not isinstance(expression, Rate) and next_time(text, zone, -math.inf) is None:
        raise BadExpression(f"{text} never fires in {zone}")
    return expression


@lru_cache(64)
def zone_of(name: str) -> ZoneInfo:
    """Raises BadExpression."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as fault:
        raise BadExpression(f"there is no time zone {name[:60]!r}: write one such as Europe/Berlin") from fault


def next_time(text: str, zone: str, after: float, begins: float = 0.0) -> float | None:
    """The first time later than `after` and not before `begins`, in epoch seconds; None = there is none.

    begins: when the schedule was created or resumed; rates count from there. Raises BadExpression.
    """
    expression = _read(text)
    if isinstance(expression, Rate):
        moment = begins + expression.every_s * max(1, math.floor((after - begins) / expression.every_s) + 1)
        return moment if moment < END_S else None
    moments = _moments(expression, zone_of(zone), max(after, begins - 1))
    return next(moments, None)


def next_times(text: str, zone: str, after: float, begins: float = 0.0, count: int = 5) -> list[float]:
    """The next few times."""
    found: list[float] = []
    while len(found) < count and (moment := next_time(text, zone, found[-1] if found else after, begins)) is not None:
        found.append(moment)
    return found


def shows(expression: Cron | SingleTime, zone: str, time: float) -> bool:
    """Whether the clocks of the zone show one of its local times, for the first or the second time. time: epoch
    seconds."""
    shown = datetime.fromtimestamp(time, zone_of(zone)).replace(tzinfo=None)
    return shown in takewhile(lambda each: each <= shown, _shown(expression, shown.date()))


@lru_cache(256)
def _read(text: str) -> Expression:
    found = _FORM.fullmatch(text)
    if found is None:
        raise BadExpression(f"{text[:60]!r} is not a schedule expression: {_HINT}")
    kind, inside = found[1], found[2].strip()
    if kind == "cron":
        return Cron(inside)
    return _rate(inside) if kind == "rate" else _once(inside)


def _rate(text: str) -> Rate:
    found = _RATE.fullmatch(text)
    if found is None:
        raise BadExpression(f"{text[:60]!r} is not a rate: write a number and minutes, hours or days")
    return Rate(int(found[1]) * _UNITS[found[2]])


def _once(text: str) -> SingleTime:
    try:
        if _AT.fullmatch(text):
            return SingleTime(datetime.fromisoformat(text))
    except ValueError:
        pass  # no such date: said below
    raise BadExpression(f"{text[:60]!r} is not a time: write it as 2026-12-24T18:00:00, without a zone")


def _moments(expression: Cron | SingleTime, zone: ZoneInfo, after: float) -> Iterator[float]:
    """The times later than `after`, ascending. A local time that occurs twice counts once, the first time."""
    for shown in _shown(expression, _day_before(after, zone)):
        moment = shown.replace(tzinfo=zone).timestamp()
        is_there = datetime.fromtimestamp(moment, zone).replace(tzinfo=None) == shown
        if is_there and moment > after:
            yield moment


def _shown(expression: Cron | SingleTime, first: date) -> Iterator[datetime]:
    """The local times of the expression, from a day on."""
    if isinstance(expression, SingleTime):
        yield from [expression.at] if FIRST_YEAR <= expression.at.year <= LAST_YEAR else []
        return
    for day in expression.days(first):
        for hour, minute in expression.times:
            yield datetime.combine(day, time(hour, minute))


def _day_before(after: float, zone: ZoneInfo) -> date:
    """The first day to check."""
    if after <= datetime(FIRST_YEAR, 1, 3, tzinfo=UTC).timestamp():
        return date(FIRST_YEAR, 1, 1)
    if after >= datetime(LAST_YEAR, 12, 31, tzinfo=UTC).timestamp():
        return date(LAST_YEAR, 12, 31)
    return datetime.fromtimestamp(after, zone).date() - timedelta(days=1)
