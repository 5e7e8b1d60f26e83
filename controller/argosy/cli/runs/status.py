"""The commands `runs`, `status` and `cancel`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.figures import counted
from argosy.cli.options import RunId
from argosy.cli.problems import CliError
from argosy.cli.runs.next_steps import next_steps
from argosy.cli.session import Session, warn
from argosy.client.progress import TERMINAL
from argosy.client.task_indexes import parsed

if TYPE_CHECKING:
    from argosy.client.checkpoints import SavedCheckpoint
    from argosy.client.measurements import MeasuredAttempt


def register(app: typer.Typer) -> None:
    command(app, "status", panel=panels.RUNS)(status)
    command(app, "runs", panel=panels.RUNS)(runs)
    command(app, "cancel", panel=panels.RUNS)(cancel)


def status(
    session: Session,
    run: RunId,
    tasks: Annotated[
        bool, typer.Option("--tasks", help="Include every task: state, attempts, exit code, reason.")
    ] = False,
) -> None:
    """How a run is doing, at a glance."""
    from argosy.client.checkpoints import checkpoints_of
    from argosy.client.gpu_use import uses_of
    from argosy.client.task_use import tasks_measured

    view = session.api.describe_with_tasks(run) if tasks else session.api.describe_with_standing(run)
    uses, saved = uses_of(session.access, view), checkpoints_of(session.access, view)
    measured = tasks_measured(session.access, view)
    if session.wants_json:
        rows: dict[str, Sequence[Any]] = {"use": measured, "gpuUse": uses, "checkpoints": saved}
        more = {name: [each.to_json() for each in found] for name, found in rows.items() if found}
        session.print_json({**view, **more})
        return
    show_run(session, view, [*measured, *uses], saved)
    if tasks:
        from argosy.cli.runs.views import checkpoint_table, gpu_table, task_table, use_table

        session.console.print()
        session.console.print(task_table(view["taskList"]))
        if measured:
            session.console.print(use_table(measured))
        if uses:
            session.console.print(gpu_table(uses))
        if saved:
            session.console.print(checkpoint_table(saved, session.tools.now()))


def show_run(
    session: Session, view: Any, uses: Sequence[MeasuredAttempt] = (), saved: Sequence[SavedCheckpoint] = ()
) -> None:
    """The headline, the facts, the failures with their last output, and what to type next."""
    from argosy.cli.runs import views
    from argosy.client.checkpoints import sentence as checkpoints_sentence
    from argosy.client.failures import kinds_of, with_last_lines

    console = session.console
    console.print(views.headline(view, session.tools.now()))
    console.print(views.facts(view))
    for used in views.use_lines(uses, view, session.deployment.region) if uses else ():
        console.print(used)
    if saved:
        console.print(checkpoints_sentence(saved, session.tools.now()))
    kinds = with_last_lines(session.access, view["runId"], kinds_of(view), warn)
    for line in views.failure_lines(kinds):
        console.print(line)
    if words := views.exit_words(kinds):
        console.print(words, style="dim")
    for step in next_steps(session, view):
        console.print(step, style="dim")


def runs(
    session: Session,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most this many.")] = 20,
    status: Annotated[
        list[str] | None, typer.Option("--status", help="Only this status: running, cancelling, failed, ...")
    ] = None,
) -> None:
    """The latest runs, newest first."""
    found = session.api.runs(limit, _statuses(status or []))
    if session.wants_json:
        session.print_json(found)
        return
    if not found["runs"] and status:
        session.console.print("There is no such run.")
        return
    if not found["runs"]:
        session.console.print(f"No runs yet. next: {session.again('submit run.yaml')}")
        return
    from argosy.cli.runs.views import run_table

    session.console.print(run_table(found["runs"]))
    if found["nextToken"]:
        session.console.print(f"--limit {2 * limit} shows older runs.", style="dim")


def _statuses(wanted: list[str]) -> frozenset[str]:
    """Raises CliError for any other text."""
    if not wanted:
        return frozenset()
    from argosy.model.runs import CANCELLING, RunStatus

    known = [*RunStatus, CANCELLING]
    names = frozenset(name.upper() for name in wanted)
    if unknown := names - {*known}:
        shown = ", ".join(name.lower() for name in known)
        raise CliError(f"--status {min(unknown).lower()} is unknown; known: {shown}.")
    return names


def cancel(
    session: Session,
    run: RunId,
    reason: Annotated[str | None, typer.Option("--reason", help="Reason, kept with the run.")] = None,
    dependents: Annotated[bool, typer.Option("--dependents", help="Also cancel the runs that depend on it.")] = False,
    tasks: Annotated[
        str | None, typer.Option("--tasks", metavar="INDEXES", help="Cancel only these, at most 20: 3,7-12.")
    ] = None,
) -> None:
    """Stop a run: what has finished stays, the rest is stopped."""
    chosen = _chosen(tasks) if tasks is not None else []
    view = session.api.cancel(run, reason, dependents, chosen)
    if session.wants_json:
        session.print_json(view)
        return
    left = view["tasks"]["starting"] + view["tasks"]["running"]
    console = session.console
    if chosen and view["status"] not in TERMINAL:
        console.print(f"Tasks {tasks} of {run} are being cancelled unless they have ended; the others continue.")
        return
    if view["status"] in TERMINAL and view["status"] != "CANCELLED":
        console.print(f"{run} had already ended: {view['status']}.")
        return
    if view["status"] == "CANCELLED" and not left:
        console.print(f"{run} is cancelled; no tasks are left to stop.")
        return
    others = "pending tasks first; no others are launched" if view["tasks"]["starting"] else ""
    console.print(f"{run} is being cancelled: {_told(left)}, {others or 'and no others will start'}.")
    console.print(f"next: {session.again(f'status {run}')}", style="dim")


def _chosen(tasks: str) -> list[list[int]]:
    """Raises CliError."""
    try:
        return parsed(tasks)
    except ValueError as fault:
        raise CliError(f"--tasks: {fault}.") from fault


def _told(live: int) -> str:
    if not live:
        return "no task is running"
    return f"{counted(live, 'live task')} {'is' if live == 1 else 'are'} being stopped"
