"""The runs of the last hour, for the task stream. What a run that has ended did is seldom read again."""

from __future__ import annotations

from collections.abc import Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from argosy.figures.document import Page
from argosy.figures.instances import instances_of
from argosy.figures.numbers import instant
from argosy.figures.stream import SPAN_S, RunPast, stream_page
from argosy.ui.deployment_reader import CLUSTER_S, MARKET_S, RUN_S, RUNS_SHOWN, DeploymentReader
from argosy.ui.kept import known

MOST_RUNS, AT_ONCE = 40, 8  # runs that are read, and how many of them at a time


def stream(reader: DeploymentReader) -> Page:
    """The page."""
    return reader.kept.once("stream", CLUSTER_S, lambda: _read(reader))


def _read(reader: DeploymentReader) -> Page:
    now = reader.now()
    newest = reader.kept.once("runs", RUN_S, lambda: reader.access.api.runs(RUNS_SHOWN))["runs"]
    recent = [view for view in newest if _ended_at(view, now) >= now - SPAN_S]
    with ThreadPoolExecutor(AT_ONCE) as readers:
        told = [each for each in readers.map(lambda view: _record(reader, view), recent[:MOST_RUNS]) if each]
    return stream_page(told, now, known(lambda: _living(reader)), len(recent) - len(told))


def _ended_at(view: Mapping[str, Any], now: float) -> float:
    ended = instant(view["stoppedAt"])
    return ended.timestamp() if ended else now


def _record(reader: DeploymentReader, view: Mapping[str, Any]) -> RunPast | None:
    """None if the deployment cannot answer just now."""
    run_id, serves_s = view["runId"], MARKET_S if view["stoppedAt"] else RUN_S

    def read() -> RunPast:
        return RunPast(run_id, reader.access.api.history(run_id), reader.attempts(run_id))

    return known(lambda: reader.kept.once(("record", run_id, view["stoppedAt"]), serves_s, read))


def _living(reader: DeploymentReader) -> Set[str]:
    found, _ = instances_of(reader.cluster_now())
    return {each.decode() for each in found.ids.tolist()}
