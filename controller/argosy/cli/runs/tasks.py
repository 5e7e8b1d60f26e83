"""The command `tasks`: a run's tasks by status or instance."""

from __future__ import annotations

from typing import Annotated

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.figures import counted
from argosy.cli.options import RunId
from argosy.cli.session import Session


def register(app: typer.Typer) -> None:
    command(app, "tasks", panel=panels.RUNS)(tasks)


def tasks(
    session: Session,
    run: RunId,
    status: Annotated[list[str] | None, typer.Option("--status", help="Only this status: failed, running, ...")] = None,
    instance: Annotated[
        str | None, typer.Option("--instance", help="Only with the last attempt on this instance.")
    ] = None,
    cell: Annotated[str | None, typer.Option("--cell", help="Only with the last attempt in this cell.")] = None,
    exit_code: Annotated[int | None, typer.Option("--exit-code", help="Only with this last exit code.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most this many.")] = 1000,
) -> None:
    """The tasks of a run that all filters choose."""
    wanted = {"instance": instance, "cell": cell, "exitCode": exit_code}
    filters: dict[str, object] = {name: value for name, value in wanted.items() if value is not None}
    if status:
        filters["status"] = [name.upper() for name in status]
    found = session.api.tasks(limit, runId=run, **filters)
    if session.wants_json:
        session.print_json(found)
        return
    from argosy.cli.runs.views import task_table

    if found["tasks"]:
        session.console.print(task_table(found["tasks"]))
    more = f"; --limit {2 * limit} shows more" if found["nextToken"] else ""
    session.console.print(f"{counted(len(found['tasks']), 'task')}{more}.", style="dim")
