"""The commands `cluster` with its `scale`, and `instances` with its `drain` and `enable`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.figures import clock, counted
from argosy.cli.problems import CliError
from argosy.cli.session import Session
from argosy.cli.typed_values import CountCommand, coming_moment, past_moment
from argosy.figures.headroom import said_headroom
from argosy.model.run_terms import duration_of


def scale(
    session: Session,
    instances: Annotated[
        int, typer.Argument(min=0, help="Minimum number of instances; 0 = only what queued work needs.")
    ],
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Count and buy only this type; repeat. [default: any]"),
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="When the minimum ends.")] = None,
    lasts: Annotated[str | None, typer.Option("--for", metavar="DURATION", help="How long it lasts: 2h.")] = None,
) -> None:
    """Keep a minimum number of instances, even without work. They cost money all the time."""
    end = _end(until, lasts, session.tools.now())
    view = session.api.scale_cluster(instances, types or [], end)
    if session.wants_json:
        session.print_json(view)
        return
    session.console.print(sentence(view["floor"]))
    session.console.print(f"next: {session.again('cluster')}", style="dim")


_Id = Annotated[str, typer.Argument(metavar="INSTANCE", help="Its EC2 id: i-0123...")]


def drain(
    session: Session,
    instance: _Id,
    lasts: Annotated[str, typer.Option("--for", metavar="DURATION", help="How long; at most 7 days.")] = "2h",
) -> None:
    """Start no more tasks on an instance for a time; its tasks run on, and it stays."""
    view = session.api.drain_instance(instance, _end(None, lasts, session.tools.now()))
    if session.wants_json:
        session.print_json(view)
        return
    session.console.print(
        f"{instance} takes no new tasks until {clock(view['drainUntil'])}; it is paid for all the time."
    )
    session.console.print(f"next: {session.again(f'instances enable {instance}')} ends that earlier", style="dim")


def enable(session: Session, instance: _Id) -> None:
    """Let an instance take tasks again that was drained."""
    view = session.api.drain_instance(instance, None)
    if session.wants_json:
        session.print_json(view)
        return
    session.console.print(f"{instance} takes tasks again.")


def _end(until: str | None, lasts: str | None, now: float) -> float | None:
    if until is not None and lasts is not None:
        raise CliError("--until and --for exclude each other: give one of them.")
    if until is not None:
        return coming_moment(until, now)
    if lasts is None:
        return None
    seconds = duration_of(lasts)
    if not seconds:
        raise CliError(f"--for {lasts!r} is not a duration: write 30m, 2h or 90s.")
    return now + seconds


def sentence(floor: Any) -> str:
    """The floor, and why it is not reached yet. floor: as DescribeCluster has it."""
    if floor is None:
        return "There is no minimum number of instances: the cluster has what the work needs."
    kinds = " or ".join(floor["instanceTypes"])
    what = counted(floor["instances"], "instance") + (f" of {kinds}" if kinds else "")
    end = f" until {clock(floor['until'])}" if floor["until"] else ""
    short = f"; there are fewer now: {floor['waiting']}" if floor["waiting"] else ""
    return f"At least {what} {'is' if floor['instances'] == 1 else 'are'} kept{end}{short}."


KEPT_HOURS = 90 * 24.0


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="The instances: how full they are, their age and price.")
    command(group, "cluster", panel=panels.CLUSTER, is_group=True)(cluster)
    command(group, "scale", panel=panels.CLUSTER, form=CountCommand)(scale)
    app.add_typer(group, name="cluster", rich_help_panel=panels.CLUSTER)
    hosts = typer.Typer(help="The instances that all filters choose, ended ones too.")
    command(hosts, "instances", panel=panels.CLUSTER, is_group=True)(instances)
    command(hosts, "drain", panel=panels.CLUSTER)(drain)
    command(hosts, "enable", panel=panels.CLUSTER)(enable)
    app.add_typer(hosts, name="instances", rich_help_panel=panels.CLUSTER)


def cluster(
    session: Session,
    show_gone: Annotated[bool, typer.Option("--all", help="Include instances that ended recently.")] = False,
    since: Annotated[
        str | None, typer.Option("--since", help="Show the history since: 6h, 2d, or a time; 90 days are kept.")
    ] = None,
) -> None:
    """The instances: how full they are, their age and price."""
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
    if view.get("headroom"):
        session.console.print(said_headroom(view["headroom"]))


def _history(session: Session, since: str) -> None:
    now = session.tools.now()
    hours = (now - past_moment(since, now)) / 3600
    history = session.api.cluster_history(min(KEPT_HOURS, hours))["history"]
    if session.wants_json:
        session.print_json(history)
        return
    from argosy.cli.cluster.history import history_parts

    for part in history_parts(history):
        session.console.print(part)


def instances(
    session: Session,
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="EXPR", help="A placement expression (registered instances)."),
    ] = None,
    pattern: Annotated[str | None, typer.Option("--type", metavar="GLOB", help="Only these types: 'g5.*'.")] = None,
    status: Annotated[list[str] | None, typer.Option("--status", help="Only this status: active, booting, ...")] = None,
    purchase: Annotated[
        str | None, typer.Option("--purchase", help="Of spot, on-demand, reserved, interruptible.")
    ] = None,
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
    from argosy.cli.console import PlainText

    if found["instances"]:
        shown = sorted(found["instances"], key=lambda each: each["status"] == "GONE")  # the ended ones last
        session.console.print(views.instance_table(shown, session.tools.now()))
    for line in views.without_work(found["instances"]):
        session.console.print(line)
    for each in found["instances"]:
        if each.get("console"):
            session.console.print(f"{each['instanceId']} never joined the cluster; its console ended with:")
            session.console.print(PlainText(each["console"]), style="dim")
    more = f"; --limit {2 * limit} shows more" if found["nextToken"] else ""
    session.console.print(f"{counted(len(found['instances']), 'instance')}{more}.", style="dim")
