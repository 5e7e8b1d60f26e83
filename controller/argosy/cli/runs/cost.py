"""The command `cost`: the cost of a run or an environment by pool, by use and by line of the bill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from argosy.cli import figures, panels
from argosy.cli.command import command
from argosy.cli.html_file import HtmlFile, write
from argosy.cli.options import RunsOf
from argosy.cli.session import Session
from argosy.client.progress import TERMINAL
from argosy.client.run_names import runs_meant

View = Mapping[str, Any]
MOST_RUNS = 50  # runs of an environment that are added up


class Grouping(StrEnum):
    """The grouping of the table."""

    POOL = "pool"
    WASTE = "waste"
    LINE = "line"


def register(app: typer.Typer) -> None:
    command(app, "cost", panel=panels.RUNS)(cost)


def cost(
    session: Session,
    run: RunsOf,
    by: Annotated[
        Grouping,
        typer.Option("--by", help="pool: where it was spent; waste: what it was spent on; line: as AWS bills it."),
    ] = Grouping.WASTE,
    html: HtmlFile = None,
) -> None:
    """What a run or an environment has cost, where and for what."""
    meant = runs_meant(session.api, run)
    views = [session.api.describe_with_cost(each) for each in meant.ids[:MOST_RUNS]]
    view = together(meant.environment, views) if meant.environment else views[0]
    run = view["runId"]
    if html is not None:
        from argosy.figures.spending import cost_page

        write(session, cost_page(view), html, f"argosy cost {run}")
    if session.wants_json:
        session.print_json(document(view))
        return
    session.console.print(headline(view))
    if not view["cost"]["byPool"]:
        session.console.print("No instance has run its tasks yet.")
        return
    session.console.print({Grouping.POOL: by_pool, Grouping.WASTE: by_waste, Grouping.LINE: by_line}[by](view))
    if by is not Grouping.LINE:
        session.console.print(beyond(view), style="dim")
    for line in of_programs(view):
        session.console.print(line)
    if env := view.get("environment"):
        whole = session.again(f"cost {env}")
        session.console.print(f"one revision's run; the cost of the whole environment {env}: {whole}", style="dim")
    if len(views) < len(meant.ids):
        session.console.print(f"{len(meant.ids) - len(views):,} older runs of {run} are left out", style="dim")
    if caps := figures.caps(view):
        session.console.print(f"limits: {caps}")
    other = {Grouping.POOL: Grouping.LINE, Grouping.WASTE: Grouping.POOL, Grouping.LINE: Grouping.WASTE}[by]
    session.console.print(f"next: {session.again(f'cost {run} --by {other}')}", style="dim")


def document(view: View) -> dict[str, Any]:
    """The whole ledger as JSON, regardless of the table that would be shown."""
    keys = ("runId", "status", "costUsd", "onDemandCostUsd", "usefulUsd", "budget")
    runs = {"runs": view["runs"]} if "runs" in view else {}  # of an environment
    versions = {"programs": view["programs"]} if len(view.get("programs") or ()) > 1 else {}
    return {**{key: view.get(key) for key in keys}, **runs, **versions, **view["cost"]}


def headline(view: View) -> str:
    """`digits-...: $0.123 so far for 1.8 instance-hours (on-demand $0.369, 67 % less)`."""
    spot, on_demand = float(view["costUsd"]), float(view["onDemandCostUsd"])
    less = figures.saved(spot, on_demand)
    so_far = "" if view["status"] in TERMINAL else " so far"
    compared = f" (on-demand {figures.money(on_demand)}{', ' + less if less else ''})" if spot else ""
    hours = figures.hours(view["cost"]["instanceHours"])
    return f"{view['runId']}: {figures.money(spot)}{so_far} for {hours}{compared}"


def of_programs(view: View) -> list[str]:
    """`version 2 of the program: $0.010, 3 attempts, 12 s`: its part of the cost, by the time of its attempts. Empty
    for a run with one version at most."""
    from argosy.figures.spending import by_program

    versions = view.get("programs") or ()
    return [
        f"version {each['version']} of the program: {figures.money(usd)} by the time of its"
        f" {figures.counted(each['attempts'], 'attempt')} ({figures.duration(each['seconds'])}),"
        f" {figures.counted(each['results'], 'result')}"
        for each, usd in zip(versions, by_program(view), strict=True)
        if len(versions) > 1
    ]


def by_waste(view: View) -> Any:
    from argosy.cli.tables import PlainTable
    from argosy.figures.spending import kinds_in

    table = PlainTable("SPENT ON", ">COST", ">SHARE", "~MEANING")
    parts, total = view["cost"]["byWaste"], sum(view["cost"]["byWaste"].values())
    for kind, meaning in kinds_in(parts):
        usd = parts[f"{kind}Usd"]
        table.add_row(kind, figures.money(usd), figures.share(usd, total), meaning)
    table.add_row("together", figures.money(total), "", "")
    return table


def by_pool(view: View) -> Any:
    from argosy.cli.tables import PlainTable

    headings = ("POOL", "BOUGHT", ">INSTANCE-HOURS", ">COST", ">USEFUL", ">ON-DEMAND")
    table = PlainTable(*headings, least=("INSTANCE-HOURS", "ON-DEMAND", "BOUGHT", "USEFUL"))
    for each in view["cost"]["byPool"]:
        where = each["availabilityZone"]
        table.add_row(
            f"{each['instanceType']} in {where}" if where else each["instanceType"],
            each["purchase"] or "-",
            f"{each['instanceHours']:.3f}",
            figures.money(each["costUsd"]),
            figures.share(each["usefulUsd"], each["costUsd"]),
            figures.money(each["onDemandCostUsd"]),
        )
    return table


def by_line(view: View) -> Any:
    from argosy.cli.tables import PlainTable

    lines, beyond = view["cost"]["byLine"], view["cost"]["estimates"]
    assumed = beyond["assumed"]
    table = PlainTable("LINE OF THE BILL", ">COST", "~SOURCE")
    table.add_row("instances", figures.money(lines["instancesUsd"]), "measured: seconds x price at their launch")
    table.add_row("disks", figures.money(lines["disksUsd"]), "measured: the same seconds x list price")
    table.add_row("public addresses", figures.money(lines["addressesUsd"]), "measured: the same seconds x list price")
    table.add_row("together", figures.money(sum(lines.values())), "in the ledger, budgets and caps")
    per_attempt = f"estimated: {1e6 * assumed['logGbPerAttempt']:g} KB for each attempt"
    table.add_row("logs", figures.money(beyond["logsUsd"]), per_attempt)
    per_instance = f"estimated: {assumed['imageGb']:g} GB for each instance outside the home Region"
    table.add_row("traffic of images", figures.money(beyond["imageTransferUsd"]), per_instance)
    return table


def beyond(view: View) -> str:
    """`with $0.010 of disks and $0.020 of public addresses; beyond it an estimated $0.001 of logs and ...`"""
    lines, more = view["cost"]["byLine"], view["cost"]["estimates"]
    measured = (
        f"with {figures.money(lines['disksUsd'])} of disks and {figures.money(lines['addressesUsd'])} of addresses"
    )
    logs, traffic = figures.money(more["logsUsd"]), figures.money(more["imageTransferUsd"])
    return f"{measured}; beyond it, estimated, {logs} of logs and {traffic} of traffic for images"


_SUMMED = ("costUsd", "onDemandCostUsd", "usefulUsd", "attempts", "interruptions")
_POOL = ("cell", "instanceType", "availabilityZone", "purchase")


def together(name: str, views: Sequence[View]) -> dict[str, Any]:
    """name: stands in place of a run's id. An environment's cost has no status and no caps: its runs have them."""
    costs = [view["cost"] for view in views]
    estimates = [cost["estimates"] for cost in costs]
    known = {key: sum(view.get(key) or 0 for view in views) for key in _SUMMED}
    is_open = any(view["status"] not in TERMINAL for view in views)
    return {
        **known,
        "runId": name,
        "status": "RUNNING" if is_open else str(views[0]["status"]),
        "runs": [{"runId": view["runId"], "status": view["status"], "costUsd": view["costUsd"]} for view in views],
        "cost": {
            **{key: _sums([cost[key] for cost in costs]) for key in ("byLine", "byWaste")},
            "byPool": _pools(costs),
            "instanceHours": sum(cost["instanceHours"] for cost in costs),
            "estimates": {
                **{key: sum(each[key] for each in estimates) for key in ("logsUsd", "imageTransferUsd")},
                "assumed": estimates[0]["assumed"],
            },
        },
    }


def _sums(parts: Sequence[View]) -> dict[str, float]:
    return {key: sum(part[key] for part in parts) for key in parts[0]}


def _pools(costs: Sequence[View]) -> list[dict[str, Any]]:
    """The most expensive first, as for one run."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for each in (pool for cost in costs for pool in cost["byPool"]):
        name = tuple(each[key] for key in _POOL)
        before = found.get(name, {})
        found[name] = {key: value if key in _POOL else before.get(key, 0.0) + value for key, value in each.items()}
    return sorted(found.values(), key=lambda pool: -pool["costUsd"])
