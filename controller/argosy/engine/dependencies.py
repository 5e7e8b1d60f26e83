"""Which runs that others depend on have ended, and are not among the open ones?

They were closed before the run that names them was submitted, or while a commit had no room for all that follows. Each
is read again in every tick until nobody waits for it any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from argosy.engine.loading import load_run, records_of
from argosy.lifecycle.dependencies import pack_statuses
from argosy.model import documents
from argosy.model.damage import FAULTS
from argosy.model.events import DependencyEnded
from argosy.model.run_record import RunRecord
from argosy.model.runs import RunStatus
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.ports import Store


def ended_dependencies(store: Store, state: State) -> Iterator[DependencyEnded]:
    """One whose record cannot be read says nothing: who depends on it waits until a person has restored it."""
    wanted = _awaited(state)
    for run_id, body in records_of(store, wanted).items() if wanted else ():
        with suppress(*FAULTS):
            record = documents.record_from(body)
            if not record.has_ended:
                continue
            statuses = pack_statuses(_statuses(store, record)) if wanted[run_id] else ""
            yield DependencyEnded(run_id, record.status, record.counts, statuses)


def _statuses(store: Store, record: RunRecord) -> NDArray[np.uint8]:
    """Of its tasks, uint8 [tasks]. Where they cannot be read, as of a run that was set aside, nobody can tell which of
    them succeeded, unless all did: then the others count as cancelled, as they do where a whole run is waited for."""
    with suppress(*FAULTS):
        if (run := load_run(store, record.id)) is not None:
            return run.tasks.statuses()
    whole = record.status is RunStatus.SUCCEEDED
    return np.full(record.task_count, TaskStatus.SUCCEEDED if whole else TaskStatus.CANCELLED, dtype=np.uint8)


def _awaited(state: State) -> dict[str, bool]:
    """Runs that are not open and that open ones wait for: id -> whether one of these does so task by task."""
    found: dict[str, bool] = {}
    for run in state.runs.values():
        for each in run.terms.depends_on if run.unmet and not run.halted else ():
            if each.run_id in run.unmet and not (each.run_id in state.runs or each.run_id in state.suspended):
                found[each.run_id] = found.get(each.run_id, False) or each.one_to_one
    return found
