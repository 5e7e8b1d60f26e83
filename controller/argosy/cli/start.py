"""The start of the command, or the name of the extra that it lacks. It needs no terminal library."""

from __future__ import annotations

import sys
from importlib import import_module

from argosy.client import forked_command
from argosy.client.extras import installing

USAGE = 2  # as `problems.USAGE`, whose module needs typer
EXTRAS = {
    "cli": ("typer", "rich"),
    "local": ("aws_lambda_powertools", "flask", "highspy", "moto", "psutil", "sklearn", "werkzeug"),
    "map": ("cloudpickle",),
    "frame": ("pandas",),
}


def main(module: str = "argosy.cli.main") -> None:
    """The console script. module: whose `main` it calls."""
    if module == "argosy.cli.main":
        forked_command.take()
    try:
        command = import_module(module).main
    except ModuleNotFoundError as fault:
        if not (said := lacking(fault)):
            raise
        sys.stderr.write(f"{said}\n")
        raise SystemExit(USAGE) from fault
    command()


def lacking(fault: BaseException) -> str:
    """The extra to install, if the error is a missing module of one; empty for everything else."""
    missing = (fault.name or "") if isinstance(fault, ModuleNotFoundError) else ""
    for extra, modules in EXTRAS.items():
        if missing.partition(".")[0] in modules:
            return f"error: This needs {missing}, which is not installed.\nnext: {installing(extra)}"
    return ""
