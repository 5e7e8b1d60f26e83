"""How large is the cluster to be, whatever work there is? `cluster scale`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from argosy.cli.figures import clock, counted
from argosy.cli.moments import coming_moment
from argosy.cli.problems import CliError
from argosy.cli.session import Session
from argosy.model.run_terms import duration_of


def scale(
    session: Session,
    instances: Annotated[int, typer.Argument(min=0, help="So many; 0 = as many as the work needs.")],
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Instances of it count, and are bought; repeat. [default: any]"),
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Then it counts no more.")] = None,
    lasts: Annotated[str | None, typer.Option("--for", metavar="DURATION", help="So long: 2h.")] = None,
) -> None:
    """Keep at least so many instances, also without work. They cost money all the time."""
    end = _end(until, lasts, session.tools.now())
    view = session.api.scale_cluster(instances, types or [], end)
    if session.wants_json:
        session.print_json(view)
        return
    session.console.print(sentence(view["floor"]))
    session.console.print(f"next: {session.again('cluster')}", style="dim")


def _end(until: str | None, lasts: str | None, now: float) -> float | None:
    if until is not None and lasts is not None:
        raise CliError("--until and --for exclude each other: give one of them.")
    if until is not None:
        return coming_moment(until, now)
    if lasts is None:
        return None
    seconds = duration_of(lasts)
    if not seconds:
        raise CliError(f"--for {lasts!r} is no duration: write 30m, 2h or 90s.")
    return now + seconds


def sentence(floor: Any) -> str:
    """What is kept, and why it is not there yet. floor: as DescribeCluster has it."""
    if floor is None:
        return "No number of instances is kept: there are as many as the work needs."
    kinds = " or ".join(floor["instanceTypes"])
    what = counted(floor["instances"], "instance") + (f" of {kinds}" if kinds else "")
    end = f" until {clock(floor['until'])}" if floor["until"] else ""
    short = f"; there are fewer: {floor['waiting']}" if floor["waiting"] else ""
    return f"At least {what} {'is' if floor['instances'] == 1 else 'are'} kept{end}{short}."
