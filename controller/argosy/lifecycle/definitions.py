"""What becomes of the task definition of a run: prepared, refused, or no longer used."""

from __future__ import annotations

from argosy.lifecycle.run_stops import give_up
from argosy.lifecycle.setbacks import carried_out, has_outlasted, is_refused_for_long, set_back
from argosy.model.arns import family_of
from argosy.model.events import RunNotPrepared, RunPrepared
from argosy.model.policy import Policy
from argosy.model.resources import Resources
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run, RunStatus
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State

QUEUE_PAUSE_S = 10.0  # a registration that waits for its turn: the next try checks again whether the definition exists
MOST_UNUSED = 500  # in the root of the state, which stays a small item: the longest unused is forgotten first


def release(state: State, run: Run | RunRecord, now: float) -> None:
    """The run is over: its definition may be deregistered, unless the user registered it or it was never prepared. run:
    the record of a suspended or unreadable run."""
    family = family_of(run.task_definition)
    if not (run.image and family):
        return
    unused = state.unused_definitions
    unused.pop(family, None)  # moved to the end of the list
    unused[family] = now
    state.setbacks.pop(Subject(Act.DEREGISTER, family), None)  # this run may have been the one that held it up
    while len(unused) > MOST_UNUSED:
        del unused[next(iter(unused))]


def note_prepared(state: State, event: RunPrepared) -> None:
    """The run may start tasks."""
    run = state.runs.get(event.run_id)
    carried_out(state, Act.PREPARE, event.run_id)
    if run is None or run.task_definition:
        return
    run.task_definition, run.container = event.task_definition, event.container
    run.needs = Resources(event.cpu_units, event.memory_mib, event.gpus, run.terms.gpu_share_mib)
    run.host_ports, run.definition_architecture = event.host_ports, event.architecture
    run.takes_exec = event.takes_exec
    run.status = RunStatus.PROVISIONING
    state.changed_runs.add(run.id)


def note_not_prepared(state: State, event: RunNotPrepared, now: float, policy: Policy) -> None:
    """It is tried again later, or the run ends if that cannot help."""
    run = state.runs.get(event.run_id)
    if run is None or run.task_definition:
        return
    if event.queued:  # no set-back: AWS was not called
        run.waiting, run.prepare_after = event.reason, now + QUEUE_PAUSE_S
        state.changed_runs.add(run.id)
        return
    setback = set_back(state, Subject(Act.PREPARE, run.id), event.reason, now, event.passing)
    run.prepare_after, run.waiting = setback.not_before, event.reason
    if event.final or is_refused_for_long(setback, now, policy) or has_outlasted(setback, now, policy):
        give_up(state, run, event.reason)
    state.changed_runs.add(run.id)
