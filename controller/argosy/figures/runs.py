"""The first page: the newest runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.client.run_names import owner_of
from argosy.figures.document import Figure, Page, Table, Tile, status_pill
from argosy.figures.markup import element
from argosy.figures.numbers import clock, counted, money

View = Mapping[str, Any]


def runs_page(runs: Sequence[View], more: bool) -> Page:
    """more: there are older ones."""
    open_runs = [view for view in runs if not view["stoppedAt"]]
    tiles = [
        Tile("Open", f"{len(open_runs):,}", counted(sum(_left(view) for view in open_runs), "task") + " left"),
        Tile("Cost", money(sum(view["costUsd"] for view in runs)), f"of the {counted(len(runs), 'run')} below"),
    ]
    return Page(
        title="Runs · Argosy",
        heading="Runs",
        tiles=tiles if runs else (),
        figures=[_list(runs, more)],
        next_steps=() if runs else [("Submit one:", "argosy submit FILE")],
    )


def _left(view: View) -> int:
    tasks = view["tasks"]
    return int(tasks["pending"] + tasks["starting"] + tasks["running"])


def _list(runs: Sequence[View], more: bool) -> Figure:
    if not runs:
        return Figure("runs", "Newest runs", empty="No run has been submitted yet.", wide=True)
    rows = [
        (
            element("a", view["runId"], href=f"/runs/{view['runId']}"),
            status_pill(view["status"]),
            f"{view['tasks']['succeeded']:,} of {view['tasks']['total']:,}",
            f"{view['tasks']['failed']:,}",
            f"{view['interruptions']:,}",
            owner_of(view) or "-",
            money(view["costUsd"]),
            money(view["onDemandCostUsd"]),
            clock(view["submittedAt"]),
        )
        for view in runs
    ]
    heads = ("Run", "Status", ">Succeeded", ">Failed", ">Interruptions", "Owner", ">Cost", ">On demand", "Submitted")
    older = "For older runs: argosy runs --limit 1000." if more else ""
    return Figure("runs", "Newest runs", table=Table(heads, rows, more=older, stacks=True), wide=True)
