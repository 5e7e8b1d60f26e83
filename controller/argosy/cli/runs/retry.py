"""How are tasks that did not succeed run again? `retry`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.figures import counted
from argosy.cli.options import RunId
from argosy.cli.problems import CliError
from argosy.cli.session import Session


def register(app: typer.Typer) -> None:
    command(app, "retry", panel=panels.RUNS)(retry)


def retry(
    session: Session,
    run: RunId,
    failed: Annotated[bool, typer.Option("--failed", help="Run its failed tasks again.")] = False,
    cancelled: Annotated[bool, typer.Option("--cancelled", help="Run its cancelled tasks again.")] = False,
    budget: Annotated[
        float | None,
        typer.Option("--budget", metavar="USD", help="What the run may cost from now on, all its tries together."),
    ] = None,
    client_token: Annotated[
        str | None, typer.Option("--client-token", help="Asking again with the same token does not retry twice.")
    ] = None,
) -> None:
    """Run again what did not succeed; what succeeded keeps its results."""
    if not (failed or cancelled):
        raise CliError(
            "Say what is to run again: --failed, --cancelled, or both.",
            next_step=f"type `{session.again(f'retry {run} --failed')}`",
        )
    view = session.api.retry(run, failed, cancelled, client_token or session.tools.new_token(), budget)
    if session.wants_json:
        session.print_json(view)
        return
    console = session.console
    console.print(_told(view))
    if left := view["tasks"]["cancelled"] if not cancelled and view["created"] else 0:
        verb = "stays" if left == 1 else "stay"
        console.print(f"{counted(left, 'cancelled task')} {verb} cancelled: add --cancelled next time.", style="dim")
    console.print(f"next: {session.again(f'watch {run}')}", style="dim")


def _told(view: Any) -> str:
    run, tasks = view["runId"], view["tasks"]
    if not view["created"]:
        return f"{run}: this client token has already retried it; nothing is started twice."
    if not view["tasksToRetry"]:
        return f"{run}: every task succeeded, but the run could not be closed; that is tried again."
    kept = f"; {counted(tasks['succeeded'], 'result')} kept" if tasks["succeeded"] else ""
    return f"{run} is tried again: {counted(view['tasksToRetry'], 'task')} of {tasks['total']:,}{kept}."
