"""Which instances are there, and what do they do and cost? `cluster` and its `scale`, and `instances` for some."""

from __future__ import annotations

from typing import Annotated

import typer

from argosy.cli import panels
from argosy.cli.cluster.scale import scale, sentence
from argosy.cli.command import command
from argosy.cli.counts import CountCommand
from argosy.cli.figures import counted
from argosy.cli.moments import past_moment
from argosy.cli.session import Session

KEPT_HOURS = 90 * 24.0


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="The instances: how full they are, since when, at what price.")
    command(group, "cluster", panel=panels.CLUSTER, is_group=True)(cluster)
    command(group, "scale", panel=panels.CLUSTER, form=CountCommand)(scale)
    app.add_typer(group, name="cluster", rich_help_panel=panels.CLUSTER)
    command(app, "instances", panel=panels.CLUSTER)(instances)


def cluster(
    session: Session,
    show_gone: Annotated[bool, typer.Option("--all", help="Also instances that ended recently.")] = False,
    since: Annotated[
        str | None, typer.Option("--since", help="How it came along since: 6h, 2d, or a time; 90 days are kept.")
    ] = None,
) -> None:
    """The instances: how full they are, since when, at what price."""
    if since is not None:
        _history(session, since)
        return
    view = session.api.cluster()
    if session.wants_json:
        session.print_json(view)
        return
    from argosy.cli.cluster import views

    for part in views.cluster(view, session.tools.now(), show_gone):
        session.console.print(part)
    if view.get("floor"):
        session.console.print(sentence(view["floor"]))


def _history(session: Session, since: str) -> None:
    now = session.tools.now()
    hours = (now - past_moment(since, now)) / 3600
    history = session.api.cluster_history(min(KEPT_HOURS, hours))["history"]
    if session.wants_json:
        session.print_json(history)
        return
    from argosy.cli.cluster.course import course

    for part in course(history):
        session.console.print(part)


def instances(
    session: Session,
    where: Annotated[
        str | None, typer.Option("--where", metavar="EXPR", help="A placement expression, of registered instances.")
    ] = None,
    pattern: Annotated[str | None, typer.Option("--type", metavar="GLOB", help="Only these types: 'g5.*'.")] = None,
    status: Annotated[list[str] | None, typer.Option("--status", help="Only such: active, booting, ...")] = None,
    purchase: Annotated[str | None, typer.Option("--purchase", help="Only spot, or on-demand.")] = None,
    cell: Annotated[str | None, typer.Option("--cell", help="Only in this cell.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most this many.")] = 1000,
) -> None:
    """The instances that all filters choose, ended ones too."""
    wanted = {"where": where, "type": pattern, "purchase": purchase, "cell": cell}
    filters: dict[str, object] = {name: value for name, value in wanted.items() if value is not None}
    if status:
        filters["status"] = [name.upper() for name in status]
    found = session.api.instances(limit, **filters)
    if session.wants_json:
        session.print_json(found)
        return
    from argosy.cli.cluster import views

    if found["instances"]:
        session.console.print(views.instance_table(found["instances"], session.tools.now()))
    more = f", and there are others: --limit {2 * limit} shows more" if found["nextToken"] else ""
    session.console.print(f"{counted(len(found['instances']), 'instance')}{more}.", style="dim")
