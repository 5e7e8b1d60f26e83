"""The display of runs, plans and the cluster in a notebook, including one that is not trusted."""

from __future__ import annotations

import base64
import re
import sys
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

import argosy
from argosy.figures.document import Figure, Page, Table
from argosy.figures.markup import element, joined
from argosy.sdk.notebooks import notebook_html
from tests.fakes.cli import World
from tests.fakes.histories import history
from tests.fakes.reader import PLAN, Api
from tests.fakes.sdk import client_of
from tests.fakes.waiting import until

ALLOWED = {"div", "h3", "h4", "p", "small", "strong", "table", "thead", "tbody", "tr", "th", "td", "img", "code"}
HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(2)>"
SVG = "{http://www.w3.org/2000/svg}"


def elements(html: str) -> list[ElementTree.Element]:
    """All of it; raises unless it is well-formed."""
    return list(ElementTree.fromstring(html).iter())


def images(html: str) -> list[ElementTree.Element]:
    addresses = [each.get("src", "") for each in elements(html) if each.tag == "img"]
    assert all(address.startswith("data:image/svg+xml;base64,") for address in addresses)
    return [ElementTree.fromstring(base64.b64decode(address.partition(",")[2])) for address in addresses]


def run_html(**changes: object) -> str:
    view, told, pages = history(5, 60)
    world = World().answers("DescribeRun", {**view, **changes}).answers("DescribeHistory", told)
    world.answers("ListAttempts", *pages).answers("ExplainRun", {"sentence": "nothing waits"})
    world.answers("ListRuns", {"runs": [view], "nextToken": None})
    return client_of(world).runs(1)[0]._repr_html_()


def cluster_html() -> str:
    world = World().answers("DescribeCluster", Api(20, 300).cluster_columns())
    cluster: argosy.Cluster = client_of(world).cluster()
    assert len(cluster.instances()) > 0
    return cluster._repr_html_()


def plan_html() -> str:
    return client_of(World().answers("PlanRun", PLAN)).plan(SPEC)._repr_html_()


class Notebook(ModuleType):
    """IPython of a kernel, with the cell that it shows. kernel: None on a terminal."""

    def __init__(self, kernel: object) -> None:
        super().__init__("IPython")
        self.kernel, self.cells = kernel, list[str]()
        self.display = ModuleType("IPython.display")
        self.display.HTML, self.display.display = str, self.shown  # type: ignore[attr-defined]

    def get_ipython(self) -> Notebook:
        return self

    def shown(self, html: str, display_id: bool) -> Notebook:
        self.update(html)
        return self

    def update(self, html: str) -> None:
        self.cells.append(html)


def test_a_run_in_a_cell_is_shown_again_until_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    view, told, pages = history(5, 60)
    running = {**view, "status": "RUNNING", "stoppedAt": None}
    answers = [running, running, {**running, "name": "looked"}, view, view]
    world = World().answers("DescribeRun", *answers).answers("DescribeHistory", told)
    world.answers("ListAttempts", *pages).answers("ExplainRun", {"sentence": "nothing waits"})
    world.answers("ListRuns", {"runs": [running], "nextToken": None})
    run, notebook = client_of(world).runs(1)[0], Notebook(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook.display)
    run._ipython_display_()
    until(lambda: notebook.cells and "RUNNING" not in notebook.cells[-1])
    assert "RUNNING" in notebook.cells[0]
    assert run.status == "RUNNING"  # as of its last refresh


@pytest.mark.parametrize("ipython", [None, Notebook(kernel=None)])
def test_outside_a_notebook_a_run_has_its_other_forms(monkeypatch: pytest.MonkeyPatch, ipython: Any) -> None:
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    run = client_of(World().answers("ListRuns", {"runs": [history(1, 1)[0]], "nextToken": None})).runs(1)[0]
    with pytest.raises(NotImplementedError):
        run._ipython_display_()


SPEC = {"version": 1, "name": "n", "container": {"image": "argosy/digits"}, "array": {"size": 2}}


@pytest.mark.parametrize("made", [run_html, plan_html, cluster_html])
def test_it_needs_no_style_script_or_image_files(made: object) -> None:
    html = made() if callable(made) else ""
    assert {each.tag for each in elements(html)} <= ALLOWED
    assert not [name for each in elements(html) for name in each.attrib if name == "style" or name.startswith("on")]


def test_a_run_shows_its_tasks_over_time_as_an_image_with_a_legend() -> None:
    states, seconds = images(run_html())
    assert next(iter(states)).tag == f"{SVG}style"
    texts = ["".join(each.itertext()) for each in states.iter(f"{SVG}text") if each.get("class") == "legend"]
    assert [text for text in texts if text.startswith("succeeded")]
    assert seconds.get("width") == "720"


def test_images_say_what_they_show() -> None:
    said = [each.get("alt", "") for each in elements(run_html()) if each.tag == "img"]
    assert said[0].startswith("Tasks by state over")


def test_a_plan_shows_its_cost_against_time() -> None:
    [frontier] = images(plan_html())
    assert len(list(frontier.iter(f"{SVG}circle"))) == 4  # the plan, on demand, and two relaxations


def test_what_a_script_would_draw_is_a_table() -> None:
    html = cluster_html()
    assert "<h4>Instances by type and zone</h4>" in html
    assert images(html) == []


def test_text_from_outside_is_no_markup() -> None:
    html = run_html(statusReason=HOSTILE, waiting=HOSTILE)
    assert "<script" not in html
    assert {each.tag for each in elements(html)} <= ALLOWED
    assert html.count("&lt;script&gt;alert(1)") >= 1


def test_a_long_table_says_how_much_is_left_out() -> None:
    table = Table(("A",), [(str(row),) for row in range(20)])
    html = notebook_html(Page("t", "h", [Figure("f", "F", table=table)]), ["f"])
    assert len(re.findall("<tr>", html)) == 13
    assert "8 more rows are not shown." in html


def test_a_picture_of_several_elements_without_a_chart_is_its_table() -> None:
    lines = joined([element("p", "one"), element("p", "two & three")])
    html = notebook_html(Page("t", "h", [Figure("f", "F", picture=lines, table=Table(("A",), [("a",)]))]), ["f"])
    assert "<td>a</td>" in html
    assert images(html) == []


def test_a_figure_with_nothing_to_show_is_left_out() -> None:
    empty, other = Figure("f", "F", empty="nothing"), Figure("g", "G", picture=element("p", "g"))
    assert notebook_html(Page("t", "h", [empty, other]), ["f", "g"]) == "<div><h3>h</h3><h4>G</h4></div>"
