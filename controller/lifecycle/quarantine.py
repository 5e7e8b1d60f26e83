"""What becomes of runs and attempts whose stored state cannot be read?

A run that cannot be read is set aside: it counts as FAILED, its record says why, its documents stay as they are for a
person to restore. Its tasks that still run belong to nobody then and are stopped as orphans. A lost chunk of attempts
costs each of them one infrastructure loss: they are done again under the next number. Everybody else carries on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from controller.lifecycle.ending import Hearing, charge_infrastructure
from controller.lifecycle.marks import end_attempt, set_task
from controller.model.damage import Damage
from controller.model.policy import Policy
from controller.model.runs import Run, RunStatus
from controller.model.state import State
from controller.model.tasks import TaskStatus

FORGOTTEN = "the record of its attempt was lost"


def set_aside(state: State, now: float) -> None:
    """Close the runs that cannot be read, as far as records can say it."""
    for damage in state.losses.runs:
        state.quarantined[damage.run_id] = _closed_record(damage, now)


def _closed_record(damage: Damage, now: float) -> dict[str, Any]:
    record = dict(damage.record or _unknown(damage.run_id))
    reason = f"set aside: {damage.sentence}"
    return {**record, "status": RunStatus.FAILED.value, "status_reason": reason, "stopped_at": now, "waiting": ""}


def _unknown(run_id: str) -> Mapping[str, Any]:
    """What `documents.run_record` would say of a run of which only the id is left."""
    return {
        "id": run_id,
        "number": 0,
        "name": run_id.rsplit("-", 3)[0],
        "submitted_at": 0.0,
        "started_at": 0.0,
        "output": "",
        "needs": [0, 0, 0],
        "task_count": 0,
        "counts": [0] * len(TaskStatus),
        "attempts": 0,
        "interruptions": 0,
        "cost_usd": 0.0,
        "on_demand_cost_usd": 0.0,
        "instances": [],
        "failures": [],
        "halted": True,
        "reasons": [""],
    }


def mend(state: State, now: float, policy: Policy) -> None:
    """The next attempts without an open run, and the next tasks without an attempt, as many as this commit can hold."""
    left = False
    for remedy in (_strays(state, now), _forgotten(state, now, policy)):
        for _ in remedy:
            if state.dirty_documents >= policy.max_dirty_documents or state.dirty_bytes >= policy.max_dirty_bytes:
                left = True
                break
    state.losses.attempts = left


def _strays(state: State, now: float) -> Iterator[None]:
    open_runs = [run.number for run in state.runs.values()]
    rows = state.attempts.live()
    for row in rows[~np.isin(state.attempts["run"][rows], open_runs)].tolist():
        end_attempt(state, row, now)
        yield


def _forgotten(state: State, now: float, policy: Policy) -> Iterator[None]:
    for run in state.runs.values():
        for index in _without_attempt(state, run):
            # The number of an attempt that was intended and never adopted is in no table: two are left out.
            set_task(state, run, index, attempts=int(run.tasks["attempts"][index]) + 1)
            charge_infrastructure(Hearing(state, run, now, policy), index, FORGOTTEN, policy.max_losses, 0.0)
            yield


def _without_attempt(state: State, run: Run) -> Iterable[int]:
    live = np.isin(run.tasks["status"], (TaskStatus.STARTING, TaskStatus.RUNNING))
    return [index for index in np.flatnonzero(live).tolist() if (run.number, index) not in state.attempts.row_of_task]
