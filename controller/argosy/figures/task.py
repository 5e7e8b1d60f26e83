"""The page of one task: its attempts, and the last lines of the log of one of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from argosy.client.failures import AlikeAttempts
from argosy.figures.document import Cell, Figure, Page, Table, status_pill
from argosy.figures.markup import Markup, element
from argosy.figures.numbers import clock, counted, duration, instant

View = Mapping[str, Any]

LINES_SHOWN = 500
_LINE_CHARACTERS, _CHARACTERS = 2_000, 200_000


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The last events of a log as CloudWatch has them, at most LINES_SHOWN. why_not: they cannot be read."""

    events: Sequence[View] = ()
    why_not: str = ""


def attempt_of(query: str) -> int:
    """The number that the query of an address names; 0 = none."""
    found = re.fullmatch(r"attempt=([0-9]{1,9})", query, re.ASCII)
    return int(found[1]) if found else 0


def chosen(reply: View, number: int) -> View | None:
    """The attempt of that number; the latest if there is none; None for a task without attempts."""
    attempts = reply["attempts"]
    return next((each for each in attempts if each["attempt"] == number), attempts[-1] if attempts else None)


def task_page(reply: View, attempt: View | None, log: LogEnd, now: float) -> Page:
    """reply: DescribeTask's. attempt: the one that the log is of. now: epoch seconds."""
    run, index = reply["runId"], reply["index"]
    typed = f"argosy logs {run} --task {index}"
    steps = [("The whole log:", f"{typed} --attempt {attempt['attempt']}")] if attempt else []
    return Page(
        title=f"Task {index} of {run} · Argosy",
        heading=f"Task {index} of {run}",
        status=reply["status"],
        figures=[_log(attempt, log), _attempts(reply, attempt, now)],
        next_steps=[*steps, ("Why it waits:", f"argosy explain {run} --task {index}")] if not attempt else steps,
    )


def _log(attempt: View | None, log: LogEnd) -> Figure:
    key, title = "log", "Log"
    if attempt is None:
        return Figure(key, title, empty="No attempt has been made yet.", wide=True)
    title = f"Log of attempt {attempt['attempt']}"
    is_alive = attempt["outcome"] is None
    if log.why_not or not log.events:
        nothing = "No line has arrived yet." if is_alive else "There is no line."
        return Figure(key, title, empty=log.why_not or nothing, wide=True)
    lines, is_cut = _lines(log.events)
    note = f"The last {counted(len(lines), 'line')}" if is_cut else counted(len(lines), "line")
    follows = "; new ones appear as they arrive." if is_alive else "."
    box = element(
        "div",
        element("pre", "\n".join(lines)),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=title,
        data_follow=True,
    )
    return Figure(key, title, note=f"{note}{follows}", picture=box, wide=True)


def _lines(events: Sequence[View]) -> tuple[list[str], bool]:
    """With their times in UTC, and whether there may be earlier ones. Long lines end in an ellipsis."""
    kept: list[str] = []
    room = _CHARACTERS
    for event in reversed(events):
        text = str(event["message"]).rstrip()
        text = text if len(text) <= _LINE_CHARACTERS else f"{text[:_LINE_CHARACTERS]}…"
        room -= len(text)
        if room < 0:
            break
        kept.append(f"{datetime.fromtimestamp(event['timestamp'] / 1000, UTC):%H:%M:%S} {text}")
    return kept[::-1], len(kept) < len(events) or len(events) >= LINES_SHOWN


def _attempts(reply: View, shown: View | None, now: float) -> Figure:
    key, title = "attempts", "Attempts"
    if not reply["attempts"]:
        return Figure(key, title, empty="There is none.", wide=True)
    rows = [_row(each, each is shown, now) for each in reversed(reply["attempts"])]
    heads = (">Attempt", "Outcome", "Why", "Instance", "Started", ">Duration", "Log")
    return Figure(key, title, table=Table(heads, rows, left=reply.get("attemptsLeftOut", 0), stacks=True), wide=True)


def _row(attempt: View, is_shown: bool, now: float) -> Sequence[Cell]:
    number, reason, code = attempt["attempt"], attempt["reason"] or "", attempt["exitCode"]
    return (
        f"{number}",
        status_pill(attempt["outcome"] or ("RUNNING" if attempt["startedAt"] else "STARTING")),
        AlikeAttempts(reason, code, 1, 0, 0).cause if reason or code else "",
        attempt["instance"] or "",
        clock(attempt["startedAt"]),
        _took(attempt, now),
        "shown" if is_shown else _link(number),
    )


def _took(attempt: View, now: float) -> str:
    started, stopped = instant(attempt["startedAt"]), instant(attempt["stoppedAt"])
    if started is None:
        return "-"
    return duration(max(0.0, (stopped.timestamp() if stopped else now) - started.timestamp()))


def _link(number: int) -> Markup:
    return element("a", "log", href=f"?attempt={number}")
