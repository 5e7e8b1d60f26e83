"""The runs of the last hour, for the task stream. What a run that has ended did is seldom read again."""

from __future__ import annotations

from collections.abc import Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from argosy.figures.document import Page
from argosy.figures.instances import instances_of
from argosy.figures.numbers import instant
from argosy.figures.stream import SPAN_S, RunPast, stream_page
from argosy.ui.kept import known
from argosy.ui.looks import CLUSTER_S, MARKET_S, RUN_S, RUNS_SHOWN, Looks

MOST_RUNS, AT_ONCE = 40, 8  # runs that are read, and how many of them at a time


def stream(looks: Looks) -> Page:
    """The page."""
    return looks.kept.once("stream", CLUSTER_S, lambda: _read(looks))


def _read(looks: Looks) -> Page:
    now = looks.now()
    newest = looks.kept.once("runs", RUN_S, lambda: looks.access.api.runs(RUNS_SHOWN))["runs"]
    recent = [view for view in newest if _ended_at(view, now) >= now - SPAN_S]
    with ThreadPoolExecutor(AT_ONCE) as readers:
        told = [each for each in readers.map(lambda view: _record(looks, view), recent[:MOST_RUNS]) if each]
    return stream_page(told, now, known(lambda: _living(looks)), len(recent) - len(told))


def _ended_at(view: Mapping[str, Any], now: float) -> float:
    ended = instant(view["stoppedAt"])
    return ended.timestamp() if ended else now


def _record(looks: Looks, view: Mapping[str, Any]) -> RunPast | None:
    """None if the deployment cannot answer just now."""
    run_id, serves_s = view["runId"], MARKET_S if view["stoppedAt"] else RUN_S

    def read() -> RunPast:
        return RunPast(run_id, looks.access.api.history(run_id), looks.attempts(run_id))

    return known(lambda: looks.kept.once(("record", run_id, view["stoppedAt"]), serves_s, read))


def _living(looks: Looks) -> Set[str]:
    found, _ = instances_of(looks.cluster_now())
    return {each.decode() for each in found.ids.tolist()}
