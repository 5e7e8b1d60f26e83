"""How do facts, and the passing of time, change the state?

Facts may be late, duplicated or out of order: a fact about an attempt applies only if attempt, ARN and a higher version
match (DESIGN D5). Only this module drops facts that apply to nothing.
"""

from __future__ import annotations

from functools import singledispatch

from argosy.gangs.members import gang_of
from argosy.lifecycle import (
    announcements,
    attempts,
    charges,
    definitions,
    dependencies,
    environments,
    gangs,
    hosts,
    open_ends,
    pools,
    quarantine,
    readings,
    refusals,
    reservations,
    revival,
    suspended_tasks,
    suspension,
    targets,
    user_requests,
)
from argosy.lifecycle.run_stops import cancel, cancel_tasks, drop_unsent, give_up_results, judge_logs
from argosy.lifecycle.setbacks import carried_out, is_hopeless, set_back
from argosy.model import events
from argosy.model.attempts import AttemptKey, AttemptStatus, StopCause
from argosy.model.failure_texts import FailuresRead
from argosy.model.host_care import DrainAsked
from argosy.model.policy import Policy
from argosy.model.pools import OrderAnswered, ReservationSeen
from argosy.model.runs import RunStatus
from argosy.model.services.targets import TargetsDeregistered, TargetsRegistered
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State
from argosy.model.tasks import TaskStatus


def apply(state: State, event: events.Event, now: float, policy: Policy) -> None:
    """Take one fact in. `now` is used where the fact carries no time of its own."""
    if not state.suspended:
        _apply(event, state, now, policy)
    elif isinstance(event, events.TaskSeen) and suspended_tasks.is_of_suspended(state, event):
        suspended_tasks.see(state, event, now)
    elif not suspension.is_ignored(state, event):
        _apply(event, state, now, policy)


def pass_time(state: State, now: float, policy: Policy) -> None:
    """Apply changes that follow from time alone, once the facts of a tick are known: only then is a remaining intent
    one that was never sent."""
    hosts.pass_time(state, now, policy)
    if state.open_ends:
        open_ends.settle_open_ends(state, now, policy)
    if state.suspended:
        suspension.pass_time(state, now, policy)
    gangs.pass_time(state, now, policy)
    pools.note_orders(state, now)
    pools.note_unregistered(state, now, policy)
    if state.announced:
        announcements.drop_old(state, now)
    if any(run.waits for run in state.runs.values()):
        dependencies.pass_time(state, now, policy)
    if state.floor.until:
        user_requests.expire_floor(state, now)
    if state.environments:
        targets.forget_done(state)
    if state.sharing.counts_past_use:
        user_requests.note_use(state, now)
    for run in state.runs.values():
        if run.halted:
            drop_unsent(state, run, now, policy)


@singledispatch
def _apply(event: object, state: State, now: float, policy: Policy) -> None:
    """Ignore a kind of fact that this version lacks."""


@_apply.register
def run_submitted(event: events.RunSubmitted, state: State, now: float, policy: Policy) -> None:
    request = event.request
    if request.run_id in state.runs:
        return
    run = state.take_in(request, request.task_count)
    run.begin_waiting(request.submitted_at)


@_apply.register
def dependency_ended(event: events.DependencyEnded, state: State, now: float, policy: Policy) -> None:
    dependencies.note_end(state, event, now, policy)


@_apply.register
def environment_asked(event: events.EnvironmentAsked, state: State, now: float, policy: Policy) -> None:
    environments.ask(state, event.request)


@_apply.register
def cluster_changed(
    event: events.ClusterScaled | DrainAsked | events.SharingAsked, state: State, now: float, policy: Policy
) -> None:
    user_requests.change_cluster(state, event.request, now)


@_apply.register
def run_cancelled(event: events.RunCancelled, state: State, now: float, policy: Policy) -> None:
    if event.request.run_id in state.suspended:
        suspension.close(state, event.request.run_id, RunStatus.CANCELLED, suspension.CANCELLED, now)
        return
    run = state.runs.get(event.request.run_id) or revival.adopt(state, event.stored)
    if run is None or run.complete:
        return
    cancel(state, run, f"cancelled: {event.request.reason}" if event.request.reason else "cancelled", now, policy)
    for dependent in dependencies.cancelled_with(state, run.id, event.request):
        if not dependent.complete:
            cancel(state, dependent, f"cancelled with {run.id}, which it depends on", now, policy)


@_apply.register
def run_retried(event: events.RunRetried, state: State, now: float, policy: Policy) -> None:
    found = state.suspended.get(event.request.run_id)
    if found is not None:
        found.again_at = now  # the next tick tries it
        return
    revival.reopen(state, event.request, event.stored)


@_apply.register
def run_updated(event: events.RunUpdated, state: State, now: float, policy: Policy) -> None:
    user_requests.update_run(state, event.request)


