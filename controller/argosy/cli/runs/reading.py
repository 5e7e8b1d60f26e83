"""What has been submitted, how is it doing, and please stop it: `runs`, `status`, `cancel`, `cluster`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from argosy.cli.figures import TERMINAL, counted
from argosy.cli.session import Session, command

RUN_PANEL = "Runs"
SEE_PANEL = "Cluster and prices"
RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run id that `argosy submit` printed.")]


def register(app: typer.Typer) -> None:
    command(app, "status", panel=RUN_PANEL)(status)
    command(app, "runs", panel=RUN_PANEL)(runs)
    command(app, "cancel", panel=RUN_PANEL)(cancel)
    command(app, "cluster", panel=SEE_PANEL)(cluster)


def status(
    session: Session,
    run: RunId,
    tasks: Annotated[
        bool, typer.Option("--tasks", help="Also every task: state, attempts, exit code, reason.")
    ] = False,
) -> None:
    """How a run is doing, in one look."""
    view = session.api.describe_with_tasks(run) if tasks else session.api.describe(run)
    if session.wants_json:
        session.print_json(view)
        return
    show_run(session, view)
    if tasks:
        from argosy.cli.runs.run_views import task_table

        session.console.print()
        session.console.print(task_table(view["taskList"]))


def show_run(session: Session, view: Any) -> None:
    """The headline, the facts, the latest failures with what they printed last, and what to type next."""
    from argosy.cli.runs import last_lines, run_views

    console = session.console
    console.print(run_views.headline(view, session.tools.now()))
    console.print(run_views.facts(view))
    failures = view.get("failures", ())
    for line in run_views.failure_lines(failures, last_lines.last_lines(session, view)):
        console.print(line)
    if words := run_views.exit_words(failures):
        console.print(words, style="dim")
    for step in next_steps(session, view):
        console.print(step, style="dim")


def next_steps(session: Session, view: Any) -> list[str]:
    """The command lines that make sense now."""
    run = view["runId"]
    steps = []
    if view["status"] not in TERMINAL:
        steps = [f"watch {run}", f"cancel {run}"]
    elif view["tasks"]["succeeded"]:
        steps = [f"results {run} --download {view['name']}-results"]
    if view["status"] in TERMINAL and view["tasks"]["failed"]:
        steps.append(f"retry {run} --failed")
    logged = [each for each in view.get("failures", ()) if _has_log(each)]
    if logged:
        steps.append(f"logs {run} --task {logged[-1]['index']}")
    return [f"next: {session.again(step)}" for step in steps]


# ECS's errors about containers that never ran: such an attempt has written no line.
_NEVER_STARTED = ("CannotPull", "ResourceInitialization", "CannotCreateContainer", "CannotStartContainer")


def _has_log(failure: Any) -> bool:
    return failure["exitCode"] is not None or not any(name in failure["reason"] for name in _NEVER_STARTED)


def runs(
    session: Session,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most this many.")] = 20,
) -> None:
    """The latest runs, newest first."""
    found = session.api.runs(limit)
    if session.wants_json:
        session.print_json(found)
        return
    if not found["runs"]:
        session.console.print(f"No runs yet. next: {session.again('submit run.yaml')}")
        return
    from argosy.cli.runs.run_views import run_table

    session.console.print(run_table(found["runs"]))
    if found["nextToken"]:
        session.console.print(f"There are older ones: --limit {2 * limit} shows more.", style="dim")


def cancel(
    session: Session,
    run: RunId,
    reason: Annotated[str | None, typer.Option("--reason", help="Kept with the run.")] = None,
) -> None:
    """Stop a run: what has finished stays, the rest is stopped."""
    view = session.api.cancel(run, reason)
    if session.wants_json:
        session.print_json(view)
        return
    left = view["tasks"]["starting"] + view["tasks"]["running"]
    console = session.console
    if view["status"] in TERMINAL and view["status"] != "CANCELLED":
        console.print(f"{run} had already ended: {view['status']}.")
        return
    if view["status"] == "CANCELLED" and not left:
        console.print(f"{run} is cancelled; nothing is left to stop.")
        return
    console.print(f"{run} is being cancelled: {_told(left)}, no further ones start.")
    console.print(f"next: {session.again(f'status {run}')}", style="dim")


def _told(live: int) -> str:
    if not live:
        return "no task is live"
    return f"{counted(live, 'live task')} {'is' if live == 1 else 'are'} told to stop"


def cluster(
    session: Session,
    show_gone: Annotated[bool, typer.Option("--all", help="Also the instances that have ended lately.")] = False,
) -> None:
    """The instances there are: how full, how long, at what price."""
    view = session.api.cluster()
    if session.wants_json:
        session.print_json(view)
        return
    from argosy.cli.cluster import views as cluster_views

    for part in cluster_views.cluster(view, session.tools.now(), show_gone):
        session.console.print(part)
