"""The live tasks of services: which are healthy, which have been unhealthy for too long, and where requests reach them.

The controller acts on the health of a task and the api shows it: both read the same columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from argosy.model.attempts import AttemptStatus, AttemptTable, TaskHealth
from argosy.model.run_terms import HealthTerms, RunTerms
from argosy.model.runs import Run
from argosy.model.services.environments import Environment
from argosy.model.services.ports import MASK
from argosy.model.services.targets import TargetPlace
from argosy.model.state import State


def healthy_rows(table: AttemptTable, rows: NDArray[np.int64], terms: RunTerms, now: float) -> NDArray[np.bool_]:
    """Shape (rows,). terms: of the run whose attempts they are."""
    healthy_s = terms.service.healthy_s if terms.service else 0.0
    return healthy_for(table, rows, healthy_s, now, has_command=terms.health is not None)


def healthy_for(
    table: AttemptTable, rows: NDArray[np.int64], healthy_s: float, now: float, *, has_command: bool
) -> NDArray[np.bool_]:
    """With a health command: it has reported healthy for long enough. Without: the task has run for long enough."""
    runs = table["status"][rows] == AttemptStatus.RUNNING.value
    if has_command:
        said = table["health"][rows] == TaskHealth.HEALTHY.value
        found: NDArray[np.bool_] = runs & said & (now - table["health_since"][rows] >= healthy_s)
    else:
        found = runs & (now - table["started_at"][rows] >= healthy_s)
    return found


def failing_rows(table: AttemptTable, rows: NDArray[np.int64], terms: RunTerms, now: float) -> NDArray[np.bool_]:
    """Shape (rows,): unhealthy for longer than it took to detect."""
    health: HealthTerms | None = terms.health
    if health is None:
        return np.zeros(len(rows), dtype=np.bool_)
    said = table["health"][rows] == TaskHealth.UNHEALTHY.value
    found: NDArray[np.bool_] = (
        said
        & (table["status"][rows] == AttemptStatus.RUNNING.value)
        & (now - table["health_since"][rows] > health.patience_s)
    )
    return found


def all_are_well(table: AttemptTable, rows: NDArray[np.int64], terms: RunTerms) -> bool:
    """Whether no health command reports otherwise."""
    return terms.health is None or bool((table["health"][rows] == TaskHealth.HEALTHY.value).all())


class PlacedTask(NamedTuple):
    """A live attempt, and where requests reach it."""

    run: Run
    row: int
    place: TargetPlace


def places_of(state: State, env: Environment) -> Iterator[PlacedTask]:
    """Those of its runs that are not suspended."""
    for run_id in env.all_runs():
        run = state.runs.get(run_id)
        if run is None or run.terms.service is None or not run.terms.service.target_group:
            continue
        for row in state.attempts.of_run(run.number).tolist():
            place = place_of(state, run, row)
            if place is not None:
                yield PlacedTask(run, row, place)


def place_of(state: State, run: Run, row: int) -> TargetPlace | None:
    """The first port that the spec names; None while it is not known, or without a target group."""
    port = int(state.attempts["host_ports"][row]) & MASK
    if run.terms.service is None or not run.terms.service.target_group or not port:
        return None
    return TargetPlace(run.terms.service.target_group, bytes(state.attempts["instance"][row]).decode(), port)
