"""The page of a plan, from PlanRun's reply: cost against time, and the savings of each relaxation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from argosy.figures import axes, svg
from argosy.figures.document import Figure, Page, Table, Tile
from argosy.figures.markup import element
from argosy.figures.numbers import counted, duration, money, saved, start_up

View = Mapping[str, Any]


def plan_page(reply: View) -> Page:
    """Nothing has been started."""
    return Page(
        title=f"Plan of {reply['name']} · Argosy",
        heading=f"Plan of {reply['name']}",
        status="" if reply["possible"] else "impossible here",
        warnings=list(reply["warnings"]),
        tiles=list(_tiles(reply)),
        figures=[_against_time(reply), _relaxations(reply), _bought(reply), _rejected(reply), _assumed(reply)],
    )


def _tiles(reply: View) -> Iterator[Tile]:
    yield Tile("Tasks", f"{reply['tasks']:,}", f"{reply['places']:,} at a time")
    if not reply["possible"]:
        return
    cost, seconds, other = reply["costUsd"], reply["seconds"], reply["onDemand"]
    yield Tile("Cost", money(cost["expected"]), f"between {money(cost['low'])} and {money(cost['high'])}")
    yield Tile(
        "Ends after",
        duration(seconds["expected"]),
        f"between {duration(seconds['low'])} and {duration(seconds['high'])}",
    )
    if other is not None:
        less = saved(cost["expected"], other["costUsd"])
        yield Tile("On demand", money(other["costUsd"]), f"this plan costs {less}" if less else other["region"])
    if reply["instances"] and (told := reply.get("startUp")):
        yield Tile("Start-up", money(told["usd"]), start_up(told))
    if reply["instanceHours"] is not None:
        yield Tile("Instances", f"{sum(row['count'] for row in reply['instances']):,}", _hours(reply["instanceHours"]))


def _hours(hours: float) -> str:
    return f"{hours:,.3g} instance-hours"


def _against_time(reply: View) -> Figure:
    key, title = "frontier", "Cost against time"
    if not reply["possible"]:
        return Figure(key, title, empty="No forecast: no instance type of this deployment could run it.")
    points = list(_points(reply))
    ends = [each.x_range[1] if each.x_range else each.x for each in points]
    tops = [each.y_range[1] if each.y_range else each.y for each in points]
    frame = svg.Frame(
        axes.seconds(0.0, max(ends) * 1.08),
        axes.dollars(max(tops) * 1.05),
        "until the last task has ended",
        "US dollars",
        "; ".join(f"{each.name}: {money(each.y)} in {duration(each.x)}" for each in points) + ".",
    )
    names = [svg.Layer(each.name, each.kind, np.empty(0), f"{money(each.y)}, {duration(each.x)}") for each in points]
    table = Table(("Variant", ">Cost", ">Ends after"), [(p.name, money(p.y), duration(p.x)) for p in points])
    note = "Whiskers: nine out of ten runs end between them."
    picture = element("div", svg.points(frame, points), svg.legend(names))
    return Figure(key, title, note=note, picture=picture, table=table)


def _points(reply: View) -> Iterator[svg.Point]:
    cost, seconds = reply["costUsd"], reply["seconds"]
    yield svg.Point(
        "this plan",
        "0",
        seconds["expected"],
        cost["expected"],
        (seconds["low"], seconds["high"]),
        (cost["low"], cost["high"]),
    )
    other = reply["onDemand"]
    if other is not None:
        yield svg.Point("on demand", "7", other["seconds"], other["costUsd"])
    for place, row in enumerate(reply["relaxations"]):
        if row.get("costUsd") is not None and row.get("seconds") is not None:
            yield svg.Point(row["sentence"], str(1 + place % 6), row["seconds"], row["costUsd"])


def _relaxations(reply: View) -> Figure:
    key, title = "relaxations", "Cheaper alternatives"
    rows = [
        (row["sentence"], _saved(reply, row), svg.bar(row["saves"] or 0.0, "useful"), *_outcome(row))
        for row in reply["relaxations"]
    ]
    if not rows:
        return Figure(key, title, empty="No small change to the request would save 3 % or more.")
    return Figure(key, title, table=Table(("Change", ">Saves", "", ">It would cost", ">Ends after"), rows, stacks=True))


def _saved(reply: View, row: View) -> str:
    """The savings of a change, in dollars if both costs are known."""
    if row["saves"] is None:
        return "it could run"
    less, cost = f"{100 * row['saves']:.0f} %", reply["costUsd"]["expected"]
    return f"{money(max(0.0, cost - row['costUsd']))}, {less}" if cost and row.get("costUsd") is not None else less


def _outcome(row: View) -> tuple[str, str]:
    cost, seconds = row.get("costUsd"), row.get("seconds")
    return "-" if cost is None else money(cost), "-" if seconds is None else duration(seconds)


def _bought(reply: View) -> Figure:
    key, title = "bought", "Instances to buy"
    rows = [
        (
            f"{row['count']:,}",
            row["instanceType"],
            row["zone"],
            row["purchase"],
            f"{row['tasksAtATime']:,}",
            money(row["priceUsdPerHour"]),
        )
        for row in reply["instances"]
    ]
    if not rows:
        here = counted(reply["placesHere"], "place")
        return Figure(
            key,
            title,
            empty=f"Nothing: {here} on current instances are enough." if reply["placesHere"] else "Nothing.",
        )
    heads = (">Buy", "Type", "Zone", "As", ">Tasks each", ">$ an hour each")
    return Figure(key, title, table=Table(heads, rows, stacks=True))


def _rejected(reply: View) -> Figure:
    key, title = "rejected", "Left out"
    rows = [(f"{row['pools']:,}", ", ".join(row["instanceTypes"]), row["reason"]) for row in reply["rejected"]]
    if not rows:
        return Figure(key, title, empty="Every pool would take its tasks.")
    return Figure(key, title, table=Table((">Pools", "Types", "Because"), rows, stacks=True))


def _assumed(reply: View) -> Figure:
    lines = element("ul", *(element("li", each) for each in reply["assumptions"]))
    return Figure("assumed", "Assumed", picture=lines)
