"""Ordinary charts as SVG that needs no script and no style attribute, in the colours of the page.

The plot fills whatever width the page gives it: its shapes are in a coordinate system of 1,000 x 1,000 that is
stretched, while text and lines are outside that system, at percentages, and keep their size. Colours are classes
(`s-useful`), so that light and dark differ in the style sheet only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from argosy.figures.axes import Axis
from argosy.figures.markup import Content, Markup, element

Floats = NDArray[np.float64]
SIDE = 1000.0  # of the stretched coordinate system


@dataclass(frozen=True, slots=True)
class Layer:
    """name: for the legend. kind: its colour, a class of the style sheet without `s-`. values: shape (samples,). shown:
    what the legend says next to the name."""

    name: str
    kind: str
    values: Floats
    shown: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """One mark with its whiskers: (low, high) along each axis."""

    name: str
    kind: str
    x: float
    y: float
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class RowSpan:
    """A span in a row of a time line; a span of no length is a dot. row: on the y axis. is_band:
    pale, and behind the others."""

    name: str
    kind: str
    row: float
    begin: float
    end: float
    is_band: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame of a plot. y_name: the counted quantity and its unit. said: the picture in a sentence, for readers who
    cannot see it. marks: labelled times on the x axis. low: the plot needs little height."""

    x: Axis
    y: Axis
    x_name: str
    y_name: str
    said: str
    marks: Sequence[tuple[float, str]] = field(default=())
    low: bool = False


def areas(frame: Frame, at: Floats, series: Sequence[Layer], *, steps: bool = False) -> Markup:
    """Stacked, the first at the bottom. at: shape (samples,). steps: a value holds until the next. Where one is not a
    number there is a gap."""
    at = np.repeat(at, 2)[1:] if steps else at
    below = np.zeros(len(at))
    shapes = []
    for each in series:
        above = below + (np.repeat(each.values, 2)[:-1] if steps else each.values)
        if np.nan_to_num(each.values).any():
            pieces = (_band(frame, at[piece], below[piece], above[piece]) for piece in _known(above))
            shapes.append(_shape("".join(pieces), each, "area"))
        below = above
    return _chart(frame, shapes, legend(series))


def lines(frame: Frame, series: Sequence[tuple[Floats, Layer]], *, steps: bool = False) -> Markup:
    """Each series has its own times. steps: a value holds until the next. Where one is not a number there is a gap."""
    shapes = []
    for at, each in series:
        pieces = [_line(frame, at[piece], each.values[piece], steps) for piece in _known(each.values)]
        if pieces:
            shapes.append(_shape("".join(pieces), each, "line"))
    return _chart(frame, shapes, legend([each for _, each in series]))


def bars(frame: Frame, edges: Floats, series: Sequence[Layer]) -> Markup:
    """Stacked bars between edges; shape of edges (bars + 1,), of each series' values (bars,)."""
    below = np.zeros(len(edges) - 1)
    shapes = []
    for each in series:
        above = below + each.values
        if each.values.any():
            shapes.append(_shape(" ".join(_boxes(frame, edges, below, above)), each, "area"))
        below = above
    return _chart(frame, shapes, legend(series))


def points(frame: Frame, found: Sequence[Point]) -> Markup:
    """Marks with whiskers; each shows its name."""
    marks: list[Markup] = []
    for each in found:
        x, y = _across(frame, each.x), _down(frame, each.y)
        whiskers = []
        if each.x_range is not None:
            low, high = (_across(frame, value) for value in each.x_range)
            whiskers.append(element("line", class_="whisker", x1=low, x2=high, y1=y, y2=y))
        if each.y_range is not None:
            low, high = (_down(frame, value) for value in each.y_range)
            whiskers.append(element("line", class_="whisker", x1=x, x2=x, y1=low, y2=high))
        dot = element("circle", element("title", each.name), cx=x, cy=y, r="6")
        marks.append(element("g", *whiskers, dot, class_=f"point s-{each.kind}"))
    return _chart(frame, (), None, marks)


def stretches(frame: Frame, found: Sequence[RowSpan], series: Sequence[Layer]) -> Markup:
    """A time line with a row for each tick of the y axis. series: for the legend."""
    drawn = []
    for each in sorted(found, key=lambda stretch: not stretch.is_band):
        y = _down(frame, each.row)
        ends = {"x1": _across(frame, each.begin), "x2": _across(frame, each.end), "y1": y, "y2": y}
        kind = "band" if each.is_band else "stretch"
        drawn.append(element("line", element("title", each.name), class_=f"{kind} s-{each.kind}", **ends))
    return _chart(frame, (), legend(series), drawn)


def bar(share: float, kind: str = "plain") -> Markup:
    """For a cell of a table: the length in proportion to the longest."""
    full = element("rect", class_=f"area s-{kind}", width=f"{100 * share:.1f}%", height="100%", rx="2")
    return element("svg", full, class_="bar", aria_hidden="true")


