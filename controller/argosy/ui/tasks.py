"""The tasks of a run, and the output of one, as the deployment has them now."""

from __future__ import annotations

from typing import Any

from argosy.figures.document import Page
from argosy.figures.numbers import instant
from argosy.figures.tasks import TaskChoice, TaskColumns, tasks_of, tasks_page
from argosy.ui.looks import RUN_S, Looks

JSON = dict[str, Any]


def tasks(looks: Looks, run: str, query: str) -> Page:
    """query: of the address, which filters and sorts. Raises NoSuchPage for an unknown run."""
    run_id = looks.meant(run)
    view, found = looks.kept.once(("tasks", run_id), RUN_S, lambda: _read(looks, run_id))
    return tasks_page(view, found, TaskChoice.of(query))


def _read(looks: Looks, run_id: str) -> tuple[JSON, TaskColumns]:
    view = looks.found(run_id, looks.access.api.describe_with_statuses)
    submitted = instant(view["submittedAt"])
    age_s = looks.now() - submitted.timestamp() if submitted else 0.0
    return view, tasks_of(view, looks.attempts(run_id), age_s)
