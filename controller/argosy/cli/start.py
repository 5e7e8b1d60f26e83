"""Can the command start, and if not, which of Argosy's extras brings what it lacks? It needs no terminal's library."""

from __future__ import annotations

import sys
from importlib import import_module

USAGE = 2  # as `problems.USAGE`, whose module needs typer
EXTRAS = {
    "cli": ("typer", "rich"),
    "local": ("aws_lambda_powertools", "flask", "highspy", "moto", "psutil", "sklearn", "werkzeug"),
    "map": ("cloudpickle",),
    "frame": ("pandas",),
}


def main(module: str = "argosy.cli.main") -> None:
    """The console script. module: whose `main` it calls."""
    try:
        command = import_module(module).main
    except ModuleNotFoundError as fault:
        if not (said := lacking(fault)):
            raise
        sys.stderr.write(f"{said}\n")
        raise SystemExit(USAGE) from fault
    command()


def lacking(fault: BaseException) -> str:
    """Which extra to install, if it is that a module of one is missing; empty for everything else."""
    missing = (fault.name or "") if isinstance(fault, ModuleNotFoundError) else ""
    for extra, modules in EXTRAS.items():
        if missing.partition(".")[0] in modules:
            return f"error: This needs {missing}, which is not installed.\nnext: pip install 'argosy[{extra}]'"
    return ""
