"""The first page: the newest runs, filtered and sorted as the address says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, urlencode

from argosy.client.run_names import owner_of
from argosy.figures.document import Figure, Page, Table, Tile, status_pill
from argosy.figures.markup import Markup, element
from argosy.figures.numbers import clock, counted, money
from argosy.figures.tasks import entry, labelled, selection

View = Mapping[str, Any]
OPEN, FAILED = "open", "failed"
_STATES: Mapping[str, Callable[[View], bool]] = {
    "": lambda view: True,
    OPEN: lambda view: not view["stoppedAt"],
    "ended": lambda view: bool(view["stoppedAt"]),
    FAILED: lambda view: bool(view["tasks"]["failed"]),
    "interrupted": lambda view: bool(view["interruptions"]),
}
_SORTS: Mapping[str, tuple[str, Callable[[View], Any]]] = {  # heading: the name in the address, and the value
    "Run": ("run", lambda view: view["runId"]),
    "Failed": ("failed", lambda view: view["tasks"]["failed"]),
    "Interruptions": ("interruptions", lambda view: view["interruptions"]),
    "Cost": ("cost", lambda view: view["costUsd"]),
    "Submitted": ("submitted", lambda view: view["submittedAt"]),
}


@dataclass(frozen=True, slots=True)
class RunChoice:
    """Which runs, in which order. text: part of a run's name, owner or queue. state: one of `_STATES`. sort: a name of
    `_SORTS`, `-` before it for descending."""

    state: str = ""
    text: str = ""
    sort: str = "-submitted"

    @classmethod
    def of(cls, query: str) -> RunChoice:
        """Whatever cannot be read there does not count."""
        try:
            given = {name: values[-1].strip()[:200] for name, values in parse_qs(query, max_num_fields=20).items()}
        except ValueError:
            given = {}
        known, sort = [name for name, _ in _SORTS.values()], given.get("sort", "")
        return cls(
            state=given.get("state", "") if given.get("state") in _STATES else "",
            text=given.get("text", ""),
            sort=sort if sort.removeprefix("-") in known else "-submitted",
        )

    @property
    def filters(self) -> bool:
        return bool(self.state or self.text)

    def address(self) -> str:
        """The query of the address of this choice."""
        usual, given = RunChoice(), {name: getattr(self, name) for name in self.__slots__}
        return "?" + urlencode({name: value for name, value in given.items() if value != getattr(usual, name)})

    def among(self, runs: Sequence[View]) -> list[View]:
        """Those that it chooses, in order."""
        value = next(of for name, of in _SORTS.values() if name == self.sort.removeprefix("-"))
        found = [view for view in runs if _STATES[self.state](view) and self._names(view)]
        return sorted(found, key=value, reverse=self.sort.startswith("-"))

    def _names(self, view: View) -> bool:
        texts = (view["runId"], owner_of(view), view.get("queue") or "")
        return any(self.text.lower() in text.lower() for text in texts)


def runs_page(runs: Sequence[View], more: bool, choice: RunChoice | None = None) -> Page:
    """runs: the newest first. more: there are older ones."""
    choice = choice or RunChoice()
    shown = choice.among(runs)
    open_runs = [view for view in shown if not view["stoppedAt"]]
    tiles = [
        Tile("Open", f"{len(open_runs):,}", counted(sum(_left(view) for view in open_runs), "task") + " left"),
        Tile("Cost", money(sum(view["costUsd"] for view in shown)), f"of the {counted(len(shown), 'run')} below"),
    ]
    chooser = [Figure("choose", "Show", picture=_form(choice), wide=True)] if runs else []
    return Page(
        title="Runs · Argosy",
        heading="Runs",
        tiles=tiles if runs else (),
        figures=[*chooser, _list(shown, choice, len(runs) if more else 0)],
        next_steps=() if runs else [("Submit one:", "argosy submit FILE")],
    )


def _form(choice: RunChoice) -> Markup:
    """The script adds the saved views."""
    states = [(name, name or "all") for name in _STATES]
    orders = [(name, heading.lower()) for heading, (name, _) in _SORTS.items()]
    orders += [(f"-{name}", f"{heading}, descending") for name, heading in orders]
    form = element(
        "form",
        labelled("State", selection("state", states, choice.state)),
        labelled("Name, owner or queue has", entry("text", choice.text, "digits")),
        labelled("Sorted by", selection("sort", orders, choice.sort)),
        element("button", "Show"),
        role="search",
        class_="fields",
    )
    return Markup(form + element("div", class_="fields", data_views="runs", role="group", aria_label="Saved views"))


def _left(view: View) -> int:
    tasks = view["tasks"]
    return int(tasks["pending"] + tasks["starting"] + tasks["running"])


def _list(runs: Sequence[View], choice: RunChoice, of: int) -> Figure:
    """of: how many runs were looked at, if there are older ones; else 0."""
    if not runs and choice.filters:
        which = f"None of the newest {of:,} runs is like this." if of else "No run is like this."
        return Figure("runs", "Runs", empty=which, wide=True)
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
    older = f"For older runs than the newest {of:,}: argosy runs --limit 1000." if of else ""
    sorting = {heading: _sorting(name, choice) for heading, (name, _) in _SORTS.items()}
    title = "Runs" if choice.filters else "Newest runs"
    return Figure("runs", title, table=Table(heads, rows, more=older, stacks=True, sorting=sorting), wide=True)


def _sorting(name: str, choice: RunChoice) -> tuple[str, str | None]:
    """A second click on a heading turns the order around."""
    now = {name: "ascending", f"-{name}": "descending"}.get(choice.sort)
    to = replace(choice, sort=name if choice.sort == f"-{name}" else f"-{name}")
    return to.address(), now
