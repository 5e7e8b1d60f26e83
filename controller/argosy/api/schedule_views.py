"""How are schedules shown to users? Times as ISO 8601 in UTC, durations in seconds."""

from __future__ import annotations

from typing import Any

from argosy.api.views import iso
from argosy.model.schedules.record import Fire, Schedule

JSON = dict[str, Any]


def schedule_view(schedule: Schedule, now: float) -> JSON:
    """Without its spec and with its last verdict only. armed: false when the clock was not told of the last change."""
    times = schedule.next_times(now, 1)
    late = schedule.overdue(now)
    return {
        "name": schedule.name,
        "state": schedule.state.value,
        "expression": schedule.expression,
        "zone": schedule.zone,
        "overlap": schedule.overlap.value,
        "startWithin": schedule.start_within_s,
        "revision": schedule.revision,
        "armed": schedule.armed == schedule.revision,
        "next": iso(times[0], "seconds") if times else None,
        "overdue": None if late is None else iso(late, "seconds"),
        "waiting": iso(schedule.waits, "seconds"),
        "last": fire_view(schedule.fires[-1]) if schedule.fires else None,
    }


def full_schedule_view(schedule: Schedule, now: float, times: int = 5) -> JSON:
    """Everything about one, its verdicts with the newest first. times: so many of those to come."""
    return {
        **schedule_view(schedule, now),
        "createdAt": iso(schedule.created_at),
        "changedAt": iso(schedule.changed_at),
        "nextTimes": [iso(each, "seconds") for each in schedule.next_times(now, times)],
        "fires": [fire_view(each) for each in reversed(schedule.fires)],
        "spec": dict(schedule.spec),
    }


def fire_view(fire: Fire) -> JSON:
    """One verdict. runId: of the run that it started, or of the one that was in its way."""
    return {
        "scheduledTime": iso(fire.time, "seconds"),
        "verdict": fire.verdict.value,
        "decidedAt": iso(fire.decided_at),
        "runId": fire.run_id or None,
        "reason": fire.because or None,
        "replaced": list(fire.replaces),
        "byHand": fire.by_hand,
    }
