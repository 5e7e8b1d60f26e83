"""The page and the reports in a real browser: they draw, violate no policy, fetch nothing, satisfy axe-core, obey keys,
and can be read without script."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from argosy.figures.document import one_file
from argosy.figures.history import attempts_of
from argosy.figures.run import run_page
from argosy.ui.looks import Looks
from argosy.ui.serving import serving
from tests.chromium import Tab, tab
from tests.fakes.cli import RUN_ID, run_view, tasks
from tests.fakes.histories import history
from tests.fakes.looks import looks

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
DRAWN = "[...document.querySelectorAll('canvas')].every(each => each.dataset.drawn === 'yes')"
PAGES = ["/", "/cluster", "/market", f"/runs/{RUN_ID}", f"/runs/{RUN_ID}/plan"]
HOSTILE = "</script><script>window.hit=1</script><img src=x onerror=window.hit=1>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with tab(tmp_path_factory.mktemp("chromium") / "profile") as opened:
        yield opened


@pytest.fixture
def page(browser: Tab) -> Tab:
    browser.looks()
    browser.complaints.clear()
    browser.requested.clear()
    return browser


@contextmanager
def site(page: Tab, shown: Looks | None = None, path: str = "/") -> Iterator[str]:
    """The address without a path; the browser has the cookie."""
    with serving(shown or looks(), "argosy in us-east-1", path) as address:
        page.open(address)
        yield address.partition("?")[0].removesuffix(path)


def report(tmp_path: Path, **changes: Any) -> Path:
    view, told, pages = history(30, 600)
    told["failures"][0]["reason"] = HOSTILE
    file = tmp_path / "report.html"
    file.write_text(one_file(run_page({**view, **changes}, told, attempts_of(pages)), "argosy report run x"))
    return file


@pytest.mark.parametrize("path", PAGES)
def test_a_page_draws_everything_and_violates_nothing(page: Tab, path: str) -> None:
    with site(page, path=path):
        page.until(DRAWN)
        assert page.value("document.querySelector('h1').textContent.length > 3")
        assert page.value("document.querySelectorAll('.figure').length > 0")
    assert page.complaints == []


@pytest.mark.parametrize("width", [400, 1280, 2560])
@pytest.mark.parametrize("path", PAGES)
def test_no_page_is_wider_than_the_window(page: Tab, path: str, width: int) -> None:
    page.looks(width=width)
    with site(page, path=path):
        page.until(DRAWN)
        assert page.value("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_core_finds_no_violation(page: Tab, tmp_path: Path, dark: bool) -> None:
    if not AXE.exists():
        pytest.skip("there is no axe-core (npm ci)")
    page.looks(dark=dark)
    found: dict[str, Any] = {}
    with site(page) as address:
        for url in [*(address + path for path in PAGES), report(tmp_path).as_uri()]:
            page.open(url)
            page.until(DRAWN)
            page.value("document.querySelectorAll('details').forEach(each => { each.open = true; })")
            page.value(AXE.read_text(encoding="utf-8") + ";0")
            said = page.value("axe.run().then(found => found.violations.map(each => [each.id, each.nodes[0].html]))")
            found |= {url: said} if said else {}
    assert found == {}


def test_a_report_is_complete_offline_and_hostile_text_in_it_does_nothing(page: Tab, tmp_path: Path) -> None:
    file = report(tmp_path)
    page.open(file.as_uri())
    page.until(DRAWN)
    assert [each for each in page.requested if not each.startswith("data:")] == [file.as_uri()]
    assert page.value("window.hit") is None
    assert HOSTILE in page.value("document.getElementById('failures').textContent")
    assert page.complaints == []


def test_markup_that_slipped_into_a_report_could_not_run(page: Tab, tmp_path: Path) -> None:
    """So the policy is what holds, should escaping ever fail."""
    file = report(tmp_path)
    file.write_text(file.read_text().replace("<main>", f"<main>{HOSTILE}<p style='color:red'>x</p>", 1))
    page.open(file.as_uri())
    assert page.value("window.hit") is None
    assert any("Content Security Policy" in each for each in page.complaints)


def test_a_page_follows_the_run_and_what_was_opened_stays_open(page: Tab) -> None:
    shown, moment = looks(), [0.0]
    shown.now = lambda: moment[0]
    api: Any = shown.access.api
    with site(page, shown, f"/runs/{RUN_ID}"):
        page.until(DRAWN)
        page.value("document.querySelector('#states details').open = true")
        page.value("document.querySelector('canvas').focus()")
        for key in "+++":
            page.key(key)
        page.key("ArrowDown")
        zoomed = page.value("document.querySelector('output').textContent")
        moment[0] = 60.0
        api.view = {**api.view, "tasks": tasks(succeeded=123_456), "stoppedAt": None}
        api.told = {**api.told, "instances": [{**each, "zone": "us-east-1f"} for each in api.told["instances"]]}
        page.until("document.querySelector('.tile .number').textContent === '123,456'")
        assert page.value("document.querySelector('#states details').open")
        page.until("document.getElementById('attempts').textContent.includes('us-east-1f')")
        page.until(DRAWN)
        page.key("ArrowDown")  # the focus and the part that was looked at have stayed
        page.key("ArrowUp")
        assert page.value("document.querySelector('output').textContent") == zoomed
    assert page.complaints == []


def test_a_page_that_nobody_looks_at_asks_nothing_and_asks_again_when_it_is_looked_at(tmp_path: Path) -> None:
    def asked() -> int:
        return sum(each.endswith("?changes") for each in page.requested)

    with tab(tmp_path / "own") as page, site(page, path=f"/runs/{RUN_ID}"):  # its clock does not go on
        page.until(DRAWN)
        page.value("Object.defineProperty(document, 'hidden', { configurable: true, get: () => true }); 0")
        page.requested.clear()
        page.passes(minutes=5)
        assert asked() == 0
        page.value("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
        page.until("document.hidden === false")
        page.passes(minutes=1)
        assert asked() >= 5
        assert page.complaints == []


def test_a_page_says_when_nobody_answers_any_more(page: Tab) -> None:
    with site(page):
        pass
    page.until("document.getElementById('fresh').textContent.includes('still running')")


def test_the_pictures_are_explored_by_keyboard(page: Tab) -> None:
    with site(page, path=f"/runs/{RUN_ID}") as address:
        page.until(DRAWN)
        page.value("document.querySelector('canvas').focus()")
        for key in "+-0":
            page.key(key)
        page.key("ArrowRight")
        assert "instances 1 to 20" in page.value("document.querySelector('output').textContent")
        page.key("+")
        page.key("ArrowDown")
        assert "instances 1 to 20" not in page.value("document.querySelector('output').textContent")
        page.open(f"{address}/cluster")
        page.until(DRAWN)
        page.value("document.querySelector('canvas').focus()")
        page.key("Home")
        first = page.value("document.querySelector('output').textContent")
        page.key("ArrowDown")
        assert page.value("document.querySelector('output').textContent") != first
        assert "CPU" in first
    assert page.complaints == []


def test_without_script_every_figure_can_be_read(page: Tab) -> None:
    page.looks(script=False)
    with site(page, path=f"/runs/{RUN_ID}") as address:
        document = page.call("DOM.getDocument")["root"]["nodeId"]
        for selector, least in (("svg[role=img]", 3), ("table", 4), ("details", 4), ("canvas", 1)):
            found = page.call("DOM.querySelectorAll", nodeId=document, selector=selector)["nodeIds"]
            assert len(found) >= least, selector
        assert address


def test_an_open_run_without_a_history_has_no_broken_picture(page: Tab, tmp_path: Path) -> None:
    file = tmp_path / "empty.html"
    file.write_text(one_file(run_page(run_view(cost={"byWaste": {}}), None, None), "x"))
    page.open(file.as_uri())
    assert page.value("document.querySelectorAll('.empty').length") == 5
    assert page.complaints == []
