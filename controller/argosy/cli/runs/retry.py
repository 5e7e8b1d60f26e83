"""The command `retry`: unsuccessful tasks run again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.figures import clock, counted
from argosy.cli.options import RunId
from argosy.cli.problems import CliError
from argosy.cli.runs.upload_progress import repacked
from argosy.cli.session import Session
from argosy.client.task_indexes import parsed


def register(app: typer.Typer) -> None:
    command(app, "retry", panel=panels.RUNS)(retry)


@dataclass(frozen=True)
class RetryOptions:
    """Which tasks run again."""

    failed: Annotated[bool, typer.Option("--failed", help="Run its failed tasks again.")] = False
    cancelled: Annotated[bool, typer.Option("--cancelled", help="Run its cancelled tasks again.")] = False
    tasks: Annotated[str | None, typer.Option("--tasks", metavar="INDEXES", help="Run only these again: 3,7-12.")] = (
        None
    )

    def wanted(self) -> dict[str, Any]:
        """The request for the api. Raises CliError."""
        if self.tasks is None:
            return {"failed": self.failed, "cancelled": self.cancelled}
        if self.failed or self.cancelled:
            raise CliError("--tasks selects tasks whatever their outcome: leave --failed and --cancelled out.")
        try:
            return {"tasks": parsed(self.tasks)}
        except ValueError as fault:
            raise CliError(f"--tasks: {fault}.") from fault


@dataclass(frozen=True)
class LimitOptions:
    """The run's limits from now on."""

    budget: Annotated[
        float | None,
        typer.Option("--budget", metavar="USD", help="New budget of the run, for all its attempts together."),
    ] = None
    memory: Annotated[int | None, typer.Option("--memory", metavar="MIB", help="New size of each retried task.")] = None
    vcpus: Annotated[float | None, typer.Option("--vcpus", help="New size of each retried task.")] = None
    with_program: Annotated[
        Path | None,
        typer.Option("--with-program", metavar="DIR", help="Upload this folder: the retried tasks run it instead."),
    ] = None

    def wanted(self) -> dict[str, Any]:
        """The limits for the api."""
        given = {"budgetUsd": self.budget, "memory": self.memory, "vcpus": self.vcpus}
        return {name: value for name, value in given.items() if value is not None}

    def job(self, session: Session, run: str) -> dict[str, Any]:
        """The other version of the program, uploaded. Raises ArgosyError."""
        if self.with_program is None:
            return {}
        return {"job": repacked(session, session.api.describe(run), self.with_program)}


def retry(
    session: Session,
    run: RunId,
    chosen: RetryOptions,
    more: LimitOptions,
    client_token: Annotated[
        str | None, typer.Option("--client-token", help="A second request with the same token does not retry again.")
    ] = None,
) -> None:
    """Run again what did not succeed; what succeeded keeps its results."""
    if not (chosen.failed or chosen.cancelled or chosen.tasks):
        raise CliError(
            "Say what to run again: --failed, --cancelled, or both; or --tasks.",
            next_step=f"type `{session.again(f'retry {run} --failed')}`",
        )
    wanted = {**chosen.wanted(), **more.wanted(), **more.job(session, run)}
    view = session.api.retry(run, wanted, client_token or session.tools.new_token())
    if session.wants_json:
        session.print_json(view)
        return
    console = session.console
    console.print(_told(view, wanted.get("job")))
    if left := view["tasks"]["cancelled"] if not (chosen.cancelled or chosen.tasks) and view["created"] else 0:
        verb = "stays" if left == 1 else "stay"
        console.print(f"{counted(left, 'cancelled task')} {verb} cancelled: add --cancelled next time.", style="dim")
    console.print(f"next: {session.again(f'watch {run}')}", style="dim")


def _told(view: Any, job: str | None) -> str:
    run, tasks = view["runId"], view["tasks"]
    if not view["created"]:
        return f"{run}: this client token was already used to retry it; nothing is started twice."
    if not view["tasksToRetry"]:
        return f"{run}: every task succeeded, but the run could not be closed; closing is retried."
    kept = f"; {counted(tasks['succeeded'], 'result')} kept" if tasks["succeeded"] else ""
    told = f"{run} is retried: {counted(view['tasksToRetry'], 'task')} of {tasks['total']:,}{kept}."
    return f"{told}\n{_program(view['program'], job)}" if view.get("program") else told


def _program(version: Any, job: str | None) -> str:
    """`They run version 2 of the program, uploaded at 2026-11-29 13:51 UTC (4f2a9c01).`"""
    uploaded = f"uploaded {clock(version['addedAt'])} ({version['sha256'][:8]})"
    if job is None:
        return f"They run version {version['version']} of the program, {uploaded}; --with-program DIR uploads another."
    return f"They run version {version['version']} of the program, {uploaded}."
