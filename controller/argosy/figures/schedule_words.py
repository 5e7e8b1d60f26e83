"""A schedule in words: its state, its rule, its times in its own zone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from argosy.model.schedules.expressions import zone_of

View = Mapping[str, Any]
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def state(view: View) -> str:
    """Its most important state: ENABLED, PAUSED, OVERDUE, or NOT SET if the clock did not get it."""
    if not view["armed"]:
        return "NOT SET"
    return "OVERDUE" if view["overdue"] else str(view["state"])


def rule(view: View) -> str:
    """`cron(0 3 * * ? *) Europe/Berlin`."""
    return f"{view['expression']} {view['zone']}"


def local_time(time: str | None, zone: str) -> str:
    """`2026-11-24 03:00 +0100`; `-` for none."""
    if time is None:
        return "-"
    return f"{datetime.fromisoformat(time).astimezone(zone_of(zone)):%Y-%m-%d %H:%M %z}"


def coming_time(time: str, zone: str) -> str:
    """`Tue 2026-11-24 03:00 +0100`: in EventBridge's cron expressions day 1 is Sunday, which only this shows."""
    return f"{DAYS[datetime.fromisoformat(time).astimezone(zone_of(zone)).weekday()]} {local_time(time, zone)}"
