"""Which instances are there, and what do they do and cost? `cluster`."""

from __future__ import annotations

from typing import Annotated

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.session import Session


def register(app: typer.Typer) -> None:
    command(app, "cluster", panel=panels.CLUSTER)(cluster)


def cluster(
    session: Session,
    show_gone: Annotated[bool, typer.Option("--all", help="Also instances that ended recently.")] = False,
) -> None:
    """The instances: how full they are, since when, at what price."""
    view = session.api.cluster()
    if session.wants_json:
        session.print_json(view)
        return
    from argosy.cli.cluster import views

    for part in views.cluster(view, session.tools.now(), show_gone):
        session.console.print(part)
