"""Ids and times as AWS writes them.

Ids come from a counter behind a hash: they look like AWS's, and the same seed gives the same ids. Times are epoch
seconds inside the models, aware datetimes in API replies and ISO strings in events.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any


def utc(epoch_s: float) -> datetime:
    """An aware datetime, to the millisecond as AWS gives them."""
    return datetime.fromtimestamp(round(epoch_s, 3), UTC)


def iso(epoch_s: float) -> str:
    """e.g. 2026-11-21T06:27:33.125Z."""
    return as_iso(utc(epoch_s))


def as_iso(time: datetime) -> str:
    """The ISO string of an aware datetime, with milliseconds and a Z."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03d}Z"


def epoch_s(time: Any) -> float:
    """A datetime (naive = UTC), ISO string or number as epoch seconds. Raises ValueError or TypeError."""
    if isinstance(time, str):
        time = datetime.fromisoformat(time)
    if isinstance(time, datetime):
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    return float(time)


def with_iso_times(view: dict[str, Any]) -> dict[str, Any]:
    """The same with ISO strings instead of datetimes: the detail of an event, made from an API shape.

    Tasks and container instances have times on their first level only. Deeper levels are shared with `view`.
    """
    return {key: as_iso(value) if isinstance(value, datetime) else value for key, value in view.items()}


def counted_ids(seed: int | str = 0) -> Callable[[], str]:
    """A source of 32 lower-case hex digits, all different, the same sequence for the same seed."""
    count = 0

    def new_id() -> str:
        nonlocal count
        count += 1
        return sha256(f"{seed}/{count}".encode()).hexdigest()[:32]

    return new_id


def as_uuid(digits: str) -> str:
    """32 hex digits as 8-4-4-4-12."""
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))
