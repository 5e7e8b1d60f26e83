"""The tasks whose health is polled from ECS.

These are tasks with a health command, because no event reports their health: often while their environment changes or
one of them is not healthy, otherwise as often as a sweep.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from argosy.model.actions import LookAtTasks
from argosy.model.arns import cell_of
from argosy.model.attempts import AttemptStatus
from argosy.model.live_tasks import all_are_well
from argosy.model.moment import Moment
from argosy.model.services.environments import Environment
from argosy.scheduler.upkeep.upkeep import arn_of_row


def looks(moment: Moment) -> Iterator[LookAtTasks]:
    """The least recently polled tasks come first, as many as one tick may ask about."""
    state, policy = moment.state, moment.policy
    due: list[tuple[float, int]] = []
    for env in state.environments.values():
        due += [(at, row) for at, period_s, row in _watched(moment, env) if moment.now - at >= period_s]
    by_cell: defaultdict[str, list[str]] = defaultdict(list)
    for _, row in sorted(due)[: policy.health_looks_per_tick]:
        arn = arn_of_row(state, row)
        if arn is not None:
            by_cell[cell_of(arn)].append(arn)
    for cell, arns in by_cell.items():
        yield LookAtTasks(cell, tuple(arns))


def next_looks(moment: Moment) -> Iterator[float]:
    """The tasks that are due."""
    for env in moment.state.environments.values():
        yield from (at + period_s for at, period_s, _ in _watched(moment, env))


def _watched(moment: Moment, env: Environment) -> Iterator[tuple[float, float, int]]:
    """Of each polled task: its last poll, seconds from one poll to the next, and its row."""
    state, table = moment.state, moment.state.attempts
    for run_id in env.runs():
        run = state.runs.get(run_id)
        if run is None or run.terms.health is None:
            continue
        rows = np.array(table.here_of_run(run.number), dtype=np.int64)
        rows = rows[(table["status"][rows] == AttemptStatus.RUNNING.value) & (table["stop_cause"][rows] == 0)]
        changes = env.deployment is not None and not env.deployment.has_ended
        is_busy = changes or not all_are_well(table, rows, run.terms)
        period_s = moment.policy.health_s if is_busy else moment.policy.sweep_s
        for row in rows.tolist():
            yield state.health_looks.get(bytes(table["task_id"][row]), 0.0), period_s, row
