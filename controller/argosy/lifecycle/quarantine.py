"""What happens to runs and attempts whose stored state cannot be read?

An unreadable run is set aside: it counts as FAILED, its record says why, and its documents stay for a person to
restore. Its running tasks then belong to no run and are stopped as orphans. A lost chunk of attempts costs each of them
one infrastructure loss: they are repeated under the next number, and their instances count as idle. All other runs
continue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from argosy.lifecycle import definitions
from argosy.lifecycle.accounts import Account, AttemptEnd, charge_infrastructure, end_attempt
from argosy.model.attempts import StopCause
from argosy.model.damage import Damage
from argosy.model.events import TaskSeen
from argosy.model.policy import Policy
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run, RunStatus, sort_key
from argosy.model.state import State
from argosy.model.stored.documents import DAMAGED
from argosy.model.tasks import TaskStatus

MOST_KEPT_BYTES = 399_000  # most bytes of a record: the capacity of an item without its key
FORGOTTEN = "the record of its attempt was lost"
NOBODY_SAW = TaskSeen(arn="", version=0, last_status="STOPPED")


def set_aside(state: State, now: float, policy: Policy) -> None:
    """Close the unreadable runs as far as records allow, as many as this commit can hold: until then the root continues
    to name the others."""
    while state.losses.runs and state.has_room(policy):
        damage = state.losses.runs.pop(0)
        where = ""
        if damage.body:
            name = f"{sort_key(damage.run_id)}@{state.version}"
            state.damaged[name] = damage.body[:MOST_KEPT_BYTES]
            where = f"; its bytes are kept as {DAMAGED} / {name}"
        record = _closed_record(damage, where, now)
        state.quarantined[damage.run_id] = record
        definitions.release(state, record, now)


def _closed_record(damage: Damage, where: str, now: float) -> RunRecord:
    record = damage.record or RunRecord.of_unreadable(damage.run_id)
    reason = f"set aside: {damage.sentence}{where}"
    return replace(record, status=RunStatus.FAILED, status_reason=reason, stopped_at=now, waiting="")


def mend(state: State, now: float, policy: Policy) -> None:
    """Repair the next attempts without an open run, tasks without an attempt, and instances that only seem busy, as
    many as this commit can hold."""
    set_aside(state, now, policy)
    left = bool(state.losses.runs)
    for remedy in (_strays(state, now), _forgotten(state, now, policy), _seeming_busy(state, now)):
        for _ in remedy:
            if not state.has_room(policy):
                left = True
                break
    state.losses.attempts = left


def _strays(state: State, now: float) -> Iterator[None]:
    open_runs = [*(run.number for run in state.runs.values()), *state.suspended_numbers()]
    rows = state.attempts.live()
    for row in rows[~np.isin(state.attempts["run"][rows], open_runs)].tolist():
        end_attempt(state, row, now)
        yield


def _seeming_busy(state: State, now: float) -> Iterator[None]:
    """Their attempts were lost, so no ending attempt would make them idle: they are idle from now on."""
    for instance in state.instances.values():
        busy = instance.alive and instance.registered_at and not instance.idle_since
        if busy and not state.has_work(instance.id):
            instance.idle_since = now
            state.changed_instances.add(instance.id)
            yield


def _forgotten(state: State, now: float, policy: Policy) -> Iterator[None]:
    for run in state.runs.values():
        for index in _without_attempt(state, run):
            # The number of an attempt that was intended and never adopted is in no table: two are left out.
            state.set_task(run, index, attempts=int(run.tasks["attempts"][index]) + 1)
            lost = AttemptEnd(index, Account.LOST, StopCause.NONE, FORGOTTEN, NOBODY_SAW)
            charge_infrastructure(state, run, lost, policy.max_losses, now)
            yield


def _without_attempt(state: State, run: Run) -> Iterable[int]:
    live = np.isin(run.tasks["status"], (TaskStatus.STARTING, TaskStatus.RUNNING))
    return [index for index in np.flatnonzero(live).tolist() if (run.number, index) not in state.attempts.row_of_task]
