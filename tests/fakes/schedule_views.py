"""The api's answers about a schedule, for tests of the modules that show it."""

from __future__ import annotations

from typing import Any

from tests.fakes.cli import RUN_ID

VERDICTS = ("ran", "skipped", "queued", "refused", "ran")


def fire(minute: int, verdict: str, **changes: Any) -> dict[str, Any]:
    return {
        "scheduledTime": f"2026-11-21T06:{minute:02d}:00Z",
        "verdict": verdict,
        "decidedAt": f"2026-11-21T06:{minute:02d}:01.000Z",
        "runId": RUN_ID if verdict in ("ran", "skipped", "queued") else None,
        "reason": None if verdict == "ran" else f"it was {verdict}",
        "replaced": [],
        "byHand": False,
        **changes,
    }


def schedule(**changes: Any) -> dict[str, Any]:
    """DescribeSchedule's reply: every ten minutes, the newest verdict first."""
    fires = [fire(50 - 10 * place, verdict) for place, verdict in enumerate(VERDICTS)]
    return {
        "name": "often",
        "state": "ENABLED",
        "expression": "rate(10 minutes)",
        "zone": "Europe/Berlin",
        "overlap": "skip",
        "startWithin": 1800.0,
        "revision": 3,
        "armed": True,
        "next": "2026-11-21T07:00:00Z",
        "overdue": None,
        "waiting": None,
        "last": fires[0] if fires else None,
        "createdAt": "2026-11-21T06:00:00.000Z",
        "changedAt": "2026-11-21T06:05:00.000Z",
        "nextTimes": [f"2026-11-21T07:{minute}0:00Z" for minute in range(5)],
        "fires": fires,
        "spec": {"version": 1, "name": "digits", "run": "true"},
        **changes,
    }
