"""What is recorded about an ended attempt?

One row for each attempt: ECS started a task for it, or may have. A launch that was refused or disproved is not an
attempt. `model.documents` appends the rows in the commit in which the attempts ended.
"""

from __future__ import annotations

from argosy.lifecycle.accounts import Account, AttemptEnd, host_was_lost
from argosy.model.attempts import StopCause
from argosy.model.ended_attempts import FAILURES, EndedAttempt, Outcome
from argosy.model.failure_groups import note_failure
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import NO_EXIT_CODE

_OUTCOMES = {
    Account.SUCCESS: Outcome.SUCCEEDED,
    Account.USER: Outcome.FAILED,
    Account.LOST: Outcome.LOST,
    Account.START: Outcome.NOT_STARTED,
    Account.BUSY: Outcome.NOT_STARTED,
    Account.CANCELLED: Outcome.CANCELLED,
    Account.PREEMPTED: Outcome.PREEMPTED,
    Account.PEER: Outcome.WITH_GANG,
}


def note_end(state: State, run: Run, row: int, end: AttemptEnd, ran: tuple[float, float]) -> None:
    """Record that the attempt in a row of the table has ended. ran: begin and end, epoch seconds, 0 = unknown."""
    seen = end.seen
    went = host_was_lost(seen, state.instance_of(row)) if seen.arn else seen.reason.startswith("Host EC2")
    outcome = _outcome(end, went)
    started_at, stopped_at = ran
    noted = _known_of(state, row)._replace(
        outcome=outcome,
        started_at=started_at,
        stopped_at=stopped_at,
        exit_code=NO_EXIT_CODE if seen.exit_code is None else seen.exit_code,
        reason=0 if outcome is Outcome.SUCCEEDED else run.reason_row(end.reason),
    )
    run.note_program(noted.program, attempts=1, seconds=max(0.0, stopped_at - started_at) if started_at else 0.0)
    _append(state, run, noted, stopped_at)


def note_lost(state: State, run_id: str, row: int, stopped_at: float) -> None:
    """Record that an attempt of a suspended run ended with its instance. It has no reason: reasons are the run's."""
    state.ended.setdefault(run_id, []).append(_known_of(state, row)._replace(stopped_at=stopped_at))


def amend(state: State, run: Run, end: AttemptEnd, now: float) -> None:
    """Record that the task's latest attempt, so far a success, left no result."""
    amended = EndedAttempt(
        index=end.index,
        attempt=int(run.tasks["attempts"][end.index]),
        outcome=_outcome(end, end.cause is not StopCause.STUCK),
        exit_code=NO_EXIT_CODE if end.seen.exit_code is None else end.seen.exit_code,
        reason=run.reason_row(end.reason),
        program=int(run.tasks["program"][end.index]),
        amends=True,
    )
    _append(state, run, amended, now)


def _append(state: State, run: Run, row: EndedAttempt, at: float) -> None:
    state.ended.setdefault(run.id, []).append(row)
    run.history_rows += 1
    run.unfolded_since = run.unfolded_since or at
    if row.outcome in FAILURES:
        note_failure(run.failure_groups, row.reason, row.exit_code, row.index, at)


def _outcome(end: AttemptEnd, with_its_instance: bool) -> Outcome:
    if end.account is Account.USER and end.cause is StopCause.TIMED_OUT:
        return Outcome.TIMED_OUT
    if end.account is Account.LOST and (end.cause is StopCause.INTERRUPTED or with_its_instance):
        return Outcome.INTERRUPTED
    return _OUTCOMES[end.account]


def _known_of(state: State, row: int) -> EndedAttempt:
    """The attempt as in the table. Its outcome is "interrupted", unless another is known."""
    table, instance = state.attempts, state.instance_of(row)
    return EndedAttempt(
        index=int(table["index"][row]),
        attempt=int(table["attempt"][row]),
        outcome=Outcome.INTERRUPTED,
        instance=bytes(table["instance"][row]).decode(),
        cell=instance.cell if instance else "",
        task_id=bytes(table["task_id"][row]).decode(),
        launched_at=float(table["launched_at"][row]),
        started_at=float(table["started_at"][row]),
        gpu_mask=int(table["gpu_mask"][row]),
        pull_s=table.pull_s(row),
        program=int(table["program"][row]),
    )
