"""`argosy ui` over a simulated run of full size: 100,000 tasks on up to 5,000 instances, while it runs and when it has
ended. What does a refresh take of the server, the api's own time apart, and how fast does Chromium draw?"""

from __future__ import annotations

import faulthandler
import time
from collections.abc import Iterator
from typing import Any

import pytest

from argosy.ui.deployment_reader import DeploymentReader
from argosy.ui.guard import Guard
from argosy.ui.pages import Pages
from argosy.ui.serving import serving
from tests.chromium import Tab, tab
from tests.fakes.reader import Reached
from tests.harness.simulation.scale.asking import ask
from tests.harness.simulation.scale.run import ScaleRun, Size

pytestmark = pytest.mark.benchmark

SIZE = Size(tasks=100_000, instances=5_000, cells=8)
DRAWN_MS, REFRESH_MS = 1_000, 100
TIMES = 5
DRAWN_IN = "document.documentElement.dataset.drawnIn"


class Api:
    """The deployment's api as pages ask it, over the simulated table. seconds: CPU time that it took."""

    def __init__(self, run: ScaleRun) -> None:
        self.run, self.seconds = run, 0.0

    def _asked(self, action: str, **fields: Any) -> Any:
        began = time.process_time()
        try:
            return ask(self.run, action, **fields)
        finally:
            self.seconds += time.process_time() - began

    def describe_with_cost(self, run_id: str) -> Any:
        return self._asked("DescribeRun", runId=run_id, include=["cost"])

    def history(self, run_id: str) -> Any:
        view = self._asked("DescribeHistory", runId=run_id)
        token = view.get("nextToken")
        while token:
            page = self._asked("DescribeHistory", runId=run_id, nextToken=token)
            view["instances"] += page["instances"]
            token = page.get("nextToken")
        return view

    def attempts(self, run_id: str, token: str | None = None) -> Any:
        return self._asked("ListAttempts", runId=run_id, **({"nextToken": token} if token else {}))

    def explain(self, run_id: str, index: int | None) -> Any:
        return self._asked("ExplainRun", runId=run_id)

    def cluster_columns(self) -> Any:
        return self._asked("DescribeCluster", form="columns", include=["attempts"])

    def cluster_history(self, hours: float) -> Any:
        return self._asked("DescribeCluster", form="columns", include=["history"], historyHours=hours)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with tab(tmp_path_factory.mktemp("chromium") / "profile") as opened:
        yield opened


def refreshed_ms(run: ScaleRun, path: str) -> list[int]:
    """The server's time, if every cached answer has expired; the api's time is left out."""
    api, moment, took = Api(run), [run.timeline.now], []
    access: Any = Reached(api, None)
    reader = DeploymentReader(access, lambda: moment[0])
    pages = Pages(reader, Guard(), "argosy")
    for _ in range(TIMES):
        moment[0] += 3600.0
        began, before = time.process_time(), api.seconds
        page = reader.cluster() if path == "/cluster" else reader.run(run.job.run_id)
        pages.changes(page, "")
        took.append(round(1000 * (time.process_time() - began - (api.seconds - before))))
    return sorted(took)


def drawn_ms(browser: Tab, run: ScaleRun, path: str) -> list[int]:
    access: Any = Reached(Api(run), None)
    with serving(DeploymentReader(access, run.timeline.clock), "argosy", path) as address:
        browser.open(address)
        found = []
        for _ in range(TIMES):
            browser.open(address.partition("?")[0])
            browser.until(DRAWN_IN)
            found.append(int(browser.value(DRAWN_IN)))
    return sorted(found)


def test_pages_over_a_run_of_full_size(browser: Tab, capsys: pytest.CaptureFixture[str]) -> None:
    faulthandler.cancel_dump_traceback_later()  # on a busy machine the simulation takes longer than a test may
    found: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
    run = ScaleRun(SIZE)

    def measure(when: str, path: str) -> None:
        found[when, path] = refreshed, drawn = refreshed_ms(run, path), drawn_ms(browser, run, path)
        with capsys.disabled():
            print(f"\n{when}, {path}: refreshed in {refreshed} ms, drawn in {drawn} ms")

    def look() -> None:
        if run.census.launches.total() < SIZE.tasks // 2:
            return run.timeline.later(10.0, look)
        measure("half of it launched", "/cluster")
        return measure("half of it launched", f"/runs/{run.job.run_id}")

    run.timeline.later(10.0, look)
    run.run()
    measure("at its end", f"/runs/{run.job.run_id}")
    assert len(found) == 3
    assert all(refreshed[0] < REFRESH_MS and drawn[0] < DRAWN_MS for refreshed, drawn in found.values())
