"""The runtime of local mode's tasks, and the base of its images."""

from __future__ import annotations

from typing import Annotated

import typer

from argosy.cli.problems import CliError

PROCESS = "process"
Runtime = Annotated[str, typer.Option("--runtime", metavar="NAME", help="What runs tasks: process, podman or docker.")]
BaseImage = Annotated[
    str | None,
    typer.Option(
        "--base-image",
        metavar="IMAGE",
        help="Base image on which podman or docker builds argosy/NAME, instead of the Dockerfile's.",
    ),
]


def engine_of(runtime: str) -> str | None:
    """None for processes. Raises CliError for an engine that is missing or does not work."""
    from argosy.local.containers.engine import ENGINES, NoEngineError, check

    if runtime == PROCESS:
        return None
    if runtime not in ENGINES:
        raise CliError(f"--runtime is process, {' or '.join(ENGINES)}, not {runtime}.")
    try:
        check(runtime)
    except NoEngineError as fault:
        step = "without --runtime, tasks run as processes of this machine and need no engine"
        raise CliError(f"--runtime {runtime}: {fault}.", next_step=step) from fault
    return runtime
