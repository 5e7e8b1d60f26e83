"""Runs, plans and the cluster in a notebook: the page's own figures, as plain tables and images.

A notebook that is not trusted drops styles, scripts and inline SVG: nothing here needs them. So a run that is shown is
kept up to date by its kernel, which replaces the cell's output, and by no script.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from copy import copy
from importlib import import_module
from threading import Thread
from typing import Any, Protocol, Self

from argosy.client.errors import ArgosyError
from argosy.figures.document import Figure, Page, Table, Tile
from argosy.figures.markup import Markup, element, joined
from argosy.figures.pictures import picture_of

ROWS_SHOWN = 12
UPDATED_EVERY_S = 2.0  # a page of a run takes several requests


class LiveRun(Protocol):
    """What a cell needs to know of a run: `run.RunHandle`, which imports this module."""

    now: Any

    @property
    def has_ended(self) -> bool: ...

    def watch(self) -> Iterator[Self]: ...

    def _repr_html_(self) -> str: ...


def show_live(run: LiveRun | None) -> None:
    """Show a run in a cell of a notebook, up to date until it has ended. Returns at once.

    Raises NotImplementedError where there is none, on which IPython shows something else.
    """
    ipython = sys.modules.get("IPython")
    if run is None or ipython is None or getattr(ipython.get_ipython(), "kernel", None) is None:
        raise NotImplementedError
    shown = copy(run)  # the caller's stays as of its last refresh
    html = import_module("IPython.display").HTML
    cell = import_module("IPython.display").display(html(shown._repr_html_()), display_id=True)
    if not shown.has_ended:
        Thread(target=_follow, args=(shown, cell, html), name="argosy-cell", daemon=True).start()


def _follow(run: LiveRun, cell: Any, html: Any) -> None:
    updated_at = run.now()
    with suppress(ArgosyError):  # the cell keeps what it shows
        for look in run.watch():
            if look.has_ended or look.now() - updated_at >= UPDATED_EVERY_S:
                cell.update(html(look._repr_html_()))
                updated_at = look.now()


def notebook_html(page: Page, figures: Collection[str]) -> str:
    """The page's head and those of its figures. figures: their keys."""
    parts = [
        element("h3", page.heading, *((" ", element("small", page.status)) if page.status else ())),
        _facts([(name, joined(value)) for name, value in page.facts]),
        _tiles(page.tiles),
        *(element("p", element("strong", "Warning: "), each) for each in page.warnings),
        *(_figure(each) for each in page.figures if each.key in figures and not each.empty),
    ]
    return str(element("div", *parts))


def _facts(facts: list[tuple[str, Markup]]) -> Markup | None:
    rows = [element("tr", element("th", name, scope="row"), element("td", value)) for name, value in facts]
    return element("table", element("tbody", *rows)) if rows else None


def _tiles(tiles: Collection[Tile]) -> Markup | None:
    if not tiles:
        return None
    heads = element("tr", *(element("th", each.label, scope="col") for each in tiles))
    values = element("tr", *(element("td", element("strong", each.value)) for each in tiles))
    notes = element("tr", *(element("td", element("small", each.note)) for each in tiles))
    return element("table", element("thead", heads), element("tbody", values, notes))


def _figure(figure: Figure) -> Markup:
    picture = picture_of(figure)
    table = _table(figure.table) if picture is None and figure.table is not None else None
    note = element("p", element("small", figure.note)) if figure.note and picture is not None else None
    return joined([element("h4", figure.title), note, picture, table])


def _table(table: Table) -> Markup:
    heads = [element("th", name.removeprefix(">"), scope="col") for name in table.headings]
    rows = [element("tr", *(element("td", cell) for cell in row)) for row in table.rows[:ROWS_SHOWN]]
    left = table.left + max(0, len(table.rows) - ROWS_SHOWN)
    more = element("p", element("small", f"{left:,} more rows are not shown.")) if left else None
    whole = element("table", element("thead", element("tr", *heads)), element("tbody", *rows))
    return joined([whole, more])
