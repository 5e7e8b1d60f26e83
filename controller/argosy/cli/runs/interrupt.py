"""The command `interrupt`: a spot notice for the instance of a task, to try what a program does then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.figures import counted
from argosy.cli.options import RunId
from argosy.cli.problems import CliError
from argosy.cli.session import Session

NOTICE_S = 120.0  # as `client.local_requests`, which is imported by need


def register(app: typer.Typer) -> None:
    command(app, "interrupt", panel=panels.RUNS)(interrupt)


def interrupt(
    session: Session,
    run: RunId,
    task: Annotated[
        int | None, typer.Option("--task", min=0, help="The task whose instance ends. Default: the first that runs.")
    ] = None,
    warn: Annotated[
        float, typer.Option("--warn", min=0, max=NOTICE_S, metavar="SECONDS", help="From the notice to the end.")
    ] = NOTICE_S,
) -> None:
    """Give the instance of a task a spot notice. On AWS it needs allowInterrupt."""
    from argosy.client.experiments import give_notice
    from argosy.client.local_requests import LocalRequestRefused

    _check(session, warn)
    view = session.api.describe_with_tasks(run)
    chosen = _chosen(session, view, task)
    instance = str(chosen["instance"])
    try:
        hit = give_notice(session.access, view, chosen, warn, session.tools.sleep)
    except LocalRequestRefused as why:
        raise CliError(why.message) from why
    if session.wants_json:
        session.print_json({"runId": view["runId"], "instance": instance, "noticeSeconds": warn, "tasks": hit})
        return
    session.console.print(
        f"{instance} has got a spot notice: it ends in {warn:g} s, and {counted(len(hit), 'task')} of this run gets"
        " SIGTERM now."
    )
    session.console.print(f"next: {session.again(f'watch {run}')}", style="dim")


def _check(session: Session, warn: float) -> None:
    """Raises CliError."""
    from argosy.client.experiments import may_interrupt

    if not may_interrupt(session.access):
        raise CliError(
            "Outside of local mode, this deployment does not interrupt on command.",
            next_step="deploy with allowInterrupt set to true",
        )
    if warn != NOTICE_S and not session.connection.is_loopback:
        raise CliError(f"--warn is for local mode: on AWS, an instance ends {NOTICE_S:g} s after its notice.")


def _chosen(session: Session, view: Mapping[str, Any], task: int | None) -> Mapping[str, Any]:
    """The task whose instance is interrupted. Raises CliError if it does not run."""
    from argosy.client.local_requests import running_task

    found = running_task(view, task)
    if found is None:
        which = "No task of the run" if task is None else f"Task {task}"
        more = "" if task is None else f" --task {task}"
        raise CliError(f"{which} is running.", next_step=session.again(f"attempts {view['runId']}{more}"))
    return found
