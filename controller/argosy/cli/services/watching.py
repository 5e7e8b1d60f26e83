"""The command `env status --watch`: an environment while a person watches.

A terminal gets a picture that is redrawn in place, a pipe one line for each change, --json the last view and
--json-lines one document for each change. It ends when the environment is gone; Ctrl-C stops the watching only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any

import typer

from argosy.cli.outside_text import say
from argosy.cli.problems import INTERRUPTED
from argosy.cli.services.views import environment_lines, environment_sentence, revision_table
from argosy.cli.session import Session, warn
from argosy.client.api import ApiError
from argosy.client.waiting import FAILURES_LIMIT, LOCAL_FAILURES_LIMIT, PatientLook

LOOK_S = 2.0
NOT_FOUND = "ResourceNotFoundException"
View = Mapping[str, Any]
Show = Callable[[View], None]


def watch(session: Session, name: str) -> None:
    """Views until the environment is gone. Raises typer.Exit on Ctrl-C, and the errors of the first poll."""
    try:
        with _display(session) as show:
            for view in _views(session, name):
                show(view)
    except KeyboardInterrupt as stop:
        say(f"Nothing was changed; watch again: {session.again(f'env status {name} --watch')}", err=True)
        raise typer.Exit(INTERRUPTED) from stop
    if not session.wants_json:
        say(f"{name} is gone.")


def _views(session: Session, name: str) -> Iterator[View]:
    limit = LOCAL_FAILURES_LIMIT if session.connection.is_loopback else FAILURES_LIMIT
    look, has_seen = PatientLook(lambda: session.api.environment(name), session.tools.sleep, warn, limit), False
    while True:
        try:
            view = look()
        except ApiError as error:
            if error.code == NOT_FOUND and has_seen:
                return
            raise
        has_seen = True
        yield view
        session.tools.sleep(LOOK_S)


def _display(session: Session) -> AbstractContextManager[Show]:
    if session.wants_lines:
        return nullcontext(_each_change(session.print_json_line))
    if session.wants_json:
        return _last_document(session)
    if session.can_redraw:
        return _picture(session)
    return nullcontext(_each_change(lambda view: say(_line(view, session.tools.now()))))


@contextmanager
def _last_document(session: Session) -> Iterator[Show]:
    last: dict[str, Any] = {}
    try:
        yield last.update
    finally:
        if last:
            session.print_json(last)


@contextmanager
def _picture(session: Session) -> Iterator[Show]:
    """The last one stays on the screen."""
    from rich.console import Group
    from rich.live import Live

    from argosy.cli.console import PlainText

    with Live(console=session.console, auto_refresh=False) as live:

        def show(view: View) -> None:
            lines = [PlainText(line) for line in environment_lines(view)]
            live.update(Group(*lines, PlainText(""), revision_table(view)), refresh=True)

        yield show


def _each_change(show: Show) -> Show:
    seen: list[View] = []

    def changed(view: View) -> None:
        now = {name: value for name, value in view.items() if name != "costUsd"}  # which grows all the time
        if seen != [now]:
            seen[:] = [now]
            show(view)

    return changed


def _line(view: View, now: float) -> str:
    return f"{datetime.fromtimestamp(now, UTC):%H:%M:%S}  {environment_sentence(view)}"
