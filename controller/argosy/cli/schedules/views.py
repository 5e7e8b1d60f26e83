"""Schedules in a terminal, with times in each schedule's own zone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from argosy.cli.tables import PlainTable
from argosy.figures.schedule_words import coming_time, local_time, rule, state

JSON = Mapping[str, Any]


def table(schedules: list[JSON]) -> PlainTable:
    """One row for each."""
    shown = PlainTable("NAME", "STATE", "NEXT", "LAST", "~EXPRESSION", least=["LAST"])
    for each in schedules:
        last = each["last"]
        verdict = "-" if last is None else f"{last['verdict']} {local_time(last['scheduledTime'], each['zone'])}"
        shown.add_row(each["name"], state(each), local_time(each["next"], each["zone"]), verdict, rule(each))
    return shown


def lines(view: JSON) -> Iterator[str]:
    """The facts of one schedule, without its verdicts."""
    zone = view["zone"]
    yield f"{view['name']}: {state(view)}, {rule(view)}"
    yield f"while a run is open: {view['overlap']}; a run may start up to {view['startWithin'] / 60:g} minutes late"
    if not view["armed"]:
        yield "EventBridge Scheduler does not have the last change: run that command again"
    if view["overdue"]:
        yield f"no run was started for {local_time(view['overdue'], zone)}"
    if view["waiting"]:
        yield f"the start of {local_time(view['waiting'], zone)} waits for the previous run to end"
    times = [coming_time(each, zone) for each in view["nextTimes"]]
    yield f"next: {', '.join(times)}" if times else "next: never" if view["state"] == "ENABLED" else "next: paused"


def verdicts(view: JSON) -> PlainTable:
    """Its last times, the newest first."""
    shown = PlainTable("TIME", "VERDICT", "RUN", "~REASON")
    for each in view["fires"]:
        verdict = f"{each['verdict']} by hand" if each["byHand"] else each["verdict"]
        shown.add_row(
            local_time(each["scheduledTime"], view["zone"]), verdict, each["runId"] or "-", each["reason"] or "-"
        )
    return shown
