"""A chart outside our pages, where our style sheet does not apply: one SVG image with its legend.

A notebook that is not trusted drops inline SVG, styles and scripts, but shows an image whose address holds all of it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from xml.etree import ElementTree

from argosy.figures.document import Figure, asset
from argosy.figures.markup import Markup, element

WIDTH, HEIGHT = 720, 300
_TOP, _RIGHT, _BOTTOM, _LEFT = 34, 16, 44, 62  # room for the names of the axes
_LEGEND_ROW, _LETTER = 22, 6.9  # heights and widths in pixels, of text of 13 pixels
_CLASSES = (".chart", ".area", ".line", ".point", ".s-")


def picture_of(figure: Figure) -> Markup | None:
    """The figure's chart as an `img` element; None for one that is drawn by a script, or that is empty."""
    found = ElementTree.fromstring(element("div", figure.picture))  # which may be several elements, or none
    chart = found.find(".//svg")
    if chart is None:
        return None
    said = chart.get("aria-label", figure.title)
    image = _image(chart, list(_legend(found)))
    address = f"data:image/svg+xml;base64,{base64.b64encode(image.encode()).decode()}"
    return element("img", src=address, alt=said, width=float(WIDTH))


def _image(chart: ElementTree.Element, legend: list[tuple[str, str]]) -> str:
    rows, placed = _placed(legend)
    height = HEIGHT + rows * _LEGEND_ROW
    inner = {"x": _LEFT, "y": _TOP, "width": WIDTH - _LEFT - _RIGHT, "height": HEIGHT - _TOP - _BOTTOM}
    for name, value in inner.items():
        chart.set(name, str(value))
    chart.set("overflow", "visible")
    attributes = {"xmlns": "http://www.w3.org/2000/svg", "width": str(WIDTH), "height": str(height)}
    image = ElementTree.Element("svg", {**attributes, "viewBox": f"0 0 {WIDTH} {height}"})
    ElementTree.SubElement(image, "style").text = _style()
    ElementTree.SubElement(image, "rect", {"class": "paper", "width": "100%", "height": "100%"})
    ElementTree.SubElement(image, "g", {"class": "chart"}).append(chart)
    image.extend(placed)
    return ElementTree.tostring(image, encoding="unicode")


def _legend(picture: ElementTree.Element) -> Iterator[tuple[str, str]]:
    """(class of the colour, text) of each row of the chart's list."""
    for row in picture.iter("li"):
        key = row.find("span")
        kind = "" if key is None else key.get("class", "").removeprefix("key ")
        yield kind, " ".join("".join(row.itertext()).split())


def _placed(legend: list[tuple[str, str]]) -> tuple[int, list[ElementTree.Element]]:
    """How many rows the legend takes below the chart, and its marks and texts."""
    placed: list[ElementTree.Element] = []
    x, row = float(_LEFT), 0
    for kind, text in legend:
        wide = 18 + len(text) * _LETTER + 18
        if x + wide > WIDTH and x > _LEFT:
            x, row = float(_LEFT), row + 1
        y = HEIGHT + row * _LEGEND_ROW
        mark = {"class": f"area {kind}", "x": f"{x:g}", "y": f"{y}", "width": "11", "height": "11", "rx": "3"}
        placed.append(ElementTree.Element("rect", mark))
        said = ElementTree.Element("text", {"class": "legend", "x": f"{x + 18:g}", "y": f"{y + 10}"})
        said.text = text
        placed.append(said)
        x += wide
    return (row + 1 if legend else 0), placed


def _style() -> str:
    """The page's own colours, light and dark, and the other styles that its charts need."""
    sheet = re.sub(r"/\*.*?\*/", "", asset("page.css"), flags=re.DOTALL).splitlines()
    colours = sheet[: next(place for place, line in enumerate(sheet) if line.startswith("* "))]
    charts = [line for line in sheet if line.startswith(_CLASSES)]
    own = [".paper { fill: var(--surface); }", ".legend { fill: var(--text); font-size: 13px; }"]
    return "\n".join([*(line for line in colours if line.strip()), *charts, *own])
