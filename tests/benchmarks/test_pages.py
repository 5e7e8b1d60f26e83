"""100,000 attempts on 5,000 instances: how big is the report, how fast is it drawn, and what does a refresh take?"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from argosy.figures.document import one_file
from argosy.figures.history import attempts_of
from argosy.figures.run import run_page
from argosy.ui.guard import Guard
from argosy.ui.pages import Pages
from tests.chromium import tab
from tests.fakes.cli import RUN_ID
from tests.fakes.histories import history
from tests.fakes.reader import reader

pytestmark = pytest.mark.benchmark

INSTANCES, ATTEMPTS = 5_000, 100_000
DRAWN_MS, REFRESH_MS = 1_000, 100
TIMES = 5


def test_a_report_of_full_size_is_drawn_within_a_second(tmp_path: Path) -> None:
    view, told, pages = history(INSTANCES, ATTEMPTS)
    file = tmp_path / "report.html"
    file.write_text(one_file(run_page(view, told, attempts_of(pages)), "argosy report run x"))
    drawn = []
    with tab(tmp_path / "profile") as page:
        for _ in range(TIMES):
            page.open(file.as_uri())
            page.until("document.documentElement.dataset.drawnIn")
            drawn.append(int(page.value("document.documentElement.dataset.drawnIn")))
    print(f"\n{ATTEMPTS:,} attempts: {file.stat().st_size / 1e6:.2f} MB, drawn in {sorted(drawn)} ms")
    assert min(drawn) < DRAWN_MS


def test_a_refresh_of_full_size_takes_little_of_the_server() -> None:
    shown = reader(INSTANCES, ATTEMPTS)
    moment = [0.0]
    shown.now = lambda: moment[0]
    pages, took = Pages(shown, Guard(), "argosy"), []
    page_at = shown.run
    for _ in range(TIMES):
        moment[0] += 60.0
        began = time.process_time()
        reply = pages.changes(page_at(RUN_ID), "")
        took.append(1000 * (time.process_time() - began))
    print(f"\n{ATTEMPTS:,} attempts: refreshed in {[round(each) for each in took]} ms, {len(reply.body) / 1e6:.2f} MB")
    assert min(took) < REFRESH_MS
