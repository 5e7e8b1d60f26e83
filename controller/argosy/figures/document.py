"""A page's parts, and their HTML: complete without script, as one file or served."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from argosy.figures.markup import Content, Markup, element, joined

Cell = str | Markup
_WITH_PAGES_BELOW = ("/cluster", "/services", "/schedules")
ROWS_SHOWN = 200  # of a table: what is longer says how to get the rest


@dataclass(frozen=True, slots=True)
class Table:
    """The figures behind a picture, to be read aloud or copied. `>` before a heading aligns to the right. left: the
    number of rows that were left out. more: how to get them. stacks: if there is no room for its columns, its rows
    become blocks with a line for each cell.
    sorting: by heading, the address at which the table is sorted by it, and how it is sorted now, as `aria-sort`.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    left: int = 0
    more: Cell = ""
    stacks: bool = False
    sorting: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Figure:
    """One picture. key: its id in the page. note: the content, in a sentence. wide: it takes all of the page's width.
    data: for the script to draw on the canvas. empty: the text while there is no data."""

    key: str
    title: str
    note: str = ""
    picture: Markup | None = None
    table: Table | None = None
    wide: bool = False
    data: Mapping[str, Any] | None = None
    empty: str = ""


@dataclass(frozen=True, slots=True)
class Tile:
    """One number that matters. tone: good, bad or nothing."""

    label: str
    value: str
    note: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """title: of the window. heading: what the page is about; status: its state, a word; facts: lines below it."""

    title: str
    heading: str
    figures: Sequence[Figure]
    status: str = ""
    facts: Sequence[tuple[str, Content]] = ()
    tiles: Sequence[Tile] = ()
    warnings: Sequence[str] = ()
    next_steps: Sequence[tuple[str, str]] = field(default=())  # (purpose, command)


def body(page: Page) -> Markup:
    """The part of the page after the header."""
    return joined(
        [
            part("summary", _summary(page)),
            element("div", *(part(each.key, figure(each), _span(each)) for each in page.figures), class_="figures"),
        ]
    )


def part(key: str, content: Content, kind: str = "") -> Markup:
    """The parts that are replaced as a whole when they change."""
    return element("section", content, id=key, class_=kind or None)


def parts(page: Page) -> dict[str, str]:
    """The inner HTML of each part, by its key."""
    return {"summary": _summary(page), **{each.key: figure(each) for each in page.figures}}


def _span(each: Figure) -> str:
    return "figure wide" if each.wide else "figure"


def _summary(page: Page) -> Markup:
    status = status_pill(page.status) if page.status else None
    facts = [element("div", element("dt", name), element("dd", value)) for name, value in page.facts]
    return joined(
        [
            element("h1", page.heading, " ", status),
            element("dl", *facts, class_="facts") if facts else None,
            element("ul", *(element("li", each) for each in page.warnings), class_="warnings", role="list")
            if page.warnings
            else None,
            element("dl", *map(_tile, page.tiles), class_="tiles") if page.tiles else None,
            _next_steps(page.next_steps),
        ]
    )


def status_pill(status: str) -> Markup:
    """A state in one word, such as IN_PROGRESS, in its colour."""
    kind = status.lower().replace("_", "-").replace(" ", "-")
    return element("span", status.replace("_", " "), class_=f"status status-{kind}")


def _tile(tile: Tile) -> Markup:
    return element(
        "div",
        element("dt", tile.label),
        element("dd", tile.value, class_="number"),
        element("dd", tile.note, class_="note") if tile.note else None,
        class_=f"tile {tile.tone}".strip(),
    )


def _next_steps(steps: Sequence[tuple[str, str]]) -> Markup | None:
    if not steps:
        return None
    rows = [element("li", f"{what} ", element("code", typed)) for what, typed in steps]
    return element("ul", *rows, class_="steps")


def figure(each: Figure) -> Markup:
    """Its title, its note, the picture, and the table behind it."""
    if each.empty:
        return joined([element("h2", each.title), element("p", each.empty, class_="empty")])
    return joined(
        [
            element("h2", each.title),
            element("p", each.note, class_="note") if each.note else None,
            each.picture,
            _table(each.title, each.table, is_open=each.picture is None) if each.table else None,
        ]
    )


def _table(title: str, table: Table, is_open: bool) -> Markup:
    left = table.left + max(0, len(table.rows) - ROWS_SHOWN)
    more = table.more or (f"{left:,} more rows are not shown." if left else "")
    # Scrolled by keyboard, too: so it takes the focus, and has a name.
    named = {"role": "region", "aria_label": f"Table: {title}"}
    box = element("div", _grid(title, table), class_="scroll", tabindex="0", **named)
    noted = element("p", more, class_="note") if more else None
    if is_open:
        return joined([box, noted])
    return element("details", element("summary", "Table"), box, noted)


