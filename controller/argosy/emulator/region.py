"""A region of an account for emulated services: the clock, the ids and the event bus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from argosy.emulator.ids_and_times import as_uuid, counted_ids, iso

JSON = dict[str, Any]
Emit = Callable[[JSON], None]
IdSource = Callable[[], str]
"""Returns 32 lower-case hex digits, different at each call."""


def _to_no_one(message: JSON) -> None:
    """The event bus of a region that has no listener."""


@dataclass(frozen=True, slots=True)
class AwsRegion:
    """What every service of a region shares.

    `now` gives epoch seconds and never goes back. `emit` gets every EventBridge message in order and is called under
    the service's lock: it must not wait for another thread that calls the same service. `id_source` makes the ids of
    one service, whose name it gets; by default they depend on the service and the region alone.
    """

    now: Callable[[], float]
    name: str = "us-east-1"
    account: str = "123456789012"
    emit: Emit = _to_no_one
    id_source: Callable[[str], IdSource] | None = None

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
