"""The tasks of a run, the output of one, and the runs of the last hour, as the deployment has them now.

The task stream has the runs of the last hour. What a run that has ended did is seldom read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from argosy.client.errors import is_denied
from argosy.client.logs import last_lines, stream_of
from argosy.client.task_use import attempt_measured
from argosy.figures.document import Figure, Page
from argosy.figures.instances import instances_of
from argosy.figures.numbers import instant
from argosy.figures.stream import SPAN_S, RunHistory, stream_page
from argosy.figures.task import LINES_SHOWN, LogEnd, attempt_of, chosen, task_page
from argosy.figures.tasks import TaskChoice, TaskColumns, tasks_of, tasks_page
from argosy.figures.use import task_use
from argosy.ui.answer_cache import known
from argosy.ui.deployment_reader import CLUSTER_S, ENDED_S, MARKET_S, RUN_S, RUNS_SHOWN, DeploymentReader

JSON = dict[str, Any]
MOST_RUNS, AT_ONCE = 40, 8  # runs of the stream that are read, and how many of them at a time


def tasks(reader: DeploymentReader, run: str, query: str) -> Page:
    """query: of the address, which filters and sorts. Raises NoSuchPage for an unknown run."""
    run_id = reader.meant(run)
    view, found = reader.kept.once(("tasks", run_id), RUN_S, lambda: _read_tasks(reader, run_id))
    return tasks_page(view, found, TaskChoice.of(query))


def task(reader: DeploymentReader, run: str, index: str, query: str) -> Page:
    """query: of the address, which may name an attempt. Raises NoSuchPage."""
    run_id = reader.meant(run)
    number = attempt_of(query)

    def read() -> Page:
        reply = reader.found(run_id, lambda each: reader.access.api.task(each, int(index)))
        attempt = chosen(reply, number)
        page = task_page(reply, attempt, _log(reader, int(index), attempt), reader.now())
        return replace(page, figures=[*page.figures, *(_uses(reader, reply, attempt) if attempt else ())])

    return reader.kept.once(("task", run_id, index, number), RUN_S, read)


def _uses(reader: DeploymentReader, reply: JSON, attempt: Mapping[str, Any]) -> list[Figure]:
    """What the attempt used, if it was measured."""
    run_id, task = str(reply["runId"]), (int(reply["index"]), int(attempt["attempt"]))
    view = reader.kept.once(("asked", run_id), ENDED_S, lambda: reader.found(run_id, reader.access.api.describe))
    used = reader.kept.once(("use", run_id, task), CLUSTER_S, lambda: attempt_measured(reader.access, view, *task))
    return [task_use([used], view)] if used else []


def _log(reader: DeploymentReader, index: int, attempt: Mapping[str, Any] | None) -> LogEnd:
    stream = stream_of(reader.access, index, attempt) if attempt else None
    if stream is None:
        return LogEnd(why_not="Its task definition does not write to CloudWatch, so there is no log.")
    try:
        return LogEnd(last_lines(reader.access, stream, LINES_SHOWN))
    except Exception as fault:
        if not is_denied(fault):
            raise
        return LogEnd(why_not="Without the permission logs:GetLogEvents, the log cannot be shown.")


def _read_tasks(reader: DeploymentReader, run_id: str) -> tuple[JSON, TaskColumns]:
    view = reader.found(run_id, reader.access.api.describe_with_statuses)
    submitted = instant(view["submittedAt"])
    age_s = reader.now() - submitted.timestamp() if submitted else 0.0
    return view, tasks_of(view, reader.attempts(run_id), age_s)


def stream(reader: DeploymentReader) -> Page:
    """What the tasks of the last hour's runs did."""
    return reader.kept.once("stream", CLUSTER_S, lambda: _read_stream(reader))


def _read_stream(reader: DeploymentReader) -> Page:
    now = reader.now()
    newest = reader.kept.once("runs", RUN_S, lambda: reader.access.api.runs(RUNS_SHOWN))["runs"]
    recent = [view for view in newest if _ended_at(view, now) >= now - SPAN_S]
    with ThreadPoolExecutor(AT_ONCE) as readers:
        told = [each for each in readers.map(lambda view: _record(reader, view), recent[:MOST_RUNS]) if each]
    return stream_page(told, now, known(lambda: _living(reader)), len(recent) - len(told))


def _ended_at(view: Mapping[str, Any], now: float) -> float:
    ended = instant(view["stoppedAt"])
    return ended.timestamp() if ended else now


def _record(reader: DeploymentReader, view: Mapping[str, Any]) -> RunHistory | None:
    """None if the deployment cannot answer just now."""
    run_id, serves_s = view["runId"], MARKET_S if view["stoppedAt"] else RUN_S

    def read() -> RunHistory:
        return RunHistory(run_id, reader.access.api.history(run_id), reader.attempts(run_id))

    return known(lambda: reader.kept.once(("record", run_id, view["stoppedAt"]), serves_s, read))


def _living(reader: DeploymentReader) -> Set[str]:
    found, _ = instances_of(reader.cluster_now())
    return {each.decode() for each in found.ids.tolist()}