def _grid(title: str, table: Table) -> Markup:
    """A table whose rows may become blocks has its roles in words: browsers forget them with the display."""

    def role(name: str) -> dict[str, str]:
        return {"role": name} if table.stacks else {}

    names = [each.removeprefix(">") for each in table.headings]
    sides = ["right" if each.startswith(">") else None for each in table.headings]
    said = [f"{name}: " if table.stacks and name else None for name in names]
    heads = [
        _head(table, name, side, role("columnheader")) if name else element("td", **role("cell"))
        for name, side in zip(names, sides, strict=True)
    ]
    # A page has thousands of cells and is built every few seconds, so the opening tag of a column is built once.
    tags = [
        element("td", class_=side, data_head=head, **role("cell")).removesuffix("</td>")
        for side, head in zip(sides, said, strict=True)
    ]
    rows = [
        element(
            "tr", *(Markup(f"{tag}{joined(cell)}</td>") for tag, cell in zip(tags, row, strict=True)), **role("row")
        )
        for row in table.rows[:ROWS_SHOWN]
    ]
    return element(
        "table",
        element("caption", title),
        element("thead", element("tr", *heads, **role("row")), **role("rowgroup")),
        element("tbody", *rows, **role("rowgroup")),
        class_="stacks" if table.stacks else None,
        **role("table"),
    )


def _head(table: Table, name: str, side: str | None, role: Mapping[str, str]) -> Markup:
    to, order = table.sorting.get(name, ("", None))
    shown = element("a", name, href=to) if to else name
    return element("th", shown, scope="col", class_=side, aria_sort=order, **role)


def one_file(page: Page, made: str) -> str:
    """The page as one file that loads nothing. made: when, and by which command.

    The policy allows just the one script and the one style sheet, by their digests: markup that slips in cannot run.
    """
    style, script = asset("page.css"), asset("dense.js")
    policy = f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; img-src data:"
    policy += "; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", page.title),
        element("style", Markup(style)),
    )
    content = element(
        "body",
        element("header", element("span", "Argosy", class_="brand"), element("span", made, class_="made")),
        element("main", body(page)),
        element("script", data_block(drawn(page)), type="application/json", id="data"),
        element("script", Markup(script), type="module"),
    )
    return "<!doctype html>\n" + element("html", head, content, lang="en") + "\n"


def served(page: Page, address: str, title: str, poll_s: float) -> str:
    """The page as `argosy ui` sends it: style and scripts come from the same server. address: of this page, without the
    host.
    title: of the deployment. poll_s: interval at which changes are requested.
    """
    run = address.removeprefix("/runs/").partition("/")[0] if address.startswith("/runs/") else ""
    links = [
        ("/", "Runs"), ("/stream", "Task stream"), ("/queues", "Queues"), ("/services", "Services"),
        ("/schedules", "Schedules"), ("/cluster", "Cluster"), ("/market", "Market"),
    ]  # fmt: skip
    if run:
        links += [(f"/runs/{run}", "This run"), (f"/runs/{run}/tasks", "Its tasks"), (f"/runs/{run}/plan", "Its plan")]
    above = next((to for to in (*_WITH_PAGES_BELOW, f"/runs/{run}/tasks") if address.startswith(f"{to}/")), None)
    anchors = (element("a", name, href=to, aria_current=_current(to, address, above)) for to, name in links)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", page.title),
        element("link", rel="stylesheet", href="/static/page.css"),
        element("link", rel="stylesheet", href="/static/served.css"),
        element("link", rel="icon", href="data:,"),
        element("script", Markup(""), type="module", src="/static/dense.js"),
        element("script", Markup(""), type="module", src="/static/live.js"),
    )
    content = element(
        "body",
        element(
            "header",
            element("span", "Argosy", class_="brand"),
            element("nav", *anchors, aria_label="Pages"),
            element("span", title, class_="made"),
            element("span", id="fresh", class_="made", role="status"),
        ),
        element("main", body(page)),
        element("script", data_block(drawn(page)), type="application/json", id="data"),
        data_poll=str(round(poll_s * 1000)),
    )
    return "<!doctype html>\n" + element("html", head, content, lang="en") + "\n"


def _current(to: str, address: str, above: str | None) -> str | None:
    """Whether a link leads to this page, or to the list that has it."""
    if to == address:
        return "page"
    return "true" if to == above else None


def drawn(page: Page) -> dict[str, Mapping[str, Any]]:
    """The data that the script draws, by the figure's key."""
    return {each.key: each.data for each in page.figures if each.data is not None}


def data_block(data: Mapping[str, Any]) -> Markup:
    """JSON that cannot end its own script element."""
    text = json.dumps(data, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


@cache
def asset(name: str) -> str:
    """One of the files in `static/`."""
    return files("argosy.figures").joinpath("static", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