@_apply.register
def tasks_cancelled(event: events.TasksCancelled, state: State, now: float, policy: Policy) -> None:
    cancel_tasks(state, event.request, now)


@_apply.register
def failures_read(event: FailuresRead, state: State, now: float, policy: Policy) -> None:
    judge_logs(state, event, policy)


@_apply.register
def run_resumed(event: events.RunResumed, state: State, now: float, policy: Policy) -> None:
    suspension.resume(state, event.stored)


@_apply.register
def run_not_resumed(event: events.RunNotResumed, state: State, now: float, policy: Policy) -> None:
    found, state.losses.attempts = state.suspended.pop(event.run_id), True  # another controller may have closed it
    if event.reason:
        suspension.suspend(state, found.record, event.reason, now, found)


@_apply.register
def run_prepared(event: events.RunPrepared, state: State, now: float, policy: Policy) -> None:
    definitions.note_prepared(state, event)


@_apply.register
def run_not_prepared(event: events.RunNotPrepared, state: State, now: float, policy: Policy) -> None:
    definitions.note_not_prepared(state, event, now, policy)


@_apply.register
def definition_deregistered(event: events.DefinitionDeregistered, state: State, now: float, policy: Policy) -> None:
    carried_out(state, Act.DEREGISTER, event.family)
    state.unused_definitions.pop(event.family, None)


@_apply.register
def manifest_part_written(event: events.ManifestPartWritten, state: State, now: float, policy: Policy) -> None:
    """Accept the part that was due, of the run's present try; then the next part is due."""
    run = state.runs.get(event.run_id)
    if run is None or run.done or (run.retries, run.manifest_to) != (event.retries, event.begin):
        return
    carried_out(state, Act.CLOSE, run.id)
    if event.end != event.begin:
        run.manifest_bounds.append(event.end)
    run.manifest_after = event.after
    run.waiting = f"its results are being listed: {event.end.task:,} of {run.piece_count:,} tasks"
    if event.end.objects:
        run.waiting += f", and {event.end.objects:,} objects of the next one"
    state.changed_runs.add(run.id)


@_apply.register
def history_part_written(event: events.HistoryPartWritten, state: State, now: float, policy: Policy) -> None:
    """Accept the part that was due. A part from a controller that was overtaken is ignored."""
    carried_out(state, Act.FOLD, event.run_id)
    run = state.runs.get(event.run_id)
    if run is None or run.done or run.history_to != event.begin:
        return
    run.history.append(event.part)
    run.unfolded_since = now if run.unfolded_rows else 0.0
    state.changed_runs.add(run.id)


@_apply.register
def run_closed(event: events.RunClosed, state: State, now: float, policy: Policy) -> None:
    run = state.runs.get(event.run_id)
    if run is None or run.done or not run.complete:
        return
    charges.close_run(state, run, now)
    environments.note_closed(state, run)
    definitions.release(state, run, now)
    run.status, run.stopped_at, run.waiting = run.final_status, now, ""
    state.changed_runs.add(run.id)


@_apply.register
def result_seen(event: events.ResultSeen, state: State, now: float, policy: Policy) -> None:
    run = state.runs.get(event.run_id)
    carried_out(state, Act.VERIFY, event.run_id)
    if run is None or run.tasks["status"][event.index] != TaskStatus.VERIFYING.value:
        return
    if event.attempt and event.attempt >= run.tasks["first"][event.index]:
        gangs.succeed(state, run, gang_of(run, event.index), event.attempt, event.bytes)
        return
    attempts.miss_result(state, run, event.index, now, policy)


@_apply.register
def controller_started(event: events.ControllerStarted, state: State, now: float, policy: Policy) -> None:
    rows = state.attempts.with_status(AttemptStatus.INTENT)
    state.attempts.set_many(rows, status=AttemptStatus.IN_DOUBT)
    state.begun_at = now
    state.observed_at = 0.0  # events may have been missed: sweep everything at once
    if state.losses.runs:
        quarantine.set_aside(state, now, policy)


@_apply.register
def not_carried_out(event: events.NotCarriedOut, state: State, now: float, policy: Policy) -> None:
    """The intent stays and is decided again, after a pause if the failure has a subject. Closing a run and looking up
    its results are given up in the end. A stop that was never sent, or was throttled, is sent in the next tick,
    before a task that waits in ECS can start."""
    if event.key and event.passing:
        _stop_at_once(state, event.key)
    if not event.about:
        return
    readings.note_refusal(state, event)
    setback = set_back(state, event.about, event.reason, now, event.passing)
    setback.not_before = max(setback.not_before, now + event.pause_s)
    targets.note_failure(state, event.about, event.reason)
    run = state.runs.get(event.about.id)
    if run is None or event.about.what is Act.FOLD:
        return
    run.waiting = refusals.in_words(event.about, event.reason)
    state.changed_runs.add(run.id)
    if not is_hopeless(setback, now, policy):
        return
    if event.about.what is Act.CLOSE:
        charges.close_run(state, run, now)
        environments.note_closed(state, run)
        definitions.release(state, run, now)
        run.status, run.stopped_at, run.status_reason = RunStatus.FAILED, now, f"not closed: {event.reason}"
    elif event.about.what is Act.VERIFY:
        give_up_results(state, run, event.reason)


