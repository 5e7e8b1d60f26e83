"""The pages of schedules, from the replies of ListSchedules and DescribeSchedule."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from argosy.figures import axes, svg
from argosy.figures.document import Cell, Figure, Page, Table, Tile, status_pill
from argosy.figures.markup import element
from argosy.figures.numbers import clock, counted, duration, instant
from argosy.figures.schedule_words import coming_time, local_time, rule, state

View = Mapping[str, Any]
_VERDICTS = {  # as the picture has them from above; kind: the colour
    "ran": "succeeded",
    "queued": "starting",
    "skipped": "queued",
    "paused": "alive",
    "late": "lost",
    "refused": "failed",
    "missed": "failed",
}
_NOT_RUN = ("late", "refused", "missed")
_NEXT = "to come"
_MARGIN = 0.015  # room for the ends of what is drawn, of all of the time


def schedules_page(found: Sequence[View], now: float) -> Page:
    """found: ListSchedules' schedules. now: epoch seconds."""
    return Page(
        title="Schedules · Argosy",
        heading="Schedules",
        tiles=list(_tiles(found, now)) if found else (),
        figures=[_list(found, now)],
        next_steps=() if found else [("Create one:", 'argosy schedule create NAME --spec FILE --cron "0 3 * * ? *"')],
    )


def _tiles(found: Sequence[View], now: float) -> Iterator[Tile]:
    enabled = sum(each["state"] == "ENABLED" for each in found)
    yield Tile("Enabled", f"{enabled:,}", f"of {counted(len(found), 'schedule')}")
    coming = sorted((each["next"], each["name"]) for each in found if each["next"])
    yield Tile("Next", _left(coming[0][0], now) if coming else "never", coming[0][1] if coming else "")
    waiting = sum(bool(each["waiting"]) for each in found)
    yield Tile("Waiting", f"{waiting:,}", "for a run to end")
    troubled = [each["name"] for each in found if _is_troubled(each)]
    yield Tile("Needs attention", f"{len(troubled):,}", ", ".join(troubled[:3]), "bad" if troubled else "")


def _is_troubled(view: View) -> bool:
    return state(view) in ("NOT SET", "OVERDUE") or (view["last"] is not None and view["last"]["verdict"] in _NOT_RUN)


def _list(found: Sequence[View], now: float) -> Figure:
    key, title = "schedules", "Schedules"
    if not found:
        return Figure(key, title, empty="No schedule has been created yet.", wide=True)
    rows: list[tuple[Cell, ...]] = [
        (
            element("a", each["name"], href=f"/schedules/{each['name']}"),
            status_pill(state(each)),
            rule(each),
            local_time(each["next"], each["zone"]),
            _left(each["next"], now),
            status_pill(each["last"]["verdict"]) if each["last"] else "-",
            _run_link(each["last"]["runId"] if each["last"] else None),
            (each["last"]["reason"] if each["last"] else None) or "",
        )
        for each in found
    ]
    heads = ("Schedule", "Status", "Rule", "Next", ">In", "Last verdict", "Run", "Reason")
    return Figure(key, title, table=Table(heads, rows, stacks=True), wide=True)


def schedule_page(view: View, now: float) -> Page:
    """view: DescribeSchedule's reply. now: epoch seconds."""
    return Page(
        title=f"{view['name']} · Argosy",
        heading=view["name"],
        status=state(view),
        facts=list(_facts(view)),
        warnings=list(_warnings(view)),
        figures=[_times(view, now), _next(view, now), _spec(view), _verdicts(view)],
        next_steps=_steps(view),
    )


def _facts(view: View) -> Iterator[tuple[str, str]]:
    yield "rule", rule(view)
    yield "while a run is open", view["overlap"]
    yield "may start late by", duration(view["startWithin"])
    yield "revision", str(view["revision"])
    yield "changed", clock(view["changedAt"])


def _warnings(view: View) -> Iterator[str]:
    zone = view["zone"]
    if not view["armed"]:
        yield "EventBridge Scheduler does not have the last change: run that command again."
    if view["overdue"]:
        yield f"No run was started for {local_time(view['overdue'], zone)}."
    if view["waiting"]:
        yield f"The start of {local_time(view['waiting'], zone)} waits for the previous run to end."


def _steps(view: View) -> list[tuple[str, str]]:
    name = view["name"]
    turn = ("Resume it:", "resume") if view["state"] == "PAUSED" else ("Pause it:", "pause")
    return [("Run it now:", f"argosy schedule run-now {name}"), (turn[0], f"argosy schedule {turn[1]} {name}")]


