"""What was the money of a run spent on? From DescribeRun's ledger, and from its series over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from argosy.figures import axes, svg
from argosy.figures.document import Figure, Page, Table, Tile
from argosy.figures.numbers import duration, money, saved, share

View = Mapping[str, Any]
# The meaning of each kind of cost, for readers who see the word for the first time.
KINDS = (
    ("useful", "attempts that succeeded"),
    ("boot", "from the launch of an instance until it could take tasks"),
    ("idle", "idle time of instances that the run paid for"),
    ("redone", "attempts lost with their instance and repeated"),
    ("failed", "attempts that failed or were stopped"),
    ("displaced", "work of other runs that was stopped to make room for this one"),
)
RARE = frozenset({"displaced"})  # shown only where there is any


def kinds_in(parts: Mapping[str, float]) -> list[tuple[str, str]]:
    """The kinds of a ledger's `byWaste` that are shown."""
    return [each for each in KINDS if each[0] not in RARE or parts.get(f"{each[0]}Usd")]


def by_program(view: View) -> list[float]:
    """USD for each version of the run's program: the run's cost, divided by the time of their attempts."""
    versions = view.get("programs") or ()
    total_s = sum(each["seconds"] for each in versions)
    return [float(view["costUsd"]) * each["seconds"] / total_s if total_s else 0.0 for each in versions]


def over_time(view: View, series: View) -> Figure:
    """Cost by kind over time, with the cost of on-demand."""
    key, title = "cost", "Cost by what it was spent on"
    table = _table(view)
    at = np.array(series.get("at", ()), dtype="f8")
    if len(at) < 2 or not series.get("cost"):
        return by_kind(view)
    rows = {kind: np.array(series["cost"].get(kind, np.zeros(len(at))), dtype="f8") for kind, _ in KINDS}
    on_demand = np.array(series.get("onDemandUsd") or np.zeros(len(at)), dtype="f8")
    total = sum(rows.values(), np.zeros(len(at)))
    frame = svg.Frame(
        axes.seconds(0.0, at[-1]),
        axes.dollars(float(total.max())),
        "since it was submitted",
        "US dollars so far",
        f"Cost by kind over {duration(at[-1] - at[0])}: {money(float(total[-1]))} at the end.",
    )
    drawn = [svg.Layer(kind, kind, rows[kind], money(float(rows[kind][-1]))) for kind, _ in KINDS if rows[kind].any()]
    less = saved(float(total[-1]), float(on_demand[-1]))
    note = f"The same time on demand would cost {money(float(on_demand[-1]))}: this is {less}." if less else ""
    return Figure(key, title, note=note, picture=svg.areas(frame, at, drawn), table=table)


def by_kind(view: View) -> Figure:
    """Without a series: a bar for each kind."""
    key, title = "cost", "Cost by what it was spent on"
    found = (view.get("cost") or {}).get("byWaste", {})
    parts = {kind: float(found.get(f"{kind}Usd", 0.0)) for kind, _ in kinds_in(found)}
    if not any(parts.values()):
        return Figure(key, title, empty="Nothing has been spent yet.")
    drawn = []
    for place, (kind, usd) in enumerate(parts.items()):
        values = np.zeros(len(parts))
        values[place] = usd
        drawn.append(svg.Layer(kind, kind, values, money(usd)))
    edges = np.arange(len(parts) + 1, dtype="f8")
    ticks = [(place + 0.5, kind) for place, kind in enumerate(parts)]
    frame = svg.Frame(
        axes.Axis(0.0, float(len(parts)), ticks),
        axes.dollars(max(parts.values())),
        "",
        "US dollars",
        "Cost by kind: " + ", ".join(f"{kind} {money(usd)}" for kind, usd in parts.items()) + ".",
    )
    return Figure(key, title, picture=svg.bars(frame, edges, drawn), table=_table(view))


def _table(view: View) -> Table | None:
    parts = (view.get("cost") or {}).get("byWaste")
    if not parts:
        return None
    total = sum(parts.values())
    rows = [
        (kind, money(parts[f"{kind}Usd"]), share(parts[f"{kind}Usd"], total), meaning)
        for kind, meaning in kinds_in(parts)
    ]
    rows.append(("together", money(total), "", ""))
    return Table(("Spent on", ">Cost", ">Share", "Meaning"), rows, stacks=True)


def cost_page(view: View, series: View | None = None) -> Page:
    """`argosy cost RUN --html`: what a run has cost, by kind, by pool and by line of the bill."""
    less = saved(view["costUsd"], view["onDemandCostUsd"])
    hours = view["cost"]["instanceHours"]
    tiles = [
        Tile("Cost", money(view["costUsd"]), f"for {hours:,.3g} instance-hours"),
        Tile("On demand", money(view["onDemandCostUsd"]), f"this run: {less}" if less else ""),
        Tile("Useful", share(view.get("usefulUsd") or 0.0, view["costUsd"]), "attempts that succeeded"),
    ]
    return Page(
        title=f"Cost of {view['runId']} · Argosy",
        heading=f"Cost of {view['runId']}",
        status=view["status"],
        tiles=tiles,
        figures=[over_time(view, series or {}), _pools(view), _bill(view)],
    )


def _pools(view: View) -> Figure:
    rows = [
        (
            f"{each['instanceType']} in {each['availabilityZone']}"
            if each["availabilityZone"]
            else each["instanceType"],
            each["purchase"] or "-",
            f"{each['instanceHours']:,.3f}",
            money(each["costUsd"]),
            share(each["usefulUsd"], each["costUsd"]),
            money(each["onDemandCostUsd"]),
        )
        for each in view["cost"]["byPool"]
    ]
    if not rows:
        return Figure("pools", "Cost by pool", empty="No instance has run its tasks yet.")
    heads = ("Pool", "Bought", ">Instance-hours", ">Cost", ">Useful", ">On demand")
    return Figure("pools", "Cost by pool", table=Table(heads, rows, stacks=True))


def _bill(view: View) -> Figure:
    lines, beyond = view["cost"]["byLine"], view["cost"].get("estimates") or {}
    rows = [
        ("instances", money(lines["instancesUsd"]), "measured: seconds x price at their launch"),
        ("disks", money(lines["disksUsd"]), "measured: the same seconds x list price"),
        ("public addresses", money(lines["addressesUsd"]), "measured: the same seconds x list price"),
        ("together", money(sum(lines.values())), "in the ledger, budgets and caps"),
    ]
    if beyond:
        rows += [
            ("logs", money(beyond["logsUsd"]), "estimated, beyond the ledger"),
            ("traffic of images", money(beyond["imageTransferUsd"]), "estimated, beyond the ledger"),
        ]
    return Figure("bill", "Bill items", table=Table(("Line", ">Cost", "Source"), rows, stacks=True))
