"""Schedules in the table. Of two requests that write the same version of a schedule, one wins and one reads again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from argosy.api.requests import TOKEN_DAYS
from argosy.model.schedules.record import (
    FIRES,
    SCHEDULES,
    WAITING,
    WRITTEN,
    Fire,
    Schedule,
    ScheduleState,
    fire_from,
    fire_key,
    schedule_from,
    to_bytes,
)
from argosy.ports import Key, Store

MARK_KEPT_S = 86_400.0  # no reader of an older version is left by then: the function may take a minute
KEPT_S = TOKEN_DAYS * 86_400.0  # verdicts, and deleted schedules


def read(store: Store, name: str) -> Schedule | None:
    """A schedule, also a deleted one."""
    body = store.read((SCHEDULES, name))
    return None if body is None else schedule_from(body)


def fire_of(store: Store, name: str, time: float) -> Fire | None:
    """What was decided about a time."""
    body = store.read((FIRES, fire_key(name, time)))
    return None if body is None else fire_from(body)


def fires_known(store: Store, name: str, times: list[float]) -> set[float]:
    """Those of the times that were decided about."""
    keys = {(FIRES, fire_key(name, time)): time for time in times}
    return {keys[key] for key in store.read_many(keys)}


@dataclass(slots=True)
class ExtraWrites:
    """What is written together with a schedule: `items` only if none of them exists."""

    items: dict[Key, bytes] = field(default_factory=dict)
    replacing: dict[Key, bytes] = field(default_factory=dict)
    expires_at: dict[Key, float] = field(default_factory=dict)

    def decided(self, name: str, fire: Fire, *, again: bool = False) -> None:
        """The verdict about a time. again: it replaces an earlier one."""
        key = (FIRES, fire_key(name, fire.time))
        (self.replacing if again else self.items)[key] = to_bytes(fire)
        self.expires_at[key] = fire.decided_at + KEPT_S

    def waits(self, name: str, now: float, *, waits: bool) -> None:
        """Whether a firing of the schedule waits for a run to end."""
        self.replacing[WAITING, name] = b"waits" if waits else b"no"
        self.expires_at[WAITING, name] = now + KEPT_S


def write(store: Store, schedule: Schedule, now: float, beside: ExtraWrites | None = None) -> Schedule:
    """Store the next version, if the version that it was made from is still the last. Raises AlreadyExists."""
    beside = beside or ExtraWrites()
    known = replace(schedule, version=schedule.version + 1)
    mark, key = (WRITTEN, f"{known.name}#{known.version:010}"), (SCHEDULES, known.name)
    expires_at = {**beside.expires_at, mark: now + MARK_KEPT_S}
    if known.state is ScheduleState.DELETED:
        expires_at[key] = now + KEPT_S
    body = to_bytes(known)
    # The mark shows which request wrote it when a reply was lost.
    store.create({mark: hashlib.sha256(body).digest(), **beside.items}, expires_at, {key: body, **beside.replacing})
    return known


def waiting(store: Store) -> list[str]:
    """The names of schedules with a waiting firing."""
    found: Mapping[str, bytes] = store.read_partition(WAITING)
    return [name for name, body in found.items() if body == b"waits"]
