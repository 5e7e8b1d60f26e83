"""How is a run going, until it ends? `watch`, and what `submit` does after submitting.

A terminal gets a live view; a pipe gets one line per change; --json gets one document per change. Ctrl-C only ends the
watching, never the run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from argosy.cli import figures
from argosy.cli.problems import AWS_FAULT, INTERRUPTED, OK, RUN_FAILED, WAIT_TIMED_OUT, CliError, from_aws
from argosy.cli.runs.reading import RUN_PANEL, RunId, next_steps
from argosy.cli.session import Session, command
from argosy.client.errors import ArgosyError

View = Mapping[str, Any]
LOCAL_INTERVAL_S = 0.5
AWS_INTERVAL_S = 3.0  # each look is one Lambda invocation: about $0.000001
MISSES_LIMIT = 20  # looks in a row that may fail: a watch of hours should outlive a minute of trouble
RATE_WINDOW_S = 60.0
FAILURES_SHOWN = 3
WaitTimeout = Annotated[
    float | None, typer.Option("--wait-timeout", min=0, metavar="SECONDS", help="Stop waiting then: exit code 4.")
]


def register(app: typer.Typer) -> None:
    command(app, "watch", panel=RUN_PANEL)(watch)


def watch(session: Session, run: RunId, wait_timeout: WaitTimeout = None) -> None:
    """Follow a run until it ends. Ctrl-C stops watching, the run goes on."""
    follow(session, run, wait_timeout)


def follow(session: Session, run_id: str, wait_timeout_s: float | None) -> None:
    """Shows the run until it has ended, then exits 0 or 1; 4 when the wait timed out, 130 on Ctrl-C."""
    try:
        view = until_ended(session, run_id, wait_timeout_s)
    except KeyboardInterrupt as stop:
        lines = [
            f"Detached from {run_id}; the run goes on.",
            f"watch it again: {session.again(f'watch {run_id}')}",
            f"stop it:        {session.again(f'cancel {run_id}')}",
        ]
        typer.echo("\n".join(lines), err=True)
        raise typer.Exit(INTERRUPTED) from stop
    raise typer.Exit(OK if view["status"] == "SUCCEEDED" else RUN_FAILED)


def until_ended(session: Session, run_id: str, wait_timeout_s: float | None) -> View:
    """The final view. Raises CliError with exit code 4 when the time is up."""
    tools, pace = session.tools, Pace()
    deadline = None if wait_timeout_s is None else tools.now() + wait_timeout_s
    interval_s = LOCAL_INTERVAL_S if session.place.is_loopback else AWS_INTERVAL_S
    look = Look(session)
    with display(session) as show:
        while True:
            view = look(run_id)
            pace.see(tools.now(), view)
            show(view, pace)
            if view["status"] in figures.TERMINAL:
                return view
            left = interval_s if deadline is None else deadline - tools.now()
            if left <= 0:
                raise _timed_out(session, view, wait_timeout_s or 0)
            tools.sleep(min(interval_s, left))


def _timed_out(session: Session, view: View, waited_s: float) -> CliError:
    return CliError(
        f"{view['runId']} was still {view['status']} after {figures.duration(waited_s)}; the run goes on.",
        next_step=session.again(f"watch {view['runId']}"),
        exit_code=WAIT_TIMED_OUT,
    )


@dataclass
class Look:
    """Asks for the run; a few failures of AWS in a row are waited out, refusals are not."""

    session: Session
    misses: int = 0
    has_seen: bool = False

    def __call__(self, run_id: str) -> View:
        from botocore.exceptions import BotoCoreError, ClientError

        while True:
            try:
                view = self.session.api.describe(run_id)
            except (ArgosyError, BotoCoreError, ClientError) as fault:
                self._miss(fault)
                continue
            self.misses, self.has_seen = 0, True
            return view

    def _miss(self, fault: Exception) -> None:
        """Raises the fault when waiting cannot mend it: a refusal, or nothing was ever seen, or too many in a row."""
        error = fault if isinstance(fault, CliError) else from_aws(fault)
        self.misses += 1
        if error.exit_code != AWS_FAULT or not self.has_seen or self.misses > MISSES_LIMIT:
            raise fault
        if self.misses == 1:
            typer.echo(f"warning: {error.message} Trying again.", err=True)
        self.session.tools.sleep(AWS_INTERVAL_S)


@dataclass
class Pace:
    """Tasks finished per second, over the last minute, and the time to the end at that pace."""

    samples: list[tuple[float, int]] = field(default_factory=list)
    left: int = 0

    def see(self, now: float, view: View) -> None:
        finished = figures.finished(view["tasks"])
        self.left = view["tasks"]["total"] - finished
        self.samples.append((now, finished))
        while len(self.samples) > 2 and self.samples[1][0] <= now - RATE_WINDOW_S:
            del self.samples[0]

    @property
    def per_s(self) -> float:
        """0 until something has finished while we watched."""
        (begin, before), (end, after) = self.samples[0], self.samples[-1]
        return (after - before) / (end - begin) if end > begin else 0.0

    def text(self) -> str:
        """`2.4 tasks/s, ETA 45 s`; empty when nothing can be said."""
        if not self.per_s or not self.left:
            return ""
        rate = f"{self.per_s:.1f} tasks/s" if self.per_s >= 1 else f"{60 * self.per_s:.1f} tasks/min"
        return f"{rate}, ETA {figures.duration(self.left / self.per_s)}"


Show = Callable[[View, Pace], None]


def display(session: Session) -> AbstractContextManager[Show]:
    """How a view is shown: live, as lines, or as JSON."""
    if session.wants_json:
        return nullcontext(_each_change(lambda view, _: typer.echo(json.dumps(view, default=str))))
    if session.tools.is_terminal():
        from argosy.cli.runs.live import LiveView

        return LiveView(session)
    return nullcontext(_each_change(lambda view, pace: _print_line(session, view, pace)))


def _each_change(show: Show) -> Show:
    seen: list[Any] = []

    def changed(view: View, pace: Pace) -> None:
        now = [view["status"], dict(view["tasks"]), view["attempts"], view["interruptions"], view.get("waiting")]
        now += [figures.purchase(view), view.get("late")]
        if seen != now:
            seen[:] = now
            show(view, pace)

    return changed


def _print_line(session: Session, view: View, pace: Pace) -> None:
    typer.echo(line(view, pace, session.tools.now()))
    if view["status"] in figures.TERMINAL:
        from argosy.cli.runs.run_views import failure_lines

        for failure in failure_lines(view.get("failures", ())[-FAILURES_SHOWN:]):
            typer.echo(failure.plain)
        for step in next_steps(session, view):
            typer.echo(step)


def line(view: View, pace: Pace, now: float) -> str:
    """One change in one line: when, status, counts, attempts, pace, cost, why it waits, the last failure."""
    from datetime import UTC, datetime

    tasks = view["tasks"]
    parts = [
        f"{tasks['succeeded']:,}/{tasks['total']:,} succeeded",
        *(f"{tasks[key]:,} {key}" for key in ("failed", "cancelled", "running", "starting", "pending") if tasks[key]),
        f"{figures.counted(view['attempts'], 'attempt')}",
    ]
    if view["interruptions"]:
        parts.append(f"{view['interruptions']:,} interrupted")
    parts.append(figures.cost(view) + figures.useful(view))
    if caps := figures.caps(view):
        parts.append(caps)
    if pace.text():
        parts.append(pace.text())
    if figures.purchase(view) and view["status"] not in figures.TERMINAL:
        parts.append(figures.purchase(view))
    if view.get("late"):
        parts.append("the deadline is missed")
    parts += [str(view[key]) for key in ("waiting", "statusReason") if view.get(key)]
    return f"{datetime.fromtimestamp(now, UTC):%H:%M:%S}  {view['status']:<12}  {', '.join(parts)}"
