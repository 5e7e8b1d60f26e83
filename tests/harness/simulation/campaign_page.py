"""The page of simulated trials, from the report of `simulate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.figures import svg
from argosy.figures.document import Figure, Page, Table, Tile
from argosy.figures.numbers import counted, duration, money

Report = Mapping[str, Any]


def campaign_page(report: Report, found: Sequence[Report] = ()) -> Page:
    """found: the stories of violations."""
    bad = report["violations"]
    return Page(
        title="Simulation · Argosy",
        heading=counted(report["trials"], "simulated trial"),
        status="violations" if bad else "no violation",
        tiles=[
            Tile("Violations", f"{bad:,}", counted(report["trials"], "trial"), "bad" if bad else "good"),
            Tile("Tasks", f"{report['tasks']:,}", f"each launched {report['launchesPerTask']:g} times"),
            Tile("Virtual time", f"{report['virtualHours']:,.1f} h", counted(report["ticks"], "tick")),
            Tile(
                "Longest run",
                duration(report["makespanSeconds"]),
                f"at rest {duration(report['settledSeconds'])} later",
            ),
            Tile("Cost", money(report["costUsd"]), f"{report['instanceHours']:,.1f} instance-hours"),
            Tile("Not spent on tasks", f"{report['waste']:.0%}", "of the cost"),
        ],
        figures=[
            _counted("faults", "Faults that struck", report["faultsSeen"], "times"),
            _counted("bought", "Instances bought", report["instancesBought"], "instances"),
            _counted("runs", "How runs ended", report["runs"], "runs"),
            *(_story(place, told) for place, told in enumerate(found)),
        ],
    )


def _counted(key: str, title: str, counts: Mapping[str, int], unit: str) -> Figure:
    if not counts:
        return Figure(key, title, empty="None.")
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    most = rows[0][1]
    table = Table(
        ("What", f">{unit.capitalize()}", ""), [(name, f"{count:,}", svg.bar(count / most)) for name, count in rows]
    )
    return Figure(key, title, table=table)


def _story(place: int, told: Report) -> Figure:
    rows = [(line,) for line in (told["sentence"], told["replay"], *told["story"])]
    return Figure(
        f"found-{place}",
        f"Seed {told['seed']} violates {told['invariant']}",
        table=Table(("What happened",), rows),
        wide=True,
    )
