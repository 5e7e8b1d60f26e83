"""The tasks of a run, and the output of one, as the deployment has them now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from argosy.client.errors import is_denied
from argosy.client.logs import last_lines, stream_of
from argosy.client.task_use import attempt_measured
from argosy.figures.document import Figure, Page
from argosy.figures.numbers import instant
from argosy.figures.task import LINES_SHOWN, LogEnd, attempt_of, chosen, task_page
from argosy.figures.tasks import TaskChoice, TaskColumns, tasks_of, tasks_page
from argosy.figures.use import task_use
from argosy.ui.deployment_reader import CLUSTER_S, ENDED_S, RUN_S, DeploymentReader

JSON = dict[str, Any]


def tasks(reader: DeploymentReader, run: str, query: str) -> Page:
    """query: of the address, which filters and sorts. Raises NoSuchPage for an unknown run."""
    run_id = reader.meant(run)
    view, found = reader.kept.once(("tasks", run_id), RUN_S, lambda: _read(reader, run_id))
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


def _read(reader: DeploymentReader, run_id: str) -> tuple[JSON, TaskColumns]:
    view = reader.found(run_id, reader.access.api.describe_with_statuses)
    submitted = instant(view["submittedAt"])
    age_s = reader.now() - submitted.timestamp() if submitted else 0.0
    return view, tasks_of(view, reader.attempts(run_id), age_s)
