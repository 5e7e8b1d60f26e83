"""Figures in sentences for users: money, times of day and durations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

_FIRST_S, _LAST_S = (int(datetime(*day, tzinfo=UTC).timestamp()) for day in ((1, 1, 1), (9999, 12, 31)))


def utc(at: float) -> datetime:
    """The nearest time that `datetime` can hold, so that no stored value breaks a view. at: epoch seconds."""
    return datetime.fromtimestamp(min(max(at, _FIRST_S), _LAST_S), UTC)


FOR_A_CORE = "waits for a core of this machine"  # local mode's: a task launched beyond the number that runs at once


def dollars(usd: float | None) -> str:
    """`$5.00`, `$0.50`, `$0.0123`: only significant digits."""
    if not usd or usd >= 1 or round(usd, 2) == usd:
        return f"${usd or 0.0:,.2f}"
    return f"${usd:.4f}" if usd >= 0.001 else f"${usd:.2g}"


def first_of(names: Sequence[str], most: int, count: int | None = None) -> list[str]:
    """`["a", "b", "and 3 more"]`. count: of all, if `names` may be only some of them."""
    more = (len(names) if count is None else count) - min(most, len(names))
    return [*names[:most], *([f"and {more:,} more"] if more else [])]


def time_of_day(at: float) -> str:
    """`14:03:07 UTC`, for sentences about the same day. at: epoch seconds."""
    return f"{utc(at):%H:%M:%S} UTC"


def hour_and_minute(at: float) -> str:
    """`14:03 UTC`, where seconds would be too much detail. at: epoch seconds."""
    return f"{utc(at):%H:%M} UTC"


def date_and_time(at: float) -> str:
    """`2026-11-21 14:03:07 UTC`. at: epoch seconds."""
    return f"{utc(at):%Y-%m-%d %H:%M:%S} UTC"


def duration(seconds: float) -> str:
    """`40 s`, `14 min`, `2 h 5 min`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    hours, rest = divmod(round(seconds / 60), 60)
    return f"{hours} h {rest} min" if hours else f"{rest} min"
