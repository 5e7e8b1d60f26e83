"""The command `exec`: a shell, or one command, in the container of a running task."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.options import RunId
from argosy.cli.problems import AWS_FAULT, OK, CliError
from argosy.cli.session import Session
from argosy.client.entering.local_task import command_here
from argosy.client.entering.plugin import MarkedOutput, check_plugin, plugin_command
from argosy.client.entering.starting import CommandLine, attached, listened_to
from argosy.client.entering.target import CannotEnter, RunningContainer, find_target
from argosy.client.entering.way_in import WayIn
from argosy.client.errors import error_code

SHELL = "/bin/sh"
NOT_FOUND, NOT_STARTED = 127, 126  # what a shell ends with

Task = Annotated[int, typer.Argument(metavar="TASK", min=0, help="The task's number, counted from 0.")]
Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[COMMAND]...", help=f"The command to run; default {SHELL}. Put its own options after --."),
]


def register(app: typer.Typer) -> None:
    command(app, "exec", panel=panels.RUNS, as_json=False)(execute)


def execute(session: Session, run: RunId, task: Task, words: Words = None) -> None:
    """A shell, or one command, in the container of a task that runs. It ends with the command's exit code."""
    try:
        code = _entered(session, find_target(session.access, run, task), words or [])
    except CannotEnter as why:
        raise CliError(why.message, next_step=session.again(why.then)) from why
    if code != OK:
        raise typer.Exit(code)


def _entered(session: Session, target: RunningContainer, words: Sequence[str]) -> int:
    if not session.connection.is_loopback:
        check_plugin()
    marks = MarkedOutput(secrets.token_hex(8), _show, is_terminal=session.tools.is_terminal())
    reply = _session(session, target, marks.command(words) if words else SHELL)
    try:
        way = WayIn.of_session(reply["session"])
    except ValueError as fault:
        raise CliError("The endpoint is not a local mode of this version.", exit_code=AWS_FAULT) from fault
    if way is None:
        return _through_plugin(session, target, reply["session"], marks if words else None)
    if not session.connection.is_loopback:
        raise CliError("Only a local mode on this machine may start programs here.", exit_code=AWS_FAULT)
    return _started(command_here(way, target, words or [SHELL]))


def _session(session: Session, target: RunningContainer, line: str) -> dict[str, Any]:
    """ExecuteCommand's reply."""
    ecs = session.client("ecs", target.region)
    where = {"cluster": session.deployment.cluster, "task": target.task_arn, "container": target.container}
    try:
        return dict(ecs.execute_command(**where, command=line, interactive=True))
    except Exception as fault:
        if error_code(fault) not in ("TargetNotConnectedException", "InvalidParameterException"):
            raise
        sentence = f"Task {target.index} cannot be entered at the moment: its ECS Exec agent is not connected."
        step = "try again in a few seconds; docs/guides/debugging.md says what an image needs"
        raise CliError(sentence, next_step=step, exit_code=AWS_FAULT) from fault


def _through_plugin(
    session: Session, target: RunningContainer, opened: dict[str, Any], marks: MarkedOutput | None
) -> int:
    check_plugin()
    endpoint = str(session.client("ecs", target.region).meta.endpoint_url)
    line = plugin_command(opened, target, session.deployment.cluster, session.connection.profile, endpoint)
    if marks is None:
        return attached(line)
    ended_with = listened_to(line, marks.hear)
    marks.close()
    if marks.code is None:
        sentence = f"The session ended ({ended_with}) without an exit code: it was cut off, or the image has no sh."
        raise CliError(sentence, next_step=session.again(f"exec {target.run_id} {target.index}"), exit_code=AWS_FAULT)
    return marks.code


def _started(line: CommandLine) -> int:
    try:
        return attached(line)
    except FileNotFoundError as fault:
        raise CliError(f"There is no program {line.words[0]} here.", exit_code=NOT_FOUND) from fault
    except OSError as fault:
        raise CliError(f"{line.words[0]} cannot be started: {fault.strerror}.", exit_code=NOT_STARTED) from fault


def _show(data: bytes) -> None:
    typer.echo(data, nl=False)
    sys.stdout.flush()
