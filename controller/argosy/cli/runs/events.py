"""What has changed in a run or in the deployment, and what changes now? `events`."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.outside_text import say
from argosy.cli.runs.event_sentences import sentence
from argosy.cli.session import Session

POLL_S = 2.0  # waiting in the api function instead would cost its memory by the second
PAGE = 1000
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_AGO = re.compile(r"([0-9]{1,6})([smhd])", re.ASCII)


def register(app: typer.Typer) -> None:
    command(app, "events", panel=panels.RUNS)(events)


def events(
    session: Session,
    run: Annotated[str | None, typer.Argument(help="Only what concerns this run.", show_default=False)] = None,
    since: Annotated[str, typer.Option("--since", help="A change's sequence, or how long ago: 90s, 10m, 2h.")] = "1h",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until interrupted.")] = False,
    kinds: Annotated[
        list[str] | None, typer.Option("--type", help="Only such: run, task, instance, pool, order, or task.ended.")
    ] = None,
    instance: Annotated[str | None, typer.Option("--instance", help="Only what concerns this instance.")] = None,
) -> None:
    """What happened in a run or anywhere, oldest first.

    One line for each change of a run, its tasks, an instance or a fleet, kept for three days. Each has a sequence: with
    the last one as --since, nothing is missed or repeated.
    """
    wanted = {"types": kinds, "runId": run, "instance": instance}
    wanted = {name: value for name, value in wanted.items() if value}
    ago = _AGO.fullmatch(since)
    place: dict[str, Any] = {"sinceSeconds": int(ago[1]) * _UNITS[ago[2]]} if ago else {"since": since}
    while True:
        page = session.api.changes(**wanted, **place, maxResults=PAGE)
        for change in page["changes"]:
            say(json.dumps(change) if session.wants_json else _line(change))
        if page["next"] == place.get("since") or not _goes_on(page):
            if not follow:
                return
            session.tools.sleep(POLL_S)
        place = {"since": page["next"]}


def _goes_on(page: dict[str, Any]) -> bool:
    """Whether there are more lines now: the newest of the journal has not been reached."""
    return page["newest"] is not None and page["next"] != page["newest"]


def _line(change: dict[str, Any]) -> str:
    return f"{change['sequence']:>10}  {change['at'][:19]}Z  {sentence(change)}"
