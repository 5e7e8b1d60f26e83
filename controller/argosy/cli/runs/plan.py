"""The command `plan`: a run's forecast cost and end, without starting it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from argosy.cli import figures, panels
from argosy.cli.command import command
from argosy.cli.html_file import HtmlFile, write
from argosy.cli.options import SpecFile
from argosy.cli.runs.spec_source import SpecChanges, load
from argosy.cli.runs.submission import sent
from argosy.cli.session import Session

if TYPE_CHECKING:
    from rich.console import RenderableType

    from argosy.cli.tables import PlainTable

_REASON_ROWS = 6


def register(app: typer.Typer) -> None:
    command(app, "plan", panel=panels.RUNS)(plan)


def plan(session: Session, file: SpecFile, changes: SpecChanges, html: HtmlFile = None) -> None:
    """What a run would buy, cost and take. Nothing is started."""
    from argosy.client.packing.program import unpacked

    spec, document = load(file, changes)
    reply = sent(session.api.plan, unpacked(spec), str(file), document)
    if html is not None:
        from argosy.figures.plan import plan_page

        write(session, plan_page(reply), html, shlex.join(["argosy", "plan", str(file), *changes.as_typed()]))
    if session.wants_json:
        session.print_json(reply)
        return
    show(session, reply)
    again = shlex.join(["submit", str(file), *changes.as_typed()])
    session.console.print(f"next: {session.again(again)}", style="dim")


def show(session: Session, reply: Mapping[str, Any]) -> None:
    """For a person: the purchases, the forecast, the omissions and the cheaper choices."""
    if reply["instances"]:
        session.console.print(_bought(reply))
        session.console.print()
    session.console.print(_forecast(reply))
    for title, lines in (
        ("Left out", _left_out(reply)),
        ("Cheaper", _cheaper(reply)),
        ("Assumed", reply["assumptions"]),
        ("Warnings", reply["warnings"]),
    ):
        if lines:
            session.console.print(f"\n{title}:")
        for line in lines:
            session.console.print(f"  {line}")


def _bought(reply: Mapping[str, Any]) -> PlainTable:
    from argosy.cli.tables import PlainTable

    table = PlainTable(">BUY", "TYPE", "ZONE", "AS", ">TASKS EACH", ">$/H EACH", least=("TASKS EACH", "$/H EACH"))
    for row in reply["instances"]:
        table.add_row(
            f"{row['count']:,}",
            row["instanceType"],
            row["zone"],
            row["purchase"],
            str(row["tasksAtATime"]),
            f"{row['priceUsdPerHour']:.4f}",
        )
    return table


def _forecast(reply: Mapping[str, Any]) -> RenderableType:
    from argosy.cli.tables import facts_grid

    return facts_grid(_rows(reply))


def _rows(reply: Mapping[str, Any]) -> list[tuple[str, str]]:
    tasks = f"{figures.counted(reply['tasks'], 'task')}, {reply['places']:,} at a time"
    here = f" ({reply['placesHere']:,} of them on current instances)" if reply["placesHere"] else ""
    rows = [("run", f"{reply['name']}: {tasks}{here}")]
    if not reply["possible"]:
        return [*rows, ("forecast", "none: no instance type of this deployment could run it")]
    rows.append(("cost", between(reply["costUsd"], figures.money)))
    rows.append(("ends after", between(reply["seconds"], figures.duration)))
    if reply["instances"] and (told := reply.get("startUp")):
        usd = figures.money(told["usd"])
        rows.append(("start-up", f"{figures.start_up(told)} on each new instance: {usd} of the cost"))
    other = reply["onDemand"]
    if other is not None:
        less = figures.saved(reply["costUsd"]["expected"], other["costUsd"])
        types = ", ".join(other["instanceTypes"])
        end = f"; this plan costs {less}" if less else ""
        rows.append(("on demand", f"{figures.money(other['costUsd'])} in {other['region']} ({types}){end}"))
    return rows


def between(given: Mapping[str, float], shown: Any) -> str:
    """`$0.0040, between $0.0021 and $0.0093`."""
    return f"{shown(given['expected'])}, between {shown(given['low'])} and {shown(given['high'])}"


def _left_out(reply: Mapping[str, Any]) -> list[str]:
    lines = [
        f"{figures.counted(row['pools'], 'pool')} of {_types(row['instanceTypes'])}: {row['reason']}"
        for row in reply["rejected"][:_REASON_ROWS]
    ]
    more = len(reply["rejected"]) - _REASON_ROWS
    return [*lines, f"--json shows {more} more reasons"] if more > 0 else lines


def _types(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} other types"


def _cheaper(reply: Mapping[str, Any]) -> list[str]:
    return [
        f"{row['sentence']}: " + ("it could run" if row["saves"] is None else f"-{100 * row['saves']:.0f} %")
        for row in reply["relaxations"]
    ]
