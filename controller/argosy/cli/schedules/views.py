"""How do schedules look in a terminal? Times as the clock of each schedule's zone shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from argosy.cli.tables import PlainTable
from argosy.model.schedules.expressions import zone_of

JSON = Mapping[str, Any]


def table(schedules: list[JSON]) -> PlainTable:
    """One row for each."""
    shown = PlainTable("NAME", "STATE", "NEXT", "LAST", "~EXPRESSION", least=["LAST"])
    for each in schedules:
        last = each["last"]
        verdict = "-" if last is None else f"{last['verdict']} {clock(last['scheduledTime'], each['zone'])}"
        shown.add_row(each["name"], state(each), clock(each["next"], each["zone"]), verdict, when(each))
    return shown


def state(view: JSON) -> str:
    """What a user has to know of it first."""
    if not view["armed"]:
        return "NOT SET"
    return "OVERDUE" if view["overdue"] else str(view["state"])


def when(view: JSON) -> str:
    """`cron(0 3 * * ? *) Europe/Berlin`."""
    return f"{view['expression']} {view['zone']}"


def clock(time: str | None, zone: str) -> str:
    """`2026-11-24 03:00 +0100`; `-` for none."""
    if time is None:
        return "-"
    return f"{datetime.fromisoformat(time).astimezone(zone_of(zone)):%Y-%m-%d %H:%M %z}"


def lines(view: JSON) -> Iterator[str]:
    """What there is to say of one, without its verdicts."""
    zone = view["zone"]
    yield f"{view['name']}: {state(view)}, {when(view)}"
    yield f"while a run of it is open: {view['overlap']}; a time counts for {view['startWithin'] / 60:g} minutes"
    if not view["armed"]:
        yield "the clock was not told of the last change: type that command again"
    if view["overdue"]:
        yield f"nobody came for {clock(view['overdue'], zone)}"
    if view["waiting"]:
        yield f"the start of {clock(view['waiting'], zone)} waits for a run to end"
    times = [clock(each, zone) for each in view["nextTimes"]]
    yield f"next: {', '.join(times)}" if times else "next: never" if view["state"] == "ENABLED" else "next: paused"


def verdicts(view: JSON) -> PlainTable:
    """Its last times, the newest first."""
    shown = PlainTable("TIME", "VERDICT", "RUN", "~REASON")
    for each in view["fires"]:
        verdict = f"{each['verdict']} by hand" if each["byHand"] else each["verdict"]
        shown.add_row(clock(each["scheduledTime"], view["zone"]), verdict, each["runId"] or "-", each["reason"] or "-")
    return shown
