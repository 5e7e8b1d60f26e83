"""Is a state consistent in itself? The unit tests ask after every test, of every state that they build."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from argosy.model.attempts import AttemptStatus, AttemptTable
from argosy.model.costs import Work
from argosy.model.environments import Environment
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.runs import Run
from argosy.model.setbacks import What
from argosy.model.state import State
from argosy.model.tasks import TaskStatus

REGISTERED = (InstanceStatus.ACTIVE, InstanceStatus.DRAINING)
UNSENT = (AttemptStatus.INTENT, AttemptStatus.IN_DOUBT)
AT_WORK = (TaskStatus.STARTING, TaskStatus.RUNNING)
DONE = (TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.VERIFYING)  # which a service's task never is
USD = 1e-6  # sums of money may differ by so much


class InconsistentState(AssertionError):
    """A state that contradicts itself: a fault of ours."""


def check(state: State) -> None:
    """Raises InconsistentState with every contradiction, a sentence each."""
    found = list(contradictions(state))
    if found:
        raise InconsistentState("\n".join(found))


def contradictions(state: State) -> Iterator[str]:
    """A sentence each. What a state that was just loaded lacks is none: `losses` names it, and `lifecycle.quarantine`
    mends it.

    Cost: one pass over runs, tasks, attempts and instances.
    """
    return chain(
        _index_faults(state.attempts),
        _attempt_faults(state),
        _run_faults(state),
        _daemon_faults(state),
        chain.from_iterable(_task_faults(state, run) for run in state.runs.values()),
        chain.from_iterable(_instance_faults(state, *entry) for entry in state.instances.items()),
        _pool_faults(state),
        _setback_faults(state),
        _mark_faults(state),
        chain.from_iterable(_environment_faults(state, *entry) for entry in state.environments.items()),
    )


def _index_faults(table: AttemptTable) -> Iterator[str]:
    """The look-ups of the attempt table are what its columns say."""
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
    if len(table.row_of_task) != len(table.live()):
        yield "attempts: two live rows are about one task"


def _attempt_faults(state: State) -> Iterator[str]:
    table, numbers = state.attempts, {run.number for run in state.runs.values()} | state.suspended_numbers()
    for row in table.live().tolist():
        name = f"attempt in row {row}"
        status = AttemptStatus(int(table["status"][row]))
        if int(table["run"][row]) not in numbers and not state.losses.attempts:
            yield f"{name}: run {table['run'][row]} is not open"
        if state.instance_of(row) is None and not state.losses.blind:
            yield f"{name}: there is no instance {bytes(table['instance'][row]).decode()}"
        if (status in UNSENT) != (not table["task_id"][row]):
            yield f"{name}: it is {status.name} with task id {table['task_id'][row]!r}"
        if (status is AttemptStatus.RUNNING) != bool(table["started_at"][row]):
            yield f"{name}: it is {status.name}, started at {table['started_at'][row]}"
        if table["wave"][row] >= state.next_wave:
            yield f"{name}: wave {table['wave'][row]} was never given away"


def _daemon_faults(state: State) -> Iterator[str]:
    unknown = {run.number for run in state.runs.values() if run.is_daemon} - state.daemons
    if unknown:
        yield f"daemons: runs {sorted(unknown)} are not among them"


def _run_faults(state: State) -> Iterator[str]:
    numbers = [run.number for run in state.runs.values()]
    if len(set(numbers)) < len(numbers):
        yield f"runs: numbers occur twice: {numbers}"
    for run_id, run in state.runs.items():
        if run_id != run.id:
            yield f"{run_id}: it is the run {run.id}"
        if not 0 < run.number < state.next_run:
            yield f"{run_id}: number {run.number} was never given away"
        if run.task_count != run.tasks.rows:
            yield f"{run_id}: {run.task_count} tasks in {run.tasks.rows} rows"
        if run.reasons[0]:
            yield f"{run_id}: the first reason must stay empty"
        if abs(run.cost_usd - sum(costs.total for costs in run.costs.values())) > USD * (1 + run.cost_usd):
            yield f"{run_id}: {run.cost_usd} USD are not the sum of its ledger"


def _task_faults(state: State, run: Run) -> Iterator[str]:
    tasks = run.tasks
    if int(tasks.counts().sum()) != run.task_count:
        yield f"{run.id}: the counts of its tasks do not add up to {run.task_count}"
    if (tasks["reason"] >= len(run.reasons)).any():
        yield f"{run.id}: a task refers to a reason that there is not"
    if (tasks["committed"] > tasks["attempts"]).any():
        yield f"{run.id}: an attempt that was never made is committed"
    at_work = {(run.number, index) for index in np.flatnonzero(np.isin(tasks["status"], AT_WORK)).tolist()}
    live = {key for key in state.attempts.row_of_task if key[0] == run.number}
    mended = state.losses.attempts or bool(run.revives)  # tasks without an attempt are being looked for
    if live - at_work or (at_work - live and not mended):
        yield f"{run.id}: tasks with a live attempt {sorted(live)} are not the tasks at work {sorted(at_work)}"


def _instance_faults(state: State, name: str, instance: Instance) -> Iterator[str]:
    if name != instance.id:
        yield f"{name}: it is the instance {instance.id}"
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
        if not (isinstance(subject.what, What) and subject.id):
            yield f"set-back {subject}: nothing is known by that name"
        if subject.what is What.RESOLVE and int(subject.id) >= state.next_wave:
            yield f"set-back {subject}: the wave was never given away"
        if not 0 <= setback.refusals <= setback.count:
            yield f"set-back {subject}: {setback.refusals} refusals in {setback.count} rounds"


def _environment_faults(state: State, name: str, env: Environment) -> Iterator[str]:
    if name != env.name:
        yield f"{name}: it is the environment {env.name}"
    if env.desired < 0:
        yield f"{name}: {env.desired} tasks are desired"
    numbers = [each.number for each in env.revisions], [each.number for each in env.deployments]
    if any(each != sorted(set(each)) for each in numbers):
        yield f"{name}: revisions and deployments are {numbers}"
    if len(set(env.runs())) < len(env.runs()):
        yield f"{name}: two revisions have one run: {env.runs()}"
    if any(not each.has_ended for each in env.deployments[:-1]):
        yield f"{name}: a deployment goes on beside a later one"
    if env.deployment is not None and not env.deployment.has_ended and env.deleting:
        yield f"{name}: it is deployed and deleted"
    for run in (state.runs[run_id] for run_id in env.runs() if run_id in state.runs):
        yield from _faults_of_service(run, name)


def _faults_of_service(run: Run, name: str) -> Iterator[str]:
    if run.name != name or not run.terms.serves:
        yield f"{name}: {run.id} is none of its runs"
    if np.isin(run.tasks["status"], DONE).any():
        yield f"{run.id}: a task of a service is done"


def _mark_faults(state: State) -> Iterator[str]:
    """What is marked as changed can be stored."""
    unknown = (state.new_runs | state.changed_runs) - state.runs.keys()
    if unknown:
        yield f"runs {sorted(unknown)} are marked as changed and are not open"
