"""What is stored about a schedule?

It is stored with its spec, its expression, and the verdicts of its times."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from argosy.model.damage import UnreadableState
from argosy.model.schedules.expressions import Rate, next_times, parsed, shows

SCHEDULES = "SCHEDULES"  # partition; sort key = the schedule's name
WRITTEN = "SCHEDULES-WRITTEN"  # an item per version of a schedule: the process that creates it may replace the schedule
FIRES = "FIRES"  # partition; sort key = name#time: created by the first process that decides about a time
WAITING = "SCHEDULES-WAITING"  # partition; sort key = name, body = whether a firing of it waits for a run to end
FIRES_SHOWN = 20
RUNS_WATCHED = 100  # runs that may still be open; older ones hold up no firing
DEFAULT_START_WITHIN_S = 1800.0


class Overlap(StrEnum):
    """What happens at a time when a run of the schedule is still open."""

    SKIP = "skip"
    ALLOW = "allow"
    REPLACE = "replace"
    QUEUE = "queue"


class ScheduleState(StrEnum):
    """DELETED schedules are kept for a while, so that a late delivery finds them."""

    ENABLED = "ENABLED"
    PAUSED = "PAUSED"
    DELETED = "DELETED"


class FireVerdict(StrEnum):
    """The outcome of a time. MISSED: no delivery came while it could have started something."""

    RAN = "ran"
    SKIPPED = "skipped"
    QUEUED = "queued"
    PAUSED = "paused"
    LATE = "late"
    REFUSED = "refused"
    MISSED = "missed"


TO_BE_SEEN = frozenset({FireVerdict.LATE, FireVerdict.REFUSED, FireVerdict.MISSED})  # shown as needing attention


@dataclass(frozen=True, slots=True)
class Fire:
    """One time of a schedule, or a start by hand, and its verdict. Times in epoch seconds."""

    time: float
    decided_at: float
    verdict: FireVerdict
    run_id: str = ""
    """The run that it started, or the run that prevented a start."""
    because: str = ""
    replaces: tuple[str, ...] = ()
    """Runs that had to end for it."""
    by_hand: bool = False


@dataclass(frozen=True, slots=True)
class Schedule:
    """One schedule. Times in epoch seconds, `start_within_s` in seconds."""

    name: str
    expression: str
    zone: str
    spec: Mapping[str, Any] = field(hash=False)
    overlap: Overlap
    start_within_s: float
    created_at: float
    changed_at: float
    begins: float
    """Earlier times do not count; a rate counts from here. It moves when the schedule is changed or resumed."""
    state: ScheduleState = ScheduleState.ENABLED
    revision: int = 1
    """Revision of the user's settings."""
    armed: int = 0
    """The last revision sent to the clock."""
    version: int = 1
    """Version of the stored document."""
    seen_until: float = 0.0
    """Every time up to here has a verdict."""
    fires: tuple[Fire, ...] = ()
    """The last verdicts, the newest last."""
    runs: tuple[str, ...] = ()
    """Ids of runs that were open when last checked, the newest last."""
    proven_owner: str = ""
    """Owner of its runs: the writer of its spec, as AWS said; "" = unproven."""
    waits: float = 0.0
    """The time whose start waits for a run to end; 0 = none."""

    def with_fire(self, fire: Fire) -> Schedule:
        """A copy with one more verdict, or a new one about the same time."""
        others = [each for each in self.fires if each.time != fire.time or each.by_hand != fire.by_hand]
        kept = sorted([*others, fire], key=lambda each: each.time)[-FIRES_SHOWN:]
        runs = (*self.runs, fire.run_id)[-RUNS_WATCHED:] if fire.verdict is FireVerdict.RAN else self.runs
        return replace(self, fires=tuple(kept), runs=runs)

    def next_times(self, now: float, count: int = 5) -> list[float]:
        """When it will fire next by its expression; none while it is paused."""
        if self.state is not ScheduleState.ENABLED:
            return []
        return next_times(self.expression, self.zone, max(now, self.seen_until), self.begins, count)

    def overdue(self, now: float) -> float | None:
        """The first time without a delivery in time; it has no verdict before the next one fires."""
        times = self.unseen(now - self.start_within_s, 1)
        return times[0] if times else None

    def just_before(self, time: float) -> float:
        """The latest possible time of the previous firing. AWS does not promise the exact second of a rate."""
        expression = parsed(self.expression, self.zone)
        return time - (expression.every_s / 2 if isinstance(expression, Rate) else 1)

    def falls_on(self, time: float) -> bool:
        """Whether the schedule fires at this time. AWS does not promise the exact second of a rate, so a time fits a
        rate if no other firing is within half of its interval."""
        expression = parsed(self.expression, self.zone)
        if not isinstance(expression, Rate):
            return shows(expression, self.zone, time)
        others = [each.time for each in self.fires if not each.by_hand and each.time != time]
        return all(abs(time - other) >= expression.every_s / 2 for other in others)

    def unseen(self, until: float, count: int) -> list[float]:
        """The first times without a verdict, up to a given time. A rate counts from its last firing, because AWS does
        not say exactly when it starts to count."""
        if self.state is not ScheduleState.ENABLED:
            return []
        since = max(self.seen_until, self.begins)
        begins = since if self.expression.startswith("rate") else self.begins
        return [each for each in next_times(self.expression, self.zone, since, begins, count) if each <= until]


def fire_key(name: str, time: float) -> str:
    """The sort key of a time's item."""
    return f"{name}#{datetime.fromtimestamp(time, UTC):%Y-%m-%dT%H:%M:%SZ}"


def to_bytes(document: Schedule | Fire) -> bytes:
    """As it is stored."""
    return json.dumps(asdict(document), separators=(",", ":")).encode()


def schedule_from(body: bytes) -> Schedule:
    """Raises UnreadableState."""
    try:
        data = _known(Schedule, json.loads(body))
        data["fires"] = tuple(_fire(each) for each in data.get("fires", ()))
        data |= {"overlap": Overlap(data["overlap"]), "state": ScheduleState(data["state"])}
        return Schedule(**{**data, "runs": tuple(data.get("runs", ()))})
    except (ValueError, TypeError, KeyError, AttributeError) as fault:
        raise UnreadableState(f"a schedule cannot be read: {fault}") from fault


def fire_from(body: bytes) -> Fire:
    """Raises UnreadableState."""
    try:
        return _fire(json.loads(body))
    except (ValueError, TypeError, KeyError, AttributeError) as fault:
        raise UnreadableState(f"a firing of a schedule cannot be read: {fault}") from fault


def _fire(data: Mapping[str, Any]) -> Fire:
    known = _known(Fire, data)
    return Fire(**{**known, "verdict": FireVerdict(known["verdict"]), "replaces": tuple(known.get("replaces", ()))})


def _known(kind: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """Without the members that a newer version has added."""
    names = {each.name for each in fields(kind)}
    return {name: value for name, value in data.items() if name in names}
