"""What happens to a run on which the controller's own code fails?

It is suspended: nothing is decided for it and no fact about it is taken in, so that the other runs continue. Its tasks
continue for some minutes (`suspended_tasks`). When it is retried, ECS and EC2 show what happened in the meantime; an
attempt whose end is no longer known counts as lost. A user may cancel it, or retry it at once.
"""

from __future__ import annotations

from dataclasses import replace

from argosy.lifecycle import charges, definitions, environments, suspended_tasks
from argosy.lifecycle.suspended_tasks import left_out_if_it_fails
from argosy.model.attempts import AttemptStatus
from argosy.model.events import Event, RunNotResumed, RunResumed
from argosy.model.inbox import Request, SubmitRequest
from argosy.model.policy import Policy
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run, RunStatus
from argosy.model.state import State
from argosy.model.suspensions import MAX_REASON, MOST_S, Suspension, pause_s, reason_of

GIVEN_UP = "given up: the controller {}"
CANCELLED = "cancelled while it was suspended"
DELETED = "its environment was deleted"
REFUSED = "the request to {} it could not be carried out, and is not retried"


def suspend(state: State, record: RunRecord, reason: str, now: float, earlier: Suspension | None = None) -> None:
    """Suspend the run for a while. record: its stored record; earlier: its last suspension, if that is not long ago."""
    times = earlier.times + 1 if earlier else 1
    since = earlier.since if earlier else now
    found = Suspension(record, reason[:MAX_REASON], since, now + pause_s(times), times)
    state.runs.pop(record.id, None)
    for changed in (state.changed_runs, state.new_runs):
        changed.discard(record.id)
    for row in state.attempts.of_run(record.number):
        state.open_ends.failures.pop(row, None)  # ECS shows them again
    state.suspended[record.id] = found
    state.quarantined[record.id] = found.stored_record()


def bare_record(run: Run) -> RunRecord:
    """A summary from its fields alone."""
    known = RunRecord.of_unreadable(run.id)
    return replace(known, status=run.status, number=run.number, needs=run.needs, is_daemon=run.is_daemon)


def resume(state: State, run: Run) -> None:
    """Try it again, in the order of submission. The outcome of its attempts is found as after a crash."""
    del state.suspended[run.id]
    state.quarantined.pop(run.id, None)
    state.runs = dict(sorted([*state.runs.items(), (run.id, run)], key=lambda each: each[1].number))
    state.note_daemon(run)
    intents = [
        row for row in state.attempts.of_run(run.number) if state.attempts["status"][row] == AttemptStatus.INTENT.value
    ]
    for row in intents:
        state.attempts.set(row, status=AttemptStatus.IN_DOUBT)
    run.waiting = ""
    state.losses.attempts = True  # attempts may have gone with their instances
    state.observed_at = 0.0
    state.changed_runs.add(run.id)


def close(state: State, run_id: str, status: RunStatus, reason: str, now: float) -> None:
    """Close its record. Its documents stay, so that it can be retried; running tasks are stopped."""
    record = state.suspended[run_id].record
    with left_out_if_it_fails(state, f"charging run {run_id} at its end"):
        charges.close_run(state, record, now)
        environments.note_closed(state, state.suspended[run_id].record)
    with left_out_if_it_fails(state, f"giving up the task definition of run {run_id}"):
        definitions.release(state, record, now)
    _end(state, run_id, status, reason, now)


def _end(state: State, run_id: str, status: RunStatus, reason: str, now: float) -> None:
    found = state.suspended.pop(run_id)
    state.quarantined[run_id] = replace(
        found.record,
        status=status,
        status_reason=f"{reason}; {found.reason}",
        cancelled=status is RunStatus.CANCELLED,
        stopped_at=now,
        waiting="",
        suspended_at=0.0,
    )
    state.losses.attempts = True


def refuse(state: State, request: Request, stored: RunRecord | None, now: float) -> None:
    """A request that cannot be carried out, such as one on which the controller's code fails, is not taken in. A run
    that was to be submitted, or that has ended, shows the reason. Everything else of the run stays as it is.

    stored: the run's record. For an open run, the reason would halt it: only the log shows it."""
    if isinstance(request, SubmitRequest):
        state.quarantined[request.run_id] = replace(
            RunRecord.of_unreadable(request.run_id),
            status_reason="the controller failed to carry out this request and will not retry it; its log says why",
            submitted_at=request.submitted_at,
            stopped_at=now,
            task_count=request.task_count,
            output=request.output,
        )
        return
    shown = state.quarantined.get(request.run_id, stored)
    if request.run_id not in state.runs and shown is not None and shown.has_ended:
        sentence = REFUSED.format(request.kind)
        reasons = [reason for reason in (shown.status_reason, sentence) if reason]
        if sentence not in shown.status_reason:
            state.quarantined[request.run_id] = replace(shown, status_reason="; ".join(reasons))


def pass_time(state: State, now: float, policy: Policy) -> None:
    """Stop tasks of runs suspended for too long. Close runs on which the controller has failed for a day, and those of
    an environment that is being deleted. A run on which this fails as well is closed at once: nothing else could be
    left out.
    """
    for run_id, found in list(state.suspended.items()):
        try:
            if any(env.deleting and run_id in env.all_runs() for env in state.environments.values()):
                close(state, run_id, RunStatus.CANCELLED, DELETED, now)
            elif now - found.since >= MOST_S:
                close(state, run_id, RunStatus.FAILED, GIVEN_UP.format("failed to process this run for a day"), now)
            else:
                suspended_tasks.stop_unwatched(state, found, now, policy)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other runs continue
            state.left_out.append((f"run {run_id} while it is suspended", error))
            where = f"failed even while this run was suspended, {reason_of(error)}"
            _end(state, run_id, RunStatus.FAILED, GIVEN_UP.format(where), now)


def is_ignored(state: State, event: Event) -> bool:
    """Whether a fact concerns a suspended run and is left out. Facts about its tasks are for `suspended_tasks`."""
    if isinstance(event, RunResumed | RunNotResumed):
        return False
    key = getattr(event, "key", None)
    return (key.run_id if key else getattr(event, "run_id", "")) in state.suspended
