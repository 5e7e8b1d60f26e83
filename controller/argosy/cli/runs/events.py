"""The command `events`: changes of a run or of the deployment, past and present."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.options import AnyRunId
from argosy.cli.outside_text import say
from argosy.cli.problems import CliError
from argosy.cli.runs.event_sentences import sentence
from argosy.cli.session import Session, warn
from argosy.cli.typed_values import past_moment

POLL_S = 2.0  # waiting in the api function instead would cost its memory by the second
PAGE = 1000
_SEQUENCE = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)


def register(app: typer.Typer) -> None:
    command(app, "events", panel=panels.RUNS, as_lines=True)(events)


def events(
    session: Session,
    run: AnyRunId = None,
    since: Annotated[str, typer.Option("--since", help="A sequence, a time, or how long ago: 90s, 10m, 2h.")] = "1h",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing until interrupted.")] = False,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--type", help="Only these types: run, task, instance, pool, order, or task.ended."),
    ] = None,
    instance: Annotated[str | None, typer.Option("--instance", help="Only events about this instance.")] = None,
) -> None:
    """What happened in a run or anywhere, oldest first.

    One line for each change of a run, its tasks, an instance or a fleet, kept for three days. Each has a sequence: with
    the last one as --since, nothing is missed or repeated.
    """
    wanted = {"types": kinds, "runId": run, "instance": instance}
    wanted = {name: value for name, value in wanted.items() if value}
    now = session.tools.now()
    is_sequence = _SEQUENCE.fullmatch(since)
    place: dict[str, Any] = {"since": since} if is_sequence else {"sinceSeconds": now - past_moment(since, now)}
    if follow and session.wants_json and not session.wants_lines:
        raise CliError("--follow never ends, so it cannot be one JSON document.", next_step="take --json-lines")
    show, found = _shown(session)
    while True:
        page = session.api.changes(**wanted, **place, maxResults=PAGE)
        for change in page["changes"]:
            show(change)
        if page["next"] == place.get("since") or not _goes_on(page):
            if not follow:
                break
            session.tools.sleep(POLL_S)
        place = {"since": page["next"]}
    if session.wants_json and not session.wants_lines:
        session.print_json({"changes": found, "next": page["next"], "newest": page["newest"]})
    _tell_of_the_newest(since, page)


def _shown(session: Session) -> tuple[Callable[[dict[str, Any]], None], list[dict[str, Any]]]:
    """The handling of a change, and the list of those that become one document."""
    found: list[dict[str, Any]] = []
    if session.wants_lines:
        return session.print_json_line, found
    return (found.append if session.wants_json else lambda change: say(_line(change))), found


def _tell_of_the_newest(since: str, page: dict[str, Any]) -> None:
    """A sequence in the future deserves a warning."""
    newest = page["newest"]
    if newest is not None and _SEQUENCE.fullmatch(since) and int(since.partition(".")[0]) > int(newest):
        warn(f"{since} is in the future: the newest change is {newest}.")


def _goes_on(page: dict[str, Any]) -> bool:
    """Whether there are more lines now: the newest of the journal has not been reached."""
    return page["newest"] is not None and page["next"] != page["newest"]


def _line(change: dict[str, Any]) -> str:
    return f"{change['sequence']:>10}  {change['at'][:19]}Z  {sentence(change)}"
