"""How are moments written? Epoch seconds inside, aware datetimes in API replies, ISO strings in events."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def utc(epoch_s: float) -> datetime:
    """An aware datetime, to the millisecond as AWS gives them."""
    return datetime.fromtimestamp(round(epoch_s, 3), UTC)


def iso(epoch_s: float) -> str:
    """e.g. 2026-11-21T06:27:33.125Z."""
    return as_iso(utc(epoch_s))


def as_iso(moment: datetime) -> str:
    """The ISO string of an aware datetime, with milliseconds and a Z."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def epoch_s(moment: Any) -> float:
    """A datetime (naive = UTC), ISO string or number as epoch seconds. Raises ValueError or TypeError."""
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    if isinstance(moment, datetime):
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return float(moment)


def isoformed(view: dict[str, Any]) -> dict[str, Any]:
    """With ISO strings instead of datetimes: how an API shape becomes the detail of an event. Tasks and container
    instances have times on their first level only; what lies deeper is shared with `view`."""
    return {key: as_iso(value) if isinstance(value, datetime) else value for key, value in view.items()}
