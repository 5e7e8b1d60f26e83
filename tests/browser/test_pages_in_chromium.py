"""The page and the reports in a real browser: they draw, violate no policy, fetch nothing, satisfy axe-core, react to
keys, and can be read without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from argosy.api.cluster.actions import at_work, in_columns
from argosy.client.failures import AlikeAttempts, kinds_of
from argosy.figures.cluster import cluster_page
from argosy.figures.document import Page, one_file
from argosy.figures.environment import ServiceSeen, environment_page
from argosy.figures.history import attempts_of
from argosy.figures.market import market_page
from argosy.figures.plan import plan_page
from argosy.figures.queues import queues_page
from argosy.figures.run import run_page
from argosy.figures.runs import runs_page
from argosy.figures.schedules import schedule_page, schedules_page
from argosy.figures.services import services_page
from argosy.figures.spending import cost_page
from argosy.model.state import State
from argosy.ui.deployment_reader import DeploymentReader
from argosy.ui.serving import serving
from tests.chromium import Tab, tab
from tests.fakes.cli import NOW, RUN_ID, run_view, tasks
from tests.fakes.environments import RUN, RUN_3, created, environment, in_use, live_tasks
from tests.fakes.histories import cluster_history, history
from tests.fakes.reader import PLAN, reader
from tests.fakes.schedule_views import fire, schedule
from tests.fakes.sharing import alone, in_full, queue, sharing
from tests.harness.simulation.campaign_page import campaign_page

pytestmark = pytest.mark.engine

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
DRAWN = "[...document.querySelectorAll('canvas')].every(each => each.dataset.drawn === 'yes')"
PAGES = [
    "/?sort=-cost",
    "/stream",
    "/cluster/hour",
    "/cluster/quarter",
    "/market",
    f"/runs/{RUN_ID}",
    f"/runs/{RUN_ID}/plan",
]
PAGES += [f"/runs/{RUN_ID}/tasks?sort=-duration&attempts=1"]
PAGES += [f"/runs/{RUN_ID}/tasks/3"]
PAGES += [f"/runs/{RUN_ID}/retry"]
PAGES += ["/queues", "/services", "/services/web", "/services/new", "/schedules", "/schedules/often"]
AT = "2026-11-21T06:00:00Z"
# Tables that stand on the page, not behind a picture, and of which a part is beside what is seen of them.
BESIDE = "[...document.querySelectorAll('.scroll')].filter(each => !each.closest('details')"
BESIDE += " && each.scrollWidth > each.clientWidth + 1).map(each => each.getAttribute('aria-label'))"
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
def site(page: Tab, shown: DeploymentReader | None = None, path: str = "/") -> Iterator[str]:
    """The address without a path; the browser has the cookie."""
    first, _, query = path.partition("?")
    with serving(shown or reader(), "argosy in us-east-1", first) as address:
        page.open(address)
        if query:
            page.open(f"{address.partition('?')[0]}?{query}")
        yield address.partition("?")[0].removesuffix(first)


def report(tmp_path: Path, **changes: Any) -> Path:
    view, told, pages = history(30, 600)
    told["failures"][0]["reason"] = HOSTILE
    file = tmp_path / "report.html"
    file.write_text(one_file(run_page({**view, **changes}, told, attempts_of(pages)), "argosy report run x"))
    return file


@pytest.mark.parametrize("path", PAGES)
def test_a_page_draws_everything_violates_nothing_and_is_never_wider_than_its_window(page: Tab, path: str) -> None:
    with site(page, path=path):
        for width in (1280, 400, 2560):
            page.looks(width=width)
            page.until(DRAWN)
            assert page.value("document.documentElement.scrollWidth") <= width
            assert page.value(BESIDE) == []
        assert page.value("document.querySelector('h1').textContent.length > 3")
        assert page.value("document.querySelectorAll('.figure').length > 0")
    assert page.complaints == []


def test_a_view_of_runs_is_saved_in_the_browser_and_forgotten(page: Tab) -> None:
    names = "[...document.querySelectorAll('[data-views] a')].map(each => each.textContent + each.search).join()"
    with site(page, path="/") as address:
        page.open(f"{address}/?state=failed")
        page.value("document.querySelector('[data-views] input').value = '<b>bad'")
        page.value("document.querySelector('[data-views] > button').click()")
        assert page.value(names) == "<b>bad?state=failed"
        page.open(f"{address}/")
        assert page.value(names) == "<b>bad?state=failed"
        page.value("document.querySelector('[data-views] > button').click()")
        assert page.value(names) == ""
    assert page.complaints == []


def violations(page: Tab, url: str) -> Any:
    """The findings of axe-core with every table open."""
    if not AXE.exists():
        pytest.skip("there is no axe-core (npm ci)")
    page.open(url)
    page.until(DRAWN)
    page.value("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    page.value(AXE.read_text(encoding="utf-8") + ";0")
    return page.value("axe.run().then(found => found.violations.map(each => [each.id, each.nodes[0].html]))")


@pytest.mark.parametrize(("dark", "width"), [(False, 1280), (True, 400)], ids=["light", "dark and narrow"])
def test_axe_core_finds_no_violation(page: Tab, tmp_path: Path, dark: bool, width: int) -> None:
    page.looks(dark=dark, width=width)
    with site(page) as address:
        urls = [*(address + path for path in PAGES), report(tmp_path).as_uri()]
        assert {url: said for url in urls if (said := violations(page, url))} == {}


def pages_of_every_state() -> dict[str, Page]:
    """Pages of a run: just submitted, at work, failed with a group for each kind, ended without a history; an empty
    deployment; an impossible plan; simulated trials with a violation."""
    view, told, pages = history(8, 100)
    kinds = [{**told["failures"][0], "reason": f"{HOSTILE} {kind} {'x' * 300}"} for kind in range(50)]
    explained = {"sentence": "no instance fits", "cluster": {"reasons": [{"refused": 3, "detail": "needs 4 GPUs"}]}}
    view["failureGroups"] = kinds
    said = [replace(each, said=f"{HOSTILE} {'y' * 300}") for each in kinds_of(view)]
    open_run = {**view, "status": "RUNNING", "stoppedAt": None, "waiting": "no capacity", "statusReason": "r" * 300}
    reply = reader().access.api.cluster_columns()
    nothing = {"instances": in_columns({"instances": []})["instances"], "attempts": at_work(State(), {})}
    empty = {**reply, "fleets": [], **nothing}
    none = {"low": None, "expected": None, "high": None}
    never = {**PLAN, "possible": False, "costUsd": none, "seconds": none, "instances": [], "onDemand": None}
    never |= {"relaxations": [], "rejected": [], "instanceHours": None}
    counts = dict.fromkeys(("tasks", "ticks", "trials", "violations", "virtualHours", "launchesPerTask"), 1)
    counts |= dict.fromkeys(("costUsd", "instanceHours", "waste", "makespanSeconds", "settledSeconds"), 1)
    trials = {**counts, "runs": {}, "faultsSeen": {"throttling": 1}, "instancesBought": {}}
    story = {"seed": 7, "invariant": "twice", "sentence": "s", "replay": "simulate", "story": [HOSTILE]}
    return {
        "submitted": run_page(run_view(tasks=tasks(pending=9), startedAt=None), None, None, None, NOW),
        "running": run_page(open_run, told, attempts_of(pages), explained, NOW),
        "failed": run_page({**view, "status": "FAILED"}, told, attempts_of(pages), kinds=said),
        "ended without a history": run_page(view, None, None),
        "costs": cost_page(view, None),
        "no runs": runs_page([], more=False),
        "empty cluster": cluster_page(empty, None),
        "cluster over time": cluster_page(reply, cluster_history(288)),
        "empty market": market_page(empty, {}, NOW),
        "impossible plan": plan_page(never),
        "trials": campaign_page(trials, [story]),
        "queues": queues_page(in_full()),
        "one queue": queues_page(alone()),
        "queues with long names": queues_page(queues_of_hostile_owners()),
        "services": services_page([in_use(), environment(status="FROZEN", statusReason=HOSTILE * 4)]),
        "no services": services_page([]),
        "a service": environment_page(environment(statusReason=HOSTILE * 4), services_seen(said)),
        "a service that was never deployed": environment_page(created(), ServiceSeen(NOW)),
        "schedules": schedules_page([schedule(armed=False), schedule(last=fire(1, "late", reason=HOSTILE))], NOW),
        "no schedules": schedules_page([], NOW),
        "a schedule that is late": schedule_page(
            schedule(overdue=AT, waiting=AT, armed=False, fires=[fire(3, "missed", reason=HOSTILE * 4)]), NOW
        ),
        "a schedule that was never due": schedule_page(schedule(nextTimes=[], fires=[], state="PAUSED"), NOW),
    }


def queues_of_hostile_owners() -> dict[str, Any]:
    """With the longest allowed names."""
    owners = [{"name": HOSTILE * 3, "proven": False, "runs": 3}]
    lately = [{"owner": HOSTILE * 3, "use": 0.2, "factor": 2.0}]
    cap = {"usdPerHour": 1.5, "vcpus": 100_000.5, "gpus": 3, "instances": 7}
    names = [f"{'q' * 60}{place:03d}" for place in range(20)]
    found = [queue(name, within="owners", owners=owners, lately=lately, cap=cap) for name in names]
    return sharing(queues=found, halfLifeSeconds=600.0)


def services_seen(kinds: list[AlikeAttempts]) -> ServiceSeen:
    """The page of an environment with all of its data."""
    _, told, _ = history(8, 100)
    tasks = {1: live_tasks(RUN), 3: live_tasks(RUN_3)}
    explained = {"sentence": HOSTILE, "cluster": {"reasons": [{"refused": 3, "detail": "needs 4 GPUs"}]}}
    return ServiceSeen(
        NOW, tasks, histories={1: told, 3: told}, failures={1: kinds}, pools={"i": "c5.large"}, explained=explained
    )


@pytest.mark.parametrize("width", [400, 1280])
def test_axe_core_finds_no_violation_in_any_state_and_nothing_is_too_wide(
    page: Tab, tmp_path: Path, width: int
) -> None:
    page.looks(width=width)
    for name, shown in pages_of_every_state().items():
        file = tmp_path / f"{name.replace(' ', '-')}.html"
        file.write_text(one_file(shown, "a test"))
        assert (name, violations(page, file.as_uri())) == (name, [])
        assert (name, page.value("document.documentElement.scrollWidth") <= width) == (name, True)
        assert (name, page.value("window.hit")) == (name, None)


def test_a_report_is_complete_offline_and_hostile_text_in_it_does_nothing(page: Tab, tmp_path: Path) -> None:
    file = report(tmp_path)
    page.open(file.as_uri())
    page.until(DRAWN)
    assert [each for each in page.requested if not each.startswith("data:")] == [file.as_uri()]
    assert page.value("window.hit") is None
    assert HOSTILE in page.value("document.getElementById('failures').textContent")
    assert page.complaints == []


def test_markup_that_slipped_into_a_report_could_not_run(page: Tab, tmp_path: Path) -> None:
    """So the policy still protects the page if escaping ever fails."""
    file = report(tmp_path)
    file.write_text(file.read_text().replace("<main>", f"<main>{HOSTILE}<p style='color:red'>x</p>", 1))
    page.open(file.as_uri())
    assert page.value("window.hit") is None
    assert any("Content Security Policy" in each for each in page.complaints)


def test_a_page_follows_the_run_and_what_was_opened_stays_open(page: Tab) -> None:
    moment = [0.0]
    shown = DeploymentReader(reader().access, lambda: moment[0])
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


def test_a_log_follows_its_task_until_the_reader_scrolls_up(page: Tab) -> None:
    moment, said = [0.0], [f"line {row}" for row in range(400)]
    shown = DeploymentReader(reader().access, lambda: moment[0])
    box = "document.querySelector('#log .scroll')"
    at_end = f"{box}.scrollTop + {box}.clientHeight >= {box}.scrollHeight - 4"

    class Logs:
        def get_log_events(self, **asked: Any) -> Any:
            return {"events": [{"timestamp": 1000 * NOW, "message": each} for each in said]}

    others = shown.access.client
    shown.access.client = lambda service, region=None: Logs() if service == "logs" else others(service, region)  # type: ignore[method-assign]
    with site(page, shown, f"/runs/{RUN_ID}/tasks/3"):
        page.until(at_end)
        for each in ("the next <b>line</b>", "and the last"):
            moment[0] += 60.0
            said.append(each)
            page.until(f"{box}.textContent.includes({each!r})")
            if "next" in each:
                assert page.value(at_end)
                page.value(f"{box}.scrollTop = 100")
        assert page.value(f"{box}.scrollTop") == 100
    assert page.complaints == []


def test_a_run_is_retried_from_its_page_by_two_clicks(page: Tab) -> None:
    shown = reader()
    api: Any = shown.access.api
    with site(page, shown, f"/runs/{RUN_ID}"):
        page.value("document.querySelector('a.act').click()")
        page.until("document.querySelector('form button') !== null")
        page.value("document.querySelector('form button').click()")
        page.until("document.querySelector('h1')?.textContent.startsWith('digits') === true")
    assert f"retry {RUN_ID} ['failed']" in api.asked
    assert page.complaints == []


def test_a_hidden_page_makes_no_requests_and_refreshes_when_it_is_shown(tmp_path: Path) -> None:
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


def test_a_page_says_when_the_server_stops_answering(page: Tab) -> None:
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
        assert "rows 1 to 20" in page.value("document.querySelector('output').textContent")
        page.key("+")
        page.key("ArrowDown")
        assert "rows 1 to 20" not in page.value("document.querySelector('output').textContent")
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


def test_the_pages_of_queues_services_and_schedules_can_be_read_without_script_and_lead_to_each_other(
    page: Tab,
) -> None:
    page.looks(script=False)
    with site(page) as address:

        def there(path: str, *selectors: str) -> None:
            page.open(address + path)
            document = page.call("DOM.getDocument")["root"]["nodeId"]
            for selector in selectors:
                found = page.call("DOM.querySelectorAll", nodeId=document, selector=selector)["nodeIds"]
                assert found, (path, selector)

        there("/", 'nav a[href="/services"]', 'nav a[href="/schedules"]')
        there("/", 'nav a[href="/queues"]')
        there(
            "/queues", "#queues td .mark", "#deployment td .legend", "#caps td", "#lately td", "#room td", "#owners td"
        )
        there("/services", 'td a[href="/services/web"]')
        there("/services/web", "svg[role=img]", "#deployments table", f'td a[href="/runs/{RUN_3}"]', "#tasks td")
        there("/schedules", 'td a[href="/schedules/often"]', f'td a[href="/runs/{RUN_ID}"]')
        there("/schedules/often", "svg[role=img]", "#next td", "#verdicts td", "#spec pre")
        there("/services/other", "#said")


def test_an_open_run_without_a_history_has_no_broken_picture(page: Tab, tmp_path: Path) -> None:
    file = tmp_path / "empty.html"
    file.write_text(one_file(run_page(run_view(cost={"byWaste": {}}), None, None), "x"))
    page.open(file.as_uri())
    assert page.value("document.querySelectorAll('.empty').length") == 6
    assert page.complaints == []
