"""Contradictions within a state, checked before each commit.

Only cheap checks: of the documents that a commit changes, and of attempts as columns. A state that contradicts itself
is never stored: the exception excludes the run that causes it (`engine.own_faults`), or the tick fails and the stored
state stays as it was. `tests/state_invariants.py` adds those that need a pass over all tasks and instances.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from argosy.model.attempts import AttemptStatus
from argosy.model.columns import ColumnTable
from argosy.model.costs import Work
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.runs import Run
from argosy.model.services.environments import Environment
from argosy.model.state import State

REGISTERED = (InstanceStatus.ACTIVE, InstanceStatus.DRAINING)
_IS_UNSENT = np.isin(np.arange(256), (AttemptStatus.INTENT, AttemptStatus.IN_DOUBT))  # by the number of a status
USD = 1e-6  # tolerance of sums of money
MOST_SAID = 10  # sentences in an exception


class InconsistentState(Exception):
    """A state that contradicts itself: a bug in Argosy."""


def check(state: State) -> None:
    """Raises InconsistentState with the first contradictions, a sentence each."""
    if found := list(contradictions(state)):
        raise InconsistentState("\n".join(found[:MOST_SAID]))


def contradictions(state: State, whole: bool = False) -> Iterator[str]:
    """One sentence for each contradiction. whole: check everything, not only what changed since the last commit. Damage
    found by the last load is not a contradiction: `losses` names it, and `lifecycle.quarantine` repairs it."""
    runs = [run for run in state.runs.values() if whole or run.id in state.changed_runs or run.tasks.dirty]
    instances = state.instances if whole else state.instances.keys() & state.changed_instances
    environments = state.environments if whole else state.environments.keys() & state.changed_environments
    return chain(
        _faults_of_marks(state),
        _faults_of_attempts(state, whole),
        chain.from_iterable(_faults_of_run(state, run, whole) for run in runs),
        chain.from_iterable(_faults_of_instance(state.instances[name]) for name in instances),
        chain.from_iterable(_faults_of_environment(state.environments[name]) for name in environments),
    )


def _rows(table: ColumnTable, whole: bool) -> NDArray[np.int64]:
    """The runs that the next commit writes, or all."""
    size = table.chunk_rows
    chunks = range(-(-table.rows // size)) if whole else sorted(table.dirty)
    parts = [np.arange(chunk * size, min(table.rows, (chunk + 1) * size)) for chunk in chunks]
    return np.concatenate(parts) if parts else np.arange(0)


def _faults_of_marks(state: State) -> Iterator[str]:
    """Whether the marked changes can be stored."""
    if unknown := (state.new_runs | state.changed_runs) - state.runs.keys():
        yield f"runs {sorted(unknown)} are marked as changed and are not open"
    if twice := state.runs.keys() & (state.quarantined.keys() | state.suspended.keys()):
        yield f"runs {sorted(twice)} are open and set aside at once"
    if unknown_daemons := {run.number for run in state.runs.values() if run.is_daemon} - state.daemons:
        yield f"daemons: runs {sorted(unknown_daemons)} are not among them"


def _faults_of_attempts(state: State, whole: bool) -> Iterator[str]:
    table, rows = state.attempts, _rows(state.attempts, whole)
    live = rows[table["status"][rows] != AttemptStatus.FREE.value]
    ids = table["task_id"]
    letters = ids.view(np.uint8).reshape(-1, ids.itemsize)  # comparing texts takes ten times as long
    status, sent = table["status"][live], letters[live, 0] != 0
    if len(table.row_of_task) != np.count_nonzero(table["status"]):
        yield "attempts: two live rows have the same task"
    numbers = [run.number for run in state.runs.values()]
    if len(set(numbers)) < len(numbers):
        yield f"runs: duplicate numbers: {sorted(numbers)}"
    is_open = np.zeros(max(state.next_run, *numbers, *state.suspended_numbers(), 0) + 1, dtype=bool)
    is_open[[*numbers, *state.suspended_numbers()]] = True
    runs = np.minimum(table["run"][live], len(is_open) - 1)
    found = {
        "their run is not open": ~is_open[runs] & (not state.losses.attempts),
        "they were not sent and have a task id, or the reverse": _IS_UNSENT[status] == sent,
        "they run and have not started, or the reverse": (status == AttemptStatus.RUNNING.value)
        != (table["started_at"][live] != 0),
        "their wave was never assigned": table["wave"][live] >= state.next_wave,
    }
    for sentence, wrong in found.items():
        if wrong.any():
            yield f"attempts in rows {live[wrong].tolist()[:MOST_SAID]}: {sentence}"
    named = {name.decode() for name in table.rows_of_instance} - state.instances.keys()
    if named and not state.losses.blind:
        yield f"attempts: there are no instances {sorted(named)[:MOST_SAID]}"


def _faults_of_run(state: State, run: Run, whole: bool) -> Iterator[str]:
    tasks, rows = run.tasks, _rows(run.tasks, whole)
    if state.runs.get(run.id) is not run:
        yield f"{run.id}: it is kept under another id"
    if not 0 < run.number < state.next_run:
        yield f"{run.id}: number {run.number} was never assigned"
    if run.reasons[0]:
        yield f"{run.id}: the first reason must stay empty"
    if abs(run.cost_usd - sum(costs.total for costs in run.costs.values())) > USD * (1 + run.cost_usd):
        yield f"{run.id}: {run.cost_usd} USD are not the sum of its ledger"
    if run.task_count != tasks.rows:
        yield f"{run.id}: {run.task_count} tasks in {tasks.rows} rows"
    if (tasks["reason"][rows] >= len(run.reasons)).any():
        yield f"{run.id}: a task refers to a missing reason"
    if (tasks["committed"][rows] > tasks["attempts"][rows]).any():
        yield f"{run.id}: a committed attempt was never made"


def _faults_of_instance(instance: Instance) -> Iterator[str]:
    name = instance.id
    if instance.losing and instance.alive:
        yield f"{name}: it is alive, and its attempts are being ended"
    if instance.status in REGISTERED and not (instance.arn and instance.registered_at):
        yield f"{name}: it is {instance.status} and was never registered"
    if any(len(seconds) != len(Work) or min(seconds) < 0 for seconds in instance.work.values()):
        yield f"{name}: its work is {instance.work}"
    if any(number not in instance.work or min(seconds) < 0 for number, seconds in instance.waiting.items()):
        yield f"{name}: its waiting is {instance.waiting}"
    if min(instance.foreign) < 0:
        yield f"{name}: tasks that are not ours take {instance.foreign}"


def _faults_of_environment(env: Environment) -> Iterator[str]:
    name = env.name
    if env.desired < 0:
        yield f"{name}: {env.desired} tasks are desired"
    numbers = [each.number for each in env.revisions], [each.number for each in env.deployments]
    if any(each != sorted(set(each)) for each in numbers):
        yield f"{name}: revisions and deployments are {numbers}"
    if len(set(env.runs())) < len(env.runs()):
        yield f"{name}: two revisions have one run: {env.runs()}"
    if any(not each.has_ended for each in env.deployments[:-1]):
        yield f"{name}: a deployment continues during a later one"
    if env.deployment is not None and not env.deployment.has_ended and env.deleting:
        yield f"{name}: it is deployed and deleted"
