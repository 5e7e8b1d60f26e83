"""A command started in a task of this machine's local mode."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from argosy.client.entering.starting import CommandLine, has_terminal
from argosy.client.entering.target import CannotEnter, RunningContainer
from argosy.client.entering.way_in import WayIn
from argosy.client.errors import InvalidInput
from argosy.client.extras import installing


def command_here(way: WayIn, target: RunningContainer, words: Sequence[str]) -> CommandLine:
    """The arguments to start. Raises InvalidInput."""
    if way.engine:
        terminal = ["--tty"] if has_terminal() else []
        return CommandLine([way.engine, "exec", "--interactive", *terminal, way.container, *words])
    environment, folder = _surroundings(way.pid, target)
    if "TERM" in os.environ:
        environment = {"TERM": os.environ["TERM"], **environment}
    return CommandLine(words, environment, folder)


def _surroundings(pid: int, target: RunningContainer) -> tuple[dict[str, str], Path]:
    """Environment and folder of a process, which has to be the task's and this user's."""
    try:
        import psutil
    except ImportError as missing:
        raise InvalidInput("This needs the packages of local mode.", next_step=installing("local")) from missing
    try:
        process = psutil.Process(pid)
        environment, is_ours = process.environ(), process.uids().real == os.getuid()
        folder = Path(process.cwd())
    except psutil.AccessDenied:
        is_ours, environment, folder = False, {}, Path()
    except psutil.Error:
        raise _gone(target) from None
    if not is_ours:
        raise CannotEnter(
            f"The process of task {target.index} is another user's.", f"logs {target.run_id} --task {target.index}"
        )
    if not target.label.items() <= environment.items():
        raise _gone(target)
    return environment, folder


def _gone(target: RunningContainer) -> CannotEnter:
    sentence = f"Task {target.index} has just ended, or runs on another machine."
    return CannotEnter(sentence, f"logs {target.run_id} --task {target.index}")