def _times(view: View, now: float) -> Figure:
    """A dot for each past time, in the row of its verdict, and for each coming time."""
    key, title = "times", "Its times and their outcomes"
    fires, coming = view["fires"], view["nextTimes"]
    if not fires and not coming:
        return Figure(key, title, empty="It has no past times and no upcoming ones.", wide=True)
    names = [verdict for verdict in _VERDICTS if any(each["verdict"] == verdict for each in fires)]
    names += [_NEXT] if coming else []
    dots = [_dot(view, each, names, now) for each in reversed(fires)]
    dots += [_dot_to_come(view, each, len(names), now) for each in coming]
    low, high = (pick([each.begin for each in dots] + [0.0]) for pick in (min, max))
    margin = _MARGIN * (high - low)
    frame = svg.Frame(
        axes.seconds(low - margin, high + margin),
        axes.rows(names),
        "from now on",
        "verdict",
        f"{counted(len(fires), 'time')} that {'was' if len(fires) == 1 else 'were'}, and the next {len(coming)}.",
        marks=[(0.0, "now")],
        low=True,
    )
    layers = [
        svg.Layer(
            name,
            _VERDICTS.get(name, "running"),
            np.empty(0),
            f"{sum(_is(each, name) for each in fires) or len(coming):,}",
        )
        for name in names
    ]
    return Figure(key, title, picture=svg.stretches(frame, dots, layers), table=None, wide=True)


def _is(fire: View, verdict: str) -> bool:
    return bool(fire["verdict"] == verdict)


def _dot(view: View, fire: View, names: Sequence[str], now: float) -> svg.RowSpan:
    verdict, at = fire["verdict"], _after(fire["scheduledTime"], now)
    said = f"{local_time(fire['scheduledTime'], view['zone'])}: {verdict}"
    said += f", {fire['reason']}" if fire["reason"] else ""
    return svg.RowSpan(said, _VERDICTS[verdict], axes.row_of(names.index(verdict), len(names)), at, at)


def _dot_to_come(view: View, time: str, rows: int, now: float) -> svg.RowSpan:
    at = _after(time, now)
    return svg.RowSpan(f"{local_time(time, view['zone'])}: {_NEXT}", "running", axes.row_of(rows - 1, rows), at, at)


def _next(view: View, now: float) -> Figure:
    key, title = "next", "Next times"
    if not view["nextTimes"]:
        never = "It is paused." if view["state"] == "PAUSED" else "None: all its times are in the past."
        return Figure(key, title, empty=never)
    if view["zone"] == "UTC":
        table = Table(("UTC", ">In"), [(clock(each), _left(each, now)) for each in view["nextTimes"]])
    else:
        rows = [(coming_time(each, view["zone"]), clock(each), _left(each, now)) for each in view["nextTimes"]]
        table = Table((view["zone"], "UTC", ">In"), rows)
    return Figure(key, title, table=table)


def _verdicts(view: View) -> Figure:
    key, title = "verdicts", "Verdicts"
    if not view["fires"]:
        return Figure(key, title, empty="None of its times has come yet.", wide=True)
    rows: list[tuple[Cell, ...]] = [
        (
            local_time(each["scheduledTime"], view["zone"]),
            status_pill(each["verdict"]),
            "by hand" if each["byHand"] else "the clock",
            _run_link(each["runId"]),
            ", ".join(each["replaced"]),
            each["reason"] or "",
            clock(each["decidedAt"]),
        )
        for each in view["fires"]
    ]
    heads = ("Time", "Verdict", "Asked by", "Run", "Replaced", "Reason", "Decided")
    note = "The last twenty. The run is the one that was started, or the one that prevented it."
    return Figure(key, title, note=note, table=Table(heads, rows, stacks=True), wide=True)


def _spec(view: View) -> Figure:
    text = json.dumps(view["spec"], indent=2, ensure_ascii=False)
    return Figure("spec", "Its spec", picture=element("pre", text))


def _run_link(run_id: str | None) -> Cell:
    return element("a", run_id, href=f"/runs/{run_id}") if run_id else "-"


def _after(iso: str, now: float) -> float:
    moment = instant(iso)
    return 0.0 if moment is None else moment.timestamp() - now


def _left(iso: str | None, now: float) -> str:
    """`1h 12m`; `-` for none; 0 s if it is due."""
    return "-" if iso is None else duration(max(0.0, _after(iso, now)))