def track(parts: Sequence[tuple[float, str]], mark: float | None = None) -> Markup:
    """For a cell of a table: parts of a whole, 0..1 and the colour of each, one behind the other. mark: the place of a
    line."""
    drawn = [element("rect", class_="area s-alive", width="100%", height="100%", rx="2")]
    begin = 0.0
    for part, kind in parts:
        end = min(1.0, begin + part)
        shape = {"x": f"{100 * begin:.1f}%", "width": f"{100 * (end - begin):.1f}%"}
        drawn.append(element("rect", class_=f"area s-{kind}", height="100%", **shape))
        begin = end
    if mark is not None:
        x = f"{100 * min(1.0, mark):.1f}%"
        drawn.append(element("line", class_="mark", x1=x, x2=x, y1="-3", y2="15"))
    return element("svg", *drawn, class_="bar track", aria_hidden="true")


def legend(series: Sequence[Layer]) -> Markup:
    rows = [
        element("li", element("span", class_=f"key s-{each.kind}"), each.name, _beside(each.shown)) for each in series
    ]
    return element("ul", *rows, class_="legend")


def _beside(text: str) -> Markup | None:
    return element("span", text, class_="value") if text else None


def _chart(frame: Frame, shapes: Sequence[Markup], below: Content, above: Sequence[Markup] = ()) -> Markup:
    plot = element(
        "svg", *shapes, viewBox=f"0 0 {SIDE:g} {SIDE:g}", preserveAspectRatio="none", width="100%", height="100%"
    )
    drawing = element("svg", *_grid(frame), plot, *_named_marks(frame), *above, role="img", aria_label=frame.said)
    return element("div", element("div", drawing, class_="chart low" if frame.low else "chart"), below)


def _grid(frame: Frame) -> Iterator[Markup]:
    for value, label in frame.y.ticks:
        y = _down(frame, value)
        yield element("line", class_="grid" if value else "axis", x1="0", x2="100%", y1=y, y2=y)
        yield element("text", label, class_="tick y", x="0", y=y, dx="-8", dy="4")
    for place, (value, label) in enumerate(frame.x.ticks):
        rank = "tick x" if place % 2 == 0 else "tick x odd"
        x = _across(frame, value)
        yield element("line", class_="axis", x1=x, x2=x, y1="100%", y2="101.5%")
        yield element("text", label, class_=rank, x=x, y="100%", dy="19")
    yield element("text", frame.y_name, class_="name y", x="0", y="0", dx="-8", dy="-14")
    yield element("text", frame.x_name, class_="name x", x="100%", y="100%", dy="38")


def _named_marks(frame: Frame) -> Iterator[Markup]:
    for at, name in frame.marks:
        if frame.x.low <= at <= frame.x.high:
            x = _across(frame, at)
            line = element("line", x1=x, x2=x, y1="0", y2="100%", class_="mark")
            yield element("g", line, element("text", name, class_="mark", x=x, y="0", dx="4", dy="10"))


def _shape(path: str, series: Layer, kind: str) -> Markup:
    shown = element("title", f"{series.name} {series.shown}".strip())
    return element("path", shown, d=path, class_=f"{kind} s-{series.kind}", vector_effect="non-scaling-stroke")


def _known(values: Floats) -> list[slice]:
    """The stretches in which every value is a number."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], ~np.isnan(values), [False]]).astype("i1")))
    return [slice(low, high) for low, high in edges.reshape(-1, 2).tolist()]


def _band(frame: Frame, at: Floats, below: Floats, above: Floats) -> str:
    across, outline = _xs(frame, at), np.concatenate([_ys(frame, above), _ys(frame, below)[::-1]])
    return _path(np.concatenate([across, across[::-1]]), outline) + "Z"


def _line(frame: Frame, at: Floats, values: Floats, steps: bool) -> str:
    if steps:
        at, values = np.repeat(at, 2)[1:], np.repeat(values, 2)[:-1]
    return _path(_xs(frame, at), _ys(frame, values))


def _boxes(frame: Frame, edges: Floats, below: Floats, above: Floats) -> Iterator[str]:
    across = _xs(frame, edges)
    gap = min(2.0, float(np.diff(across).min()) * 0.1)
    for left, right, low, high in zip(across[:-1], across[1:], _ys(frame, below), _ys(frame, above), strict=True):
        if low > high:
            yield f"M{left + gap:.1f} {low:.1f}V{high:.1f}H{right - gap:.1f}V{low:.1f}Z"


def _path(xs: Floats, ys: Floats) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(xs.tolist(), ys.tolist(), strict=True))


def _xs(frame: Frame, values: Floats) -> Floats:
    width = frame.x.high - frame.x.low or 1.0
    scaled: Floats = (values - frame.x.low) / width * SIDE
    return scaled


def _ys(frame: Frame, values: Floats) -> Floats:
    height = frame.y.high - frame.y.low or 1.0
    scaled: Floats = SIDE - (values - frame.y.low) / height * SIDE
    return scaled


def _across(frame: Frame, value: float) -> str:
    return f"{100 * frame.x.place(value):.2f}%"


def _down(frame: Frame, value: float) -> str:
    return f"{100 - 100 * frame.y.place(value):.2f}%"
