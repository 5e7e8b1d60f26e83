"""The page of the services, from ListEnvironments' reply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argosy.figures.document import Figure, Page, Table, Tile, status_pill
from argosy.figures.markup import element
from argosy.figures.numbers import counted, money

View = Mapping[str, Any]
_UNDER_WAY = ("IN_PROGRESS", "WAITING", "STUCK")
_TROUBLED = ("FROZEN", "FAILING", "SUSPENDED", "FAILED", "STUCK")


def services_page(found: Sequence[View]) -> Page:
    """found: the environments, by name."""
    return Page(
        title="Services · Argosy",
        heading="Services",
        tiles=list(_tiles(found)) if found else (),
        figures=[_list(found)],
        next_steps=() if found else [("Create one:", "argosy env create FILE")],
    )


def _tiles(found: Sequence[View]) -> Iterator[Tile]:
    healthy, desired = (sum(each[name] for each in found) for name in ("healthy", "desired"))
    yield Tile("Healthy", f"{healthy:,}", f"of {counted(desired, 'task')} desired", "bad" if healthy < desired else "")
    going = sum(each["status"] in _UNDER_WAY for each in found)
    yield Tile("Being deployed", f"{going:,}", f"of {counted(len(found), 'environment')}")
    troubled = [each["name"] for each in found if each["status"] in _TROUBLED]
    yield Tile("Needs attention", f"{len(troubled):,}", ", ".join(troubled[:3]), "bad" if troubled else "")
    yield Tile("Cost", money(sum(each["costUsd"] for each in found)), "so far")


def _list(found: Sequence[View]) -> Figure:
    key, title = "services", "Environments"
    if not found:
        return Figure(key, title, empty="No environment has been created yet.", wide=True)
    rows = [
        (
            element("a", each["name"], href=f"/services/{each['name']}"),
            each["kind"],
            _revision(each["completedRevision"]),
            _revision(each["targetRevision"]),
            status_pill(each["status"]),
            *(f"{each[name]:,}" for name in ("outdated", "desired", "healthy")),
            f"{total(each):,}",
            f"{each['pending']:,}",
            each["statusReason"] or "",
        )
        for each in found
    ]
    heads = (
        *("Environment", "Kind", ">Active", ">Target", "Status"),
        *(">Outdated", ">Desired", ">Healthy", ">Total", ">Waiting", "Reason"),
    )
    note = "Active: the revision of the last completed deployment. Target: the one that should run."
    return Figure(key, title, note=note, table=Table(heads, rows, stacks=True), wide=True)


def total(view: View) -> int:
    """Live tasks of all revisions. Older deployments do not report those that start or stop."""
    return int(view.get("total", view["running"]))


def _revision(number: int | None) -> str:
    return "-" if number is None else str(number)
