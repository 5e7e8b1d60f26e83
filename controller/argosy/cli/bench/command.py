"""Which measurements does `argosy bench` offer?"""

from __future__ import annotations

import typer

from argosy.cli import panels
from argosy.cli.bench.allocate import allocate
from argosy.cli.bench.deadline import deadline
from argosy.cli.bench.place import place
from argosy.cli.command import command


def register(app: typer.Typer) -> None:
    bench = typer.Typer(help="Measure Argosy on this machine.", no_args_is_help=True)
    for measurement in (place, allocate, deadline):
        command(bench, measurement.__name__, panel=panels.HERE, connected=False)(measurement)
    bench.callback()(_bench)
    app.add_typer(bench, name="bench", rich_help_panel=panels.HERE)


def _bench() -> None:
    """Measure Argosy on this machine."""
