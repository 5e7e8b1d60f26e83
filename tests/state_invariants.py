"""Further invariants of a state, in addition to `argosy.model.invariants`: they cost a pass over everything.

The unit tests ask after every test, of every state that they build.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from argosy.model import invariants
from argosy.model.attempts import AttemptTable
from argosy.model.instances import Instance
from argosy.model.invariants import REGISTERED, InconsistentState
from argosy.model.runs import Run
from argosy.model.services.environments import Environment
from argosy.model.setbacks import Act
from argosy.model.state import State
from argosy.model.tasks import TaskStatus

AT_WORK = (TaskStatus.STARTING, TaskStatus.RUNNING)
DONE = (TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.VERIFYING)  # which a service's task never is


def check(state: State) -> None:
    """Raises InconsistentState with every contradiction, a sentence each."""
    found = list(contradictions(state))
    if found:
        raise InconsistentState("\n".join(found))


def contradictions(state: State) -> Iterator[str]:
    """A sentence each. Not for a state that was just loaded: `losses` names it, and `lifecycle.quarantine`
    mends it.

    Cost: one pass over runs, tasks, attempts and instances.
    """
    return chain(
        invariants.contradictions(state, whole=True),
        _index_faults(state.attempts),
        chain.from_iterable(_task_faults(state, run) for run in state.runs.values()),
        chain.from_iterable(_instance_faults(state, *entry) for entry in state.instances.items()),
        _pool_faults(state),
        _setback_faults(state),
        chain.from_iterable(_environment_faults(state, *entry) for entry in state.environments.items()),
    )


def _index_faults(table: AttemptTable) -> Iterator[str]:
    """The look-ups of the attempt table agree with its columns."""
    fresh = AttemptTable(table.rows)
    fresh.columns = table.columns
    fresh.reindex()
    if table.row_of_task != fresh.row_of_task:
        yield "attempts: row_of_task does not agree with the columns"
    if table.row_of_task_id != fresh.row_of_task_id:
        yield "attempts: row_of_task_id does not agree with the columns"
    if table.rows_of_instance != fresh.rows_of_instance:
        yield "attempts: rows_of_instance does not agree with the columns"
    placed = table.placed()
    pairs = {*zip(table["instance"][placed].tolist(), table.instance_number[placed].tolist(), strict=True)}
    if not len(pairs) == len({name for name, _ in pairs}) == len({number for _, number in pairs}):
        yield "attempts: instance_number is not one for each instance"
    names = [name.decode() for name, _ in pairs]
    if table.positions(names)[[number for _, number in pairs]].tolist() != [*range(len(pairs))]:
        yield "attempts: positions does not agree with instance_number"
    counted = {name: +runs for name, runs in table.runs_on_instance.items()}  # + leaves out what is zero
    if counted != {name: +runs for name, runs in fresh.runs_on_instance.items()}:
        yield "attempts: runs_on_instance does not agree with the columns"
    if sorted(table.free_rows) != sorted(fresh.free_rows):
        yield "attempts: free_rows does not agree with the columns"


def _task_faults(state: State, run: Run) -> Iterator[str]:
    tasks = run.tasks
    if int(tasks.counts().sum()) != run.task_count:
        yield f"{run.id}: the counts of its tasks do not add up to {run.task_count}"
    at_work = {(run.number, index) for index in np.flatnonzero(np.isin(tasks["status"], AT_WORK)).tolist()}
    live = {key for key in state.attempts.row_of_task if key[0] == run.number}
    mended = state.losses.attempts or bool(run.revives)  # tasks without an attempt are being looked for
    if live - at_work or (at_work - live and not mended):
        yield f"{run.id}: tasks with a live attempt {sorted(live)} are not the tasks at work {sorted(at_work)}"


def _instance_faults(state: State, name: str, instance: Instance) -> Iterator[str]:
    if name != instance.id:
        yield f"{name}: it is the instance {instance.id}"
    busy = bool(state.attempts.on_instance(name))
    if busy and instance.idle_since:
        yield f"{name}: it is idle with live attempts"
    if instance.status in REGISTERED and not (busy or instance.idle_since or state.losses.attempts):
        yield f"{name}: it has no live attempt and is not idle"


def _pool_faults(state: State) -> Iterator[str]:
    for key, pool in state.pools.items():
        if key != pool.key:
            yield f"{key}: it is the pool {pool.key}"
        if min(pool.spot_target, pool.on_demand_target) < 0:
            yield f"{key}: a target is negative"
        if pool.target and not pool.fleet_id:
            yield f"{key}: it has a target and no fleet"
        if pool.fleet_id in pool.surplus:
            yield f"{key}: the fleet that it is steered by is a surplus one"


def _setback_faults(state: State) -> Iterator[str]:
    for subject, setback in state.setbacks.items():
        if not (isinstance(subject.what, Act) and subject.id):
            yield f"set-back {subject}: nothing is known by that name"
        if subject.what is Act.RESOLVE and int(subject.id) >= state.next_wave:
            yield f"set-back {subject}: the wave was never assigned"
        if not 0 <= setback.refusals <= setback.count:
            yield f"set-back {subject}: {setback.refusals} refusals in {setback.count} rounds"


def _environment_faults(state: State, name: str, env: Environment) -> Iterator[str]:
    if name != env.name:
        yield f"{name}: it is the environment {env.name}"
    for run in (state.runs[run_id] for run_id in env.runs() if run_id in state.runs):
        yield from _faults_of_service(run, name)


def _faults_of_service(run: Run, name: str) -> Iterator[str]:
    if run.name != name or not run.terms.serves:
        yield f"{name}: {run.id} is none of its runs"
    if np.isin(run.tasks["status"], DONE).any():
        yield f"{run.id}: a task of a service is done"
