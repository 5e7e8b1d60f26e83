"""The command `watch`, which `submit` also uses: a run followed to its end.

A terminal gets a live view, a pipe one line per change, --json the last view and --json-lines one document per change.
Ctrl-C stops the watching, never the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import typer

from argosy.cli import figures, panels
from argosy.cli.command import command
from argosy.cli.options import RunId, WaitTimeout
from argosy.cli.outside_text import say
from argosy.cli.problems import INTERRUPTED, OK, RUN_FAILED, WAIT_TIMED_OUT, CliError
from argosy.cli.runs.next_steps import next_steps
from argosy.cli.session import Session, warn
from argosy.client.progress import TERMINAL, ProgressRate
from argosy.client.waiting import (
    FIRST_LOCAL_S,
    RunPoller,
    WaitTimedOut,
    interval_of,
)

View = Mapping[str, Any]


def register(app: typer.Typer) -> None:
    command(app, "watch", panel=panels.RUNS, as_lines=True)(watch)


def watch(session: Session, run: RunId, wait_timeout: WaitTimeout = None) -> None:
    """Follow a run until it ends. Ctrl-C stops watching, the run continues."""
    follow(session, run, wait_timeout)


def follow(session: Session, run_id: str, wait_timeout_s: float | None, submitted: View | None = None) -> None:
    """Shows the run until it has ended, then exits 0 or 1; 4 when the wait timed out, 130 on Ctrl-C. submitted: its
    first view, where this command has submitted it."""
    view = followed(session, run_id, wait_timeout_s, submitted)
    raise typer.Exit(OK if view["status"] == "SUCCEEDED" else RUN_FAILED)


def followed(
    session: Session, run_id: str, wait_timeout_s: float | None, submitted: View | None = None, delivers: bool = False
) -> View:
    """The final view, for a command that continues after the end. Ctrl-C ends the command, not the run. delivers: the
    command delivers the results."""
    if submitted and session.connection.is_loopback:
        session.tools.sleep(FIRST_LOCAL_S)  # a look at once would only take the controller's time
    try:
        return until_ended(session, run_id, wait_timeout_s, display(session, submitted, delivers))
    except KeyboardInterrupt as stop:
        lines = [
            f"Detached from {run_id}; the run continues.",
            f"watch it again: {session.again(f'watch {run_id}')}",
            f"stop it:        {session.again(f'cancel {run_id}')}",
        ]
        say("\n".join(lines), err=True)
        raise typer.Exit(INTERRUPTED) from stop


def until_ended(
    session: Session, run_id: str, wait_timeout_s: float | None, shown: AbstractContextManager[Show]
) -> View:
    """The final view. Raises CliError with exit code 4 when the time is up."""
    tools, rate = session.tools, ProgressRate()
    view: View = {}
    interval_s, limit = interval_of(session.connection.is_loopback)
    poller = RunPoller(session.api.describe, tools.now, tools.sleep, interval_s, warn, limit)
    with shown as show:
        try:
            for view in poller.views(run_id, wait_timeout_s):
                if view.get("environment") and view["status"] not in TERMINAL:
                    raise _never_ends(session, view)
                rate.see(tools.now(), view)
                show(view, rate)
        except WaitTimedOut as late:
            raise _timed_out(session, late) from late
    return view


def _never_ends(session: Session, view: View) -> CliError:
    env = view["environment"]
    return CliError(
        f"{view['runId']} is the run of a revision of the service {env}: it does not end on its own.",
        next_step=session.again(f"env status {env}"),
    )


def _timed_out(session: Session, late: WaitTimedOut) -> CliError:
    run, status = late.view["runId"], late.view["status"]
    return CliError(
        f"{run} was still {status} after {figures.duration(late.waited_s)}; the run continues.",
        next_step=session.again(f"watch {run}"),
        exit_code=WAIT_TIMED_OUT,
    )


Show = Callable[[View, ProgressRate], None]


def display(session: Session, submitted: View | None = None, delivers: bool = False) -> AbstractContextManager[Show]:
    """How a view is shown: live, as lines, or as JSON: each change with --json-lines, else the last view only."""
    if session.wants_lines:
        return nullcontext(_each_change(lambda view, _: session.print_json_line(view)))
    if session.wants_json:
        return _last_document(session, submitted)
    if session.can_redraw:
        from argosy.cli.runs.live import LiveView

        return LiveView(session, delivers)
    return nullcontext(_each_change(lambda view, rate: _print_line(session, view, rate, delivers)))


@contextmanager
def _last_document(session: Session, submitted: View | None) -> Iterator[Show]:
    """One document, however watching ends: the last view, with the parts that only the reply to submitting has."""
    last = dict(submitted or {})
    try:
        yield lambda view, _: last.update(view)
    finally:
        if last:
            session.print_json(last)


def _each_change(show: Show) -> Show:
    seen: list[Any] = []

    def changed(view: View, rate: ProgressRate) -> None:
        now = [view["status"], dict(view["tasks"]), view["attempts"], view["interruptions"], view.get("waiting")]
        now += [figures.purchase(view), view.get("late")]
        if seen != now:
            seen[:] = now
            show(view, rate)

    return changed


def _print_line(session: Session, view: View, rate: ProgressRate, delivers: bool) -> None:
    say(line(view, rate, session.tools.now()))
    if view["status"] in TERMINAL:
        from argosy.cli.runs.views import failure_lines
        from argosy.client.failures import kinds_of, with_last_lines

        for failure in failure_lines(with_last_lines(session.access, view["runId"], kinds_of(view), warn)):
            say(failure.plain)
        for step in next_steps(session, view, delivers):
            say(step)


def line(view: View, rate: ProgressRate, now: float) -> str:
    """One change in one line: time, status, counts, attempts, rate, cost, and why it waits."""
    from datetime import UTC, datetime

    tasks = view["tasks"]
    parts = [
        f"{tasks['succeeded']:,}/{tasks['total']:,} succeeded",
        *(f"{tasks[key]:,} {key}" for key in ("failed", "cancelled", "running", "starting", "pending") if tasks[key]),
        f"{figures.counted(view['attempts'], 'attempt')}",
    ]
    if view["interruptions"]:
        parts.append(f"{view['interruptions']:,} interrupted")
    if view.get("preemptions"):
        parts.append(f"{view['preemptions']:,} stopped for other queues")
    parts.append(figures.cost(view) + figures.useful(view))
    if caps := figures.caps(view):
        parts.append(caps)
    if speed := figures.rate(rate):
        parts.append(speed)
    if figures.purchase(view) and view["status"] not in TERMINAL:
        parts.append(figures.purchase(view))
    if view.get("late"):
        parts.append("the deadline is missed")
    parts += [str(view[key]) for key in ("waiting", "statusReason") if view.get(key)]
    return f"{datetime.fromtimestamp(now, UTC):%H:%M:%S}  {view['status']:<12}  {', '.join(parts)}"
