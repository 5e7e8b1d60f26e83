"""A region of an account for emulated services: the clock, the ids and the event bus.

Ids come from a counter behind a hash: they look like AWS's, and the same seed gives the same ids. Times are epoch
seconds inside the models, aware datetimes in API replies and ISO strings in events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
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
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


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


JSON = dict[str, Any]
Emit = Callable[[JSON], None]
IdSource = Callable[[], str]
"""Returns 32 lower-case hex digits, different at each call."""


def _to_no_one(message: JSON) -> None:
    """The event bus of a region that has no listener."""


@dataclass(frozen=True, slots=True)
class AwsRegion:
    """The parts that all services of a region share.

    `now` gives epoch seconds and never goes back. `emit` gets every EventBridge message in order and is called under
    the service's lock: it must not wait for another thread that calls the same service. `id_source` makes the ids of
    one service, whose name it gets; by default they depend on the service and the region alone. `readings` names the
    contracts that its services take in the less usual way (`readings.py`).
    """

    now: Callable[[], float]
    name: str = "us-east-1"
    account: str = "123456789012"
    emit: Emit = _to_no_one
    id_source: Callable[[str], IdSource] | None = None
    readings: set[str] = field(default_factory=set)

    def ids(self, service: str) -> IdSource:
        """The ids of one service, e.g. "ecs"."""
        return self.id_source(service) if self.id_source else counted_ids(f"{service}/{self.name}")

    def arn(self, service: str, resource: str) -> str:
        """e.g. arn:aws:ecs:us-east-1:123456789012:task/argosy/0f3..."""
        return f"arn:aws:{service}:{self.name}:{self.account}:{resource}"

    def message(self, event_id: str, source: str, detail_type: str, arn: str) -> JSON:
        """An EventBridge message about one resource, as of now, still without its detail."""
        return {
            "version": "0",
            "id": as_uuid(event_id),
            "detail-type": detail_type,
            "source": source,
            "account": self.account,
            "time": iso(self.now()),
            "region": self.name,
            "resources": [arn],
        }