def _stop_at_once(state: State, key: AttemptKey) -> None:
    row = state.row_of(key)
    if row is not None and state.attempts["stop_cause"][row] != StopCause.NONE.value:
        state.attempts.set(row, stop_at=0.0)


@_apply.register
def launch_accepted(event: events.LaunchAccepted, state: State, now: float, policy: Policy) -> None:
    if state.setbacks:
        refusals.end_launch_refusals(state, event.key.run_id)
    attempts.accept(state, event, now)


@_apply.register
def launch_refused(event: events.LaunchRefused, state: State, now: float, policy: Policy) -> None:
    attempts.refuse(state, event, now, policy)


@_apply.register
def launch_in_doubt(event: events.LaunchInDoubt, state: State, now: float, policy: Policy) -> None:
    if (row := state.row_of(event.key)) is None:
        return
    set_back(state, Subject(Act.RESOLVE, str(state.attempts["wave"][row])), event.reason, now)
    refusals.note_doubt(state, event, now)
    if state.attempts["status"][row] == AttemptStatus.INTENT.value:
        state.attempts.set(row, status=AttemptStatus.IN_DOUBT)


@_apply.register
def launch_missed(event: events.LaunchMissed, state: State, now: float, policy: Policy) -> None:
    attempts.note_missed(state, event.key, now)


@_apply.register
def launch_disproved(event: events.LaunchDisproved, state: State, now: float, policy: Policy) -> None:
    attempts.miss_launch(state, event.key, now, policy)


@_apply.register
def task_seen(event: events.TaskSeen, state: State, now: float, policy: Policy) -> None:
    attempts.see(state, event, now, policy)


@_apply.register
def container_instance_seen(event: events.ContainerInstanceSeen, state: State, now: float, policy: Policy) -> None:
    hosts.see_container_instance(state, event, now, policy)


@_apply.register
def host_seen(event: events.HostSeen, state: State, now: float, policy: Policy) -> None:
    hosts.see_host(state, event, now, policy)


@_apply.register
def host_changed(event: events.HostChange, state: State, now: float, policy: Policy) -> None:
    hosts.change_host(state, event, now, policy)


@_apply.register
def pool_seen(event: events.FleetSeen | ReservationSeen, state: State, now: float, policy: Policy) -> None:
    if isinstance(event, events.FleetSeen):
        pools.see_fleet(state, event, now)
    else:
        reservations.see(state, event, now)


@_apply.register
def order_answered(event: OrderAnswered, state: State, now: float, policy: Policy) -> None:
    pools.order_answered(state, event)


@_apply.register
def target_accepted(event: events.TargetAccepted, state: State, now: float, policy: Policy) -> None:
    if state.setbacks:
        refusals.end_refusal(state, state.pools[event.pool])
    pools.fleet_told(state, event)


@_apply.register
def targets_changed(event: TargetsRegistered | TargetsDeregistered, state: State, now: float, policy: Policy) -> None:
    targets.note(state, event, now)


@_apply.register
def pool_short(event: events.PoolShort, state: State, now: float, policy: Policy) -> None:
    note = refusals.refuse_order if event.refused else pools.note_shortage
    note(state, event, now, policy)


@_apply.register
def history_read(event: events.HistoryRead, state: State, now: float, policy: Policy) -> None:
    pools.note_history(state, event, now, policy)


@_apply.register
def observed(event: events.Observed, state: State, now: float, policy: Policy) -> None:
    """A sweep: everything it shows, then everything that its complete listings no longer show."""
    readings.see_room(state, event)
    for fleet in event.fleets:
        pools.see_fleet(state, fleet, event.at)
    reservations.observe(state, event, policy)
    for host in event.hosts:
        hosts.see_host(state, host, event.at, policy)
    for container_instance in event.container_instances:
        hosts.see_container_instance(state, container_instance, event.at, policy)
    attempts.see_all(state, event, policy)
    hosts.miss_hosts(state, event, policy)
    hosts.miss_registrations(state, event, policy)
    pools.miss_fleets(state, event)
    pools.count_hours(state, event.at, policy)
    if event.broken_off or state.setbacks:
        refusals.note_listings(state, event, now)
    state.observed_at = event.at
    state.losses.seen |= event.whole_cells
    if event.hosts_complete:
        state.losses.blind = False
