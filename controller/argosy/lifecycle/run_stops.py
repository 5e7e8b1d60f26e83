"""Runs that are stopped early: given up, capped or cancelled, with the launches never sent."""

from __future__ import annotations

from typing import NamedTuple

from argosy.gangs.members import whole
from argosy.lifecycle import charges
from argosy.lifecycle.accounts import end_attempt
from argosy.model.attempts import AttemptStatus, StopCause
from argosy.model.costs import Work
from argosy.model.exit_codes import explained
from argosy.model.failure_texts import FailuresRead, differ
from argosy.model.inbox import CancelTasksRequest
from argosy.model.policy import Policy
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import NO_EXIT_CODE, TaskStatus

STOPPED_EARLY = "stopped early"  # begins the reason
CANCELLED_ALONE = "the task was cancelled"


def stop_if_all_alike(state: State, run: Run, policy: Policy) -> None:
    """Stop a run whose first tasks fail alike, before it spends money on the rest (DESIGN D9). If only their logs say
    why they failed, nothing of it is started until those are read."""
    if (found := alike(run, policy)) is not None and not found.is_in_logs:
        give_up(state, run, found.reason())


def judge_logs(state: State, event: FailuresRead, policy: Policy) -> None:
    """The same by what failed attempts wrote last. If that differs, the run continues until twice as many tasks have
    failed."""
    run = state.runs.get(event.run_id)
    found = None if run is None else alike(run, policy)
    if run is None or found is None or not found.is_in_logs:
        return
    if differ(event.lines):
        run.failed_before = max(run.failed_before, 2 * found.failed - _alike_limit(run, policy))
        state.changed_runs.add(run.id)
        return
    give_up(state, run, found.reason(next(filter(None, reversed(event.lines)), "")))


class AlikeFailures(NamedTuple):
    """All tasks of a run that have failed, if they did so with one reason and exit code. is_in_logs: whether the reason
    only words the exit code, and the logs can be read."""

    failed: int
    exit_code: int
    text: str
    is_in_logs: bool

    def reason(self, line: str = "") -> str:
        """Of the run that stops."""
        shown = "" if self.exit_code == NO_EXIT_CODE else f" (exit code {self.exit_code})"
        said = f"; the last line of a log: {line}" if line else ""
        told = f"the first {self.failed} tasks failed alike{shown}: {self.text}{said}"
        return f"{STOPPED_EARLY}: {told} (retryStrategy.stopAfterAlike: N or never changes that)"


def alike(run: Run, policy: Policy) -> AlikeFailures | None:
    """None while a run has tasks that succeeded, too few that failed, or ones that failed in another way."""
    counts, limit = run.tasks.counts(), _alike_limit(run, policy)
    if run.halted or not limit or counts[TaskStatus.SUCCEEDED] or counts[TaskStatus.FAILED] < run.failed_before + limit:
        return None
    failed = run.tasks["status"] == TaskStatus.FAILED
    reasons = set(run.tasks["reason"][failed].tolist())
    codes = set(run.tasks["exit_code"][failed].tolist())
    if len(reasons) != 1 or len(codes) != 1 or not counts[TaskStatus.PENDING]:
        return None
    code, text = codes.pop(), run.reasons[reasons.pop()]
    is_worded = code != NO_EXIT_CODE and text == explained(None, code, has_runner=run.terms.needs_runner)
    is_in_logs = is_worded and bool(run.image) and any(each.task_arn for each in run.failures)
    return AlikeFailures(int(counts[TaskStatus.FAILED]), code, text, is_in_logs)


def awaits_logs(run: Run, policy: Policy) -> bool:
    """Whether nothing of it starts until logs of its failures are read."""
    found = None if run.terms.service is not None else alike(run, policy)
    return found is not None and found.is_in_logs


def _alike_limit(run: Run, policy: Policy) -> int:
    limit = policy.alike_failures if run.terms.alike_limit is None else run.terms.alike_limit
    return limit * run.gang_size


def give_up(state: State, run: Run, reason: str) -> None:
    """Start no more tasks of the run; running tasks may end. O(1), whatever the number of tasks."""
    run.tasks.halted = True
    run.status_reason = run.status_reason or reason
    run.waiting = ""  # none of its tasks wait any more
    state.changed_runs.add(run.id)


def cap(state: State, run: Run, reason: str, now: float, policy: Policy) -> None:
    """The run's budget is used up. It starts nothing more; `upkeep.stops` decides whether running tasks may finish."""
    run.capped_at = now
    give_up(state, run, reason)
    drop_unsent(state, run, now, policy)


def drop_unsent(state: State, run: Run, now: float, policy: Policy) -> None:
    """Cancel the tasks whose launches were intended and never sent: there is nothing to stop.

    As many as this commit can hold: the run may be spread over a hundred chunks. Later ticks drop the rest, and
    `upkeep.unsent` does not send them in the meantime.
    """
    for row in state.attempts.of_run(run.number).tolist():
        if state.attempts["status"][row] != AttemptStatus.INTENT:
            continue
        if not state.may_settle_more(policy):
            return
        _drop(state, run, row, now)


def _drop(state: State, run: Run, row: int, now: float, **more: int) -> None:
    index, launch = int(state.attempts["index"][row]), int(state.attempts["launch"][row])
    state.set_task(run, index, status=TaskStatus.CANCELLED, launch=launch + 1, **more)  # its token is never used
    end_attempt(state, row, now)


def cancel(state: State, run: Run, reason: str, now: float, policy: Policy) -> None:
    """A retry under way continues: it cancels tasks without an attempt (`revival.revive`)."""
    run.cancelled = True
    give_up(state, run, reason)
    drop_unsent(state, run, now, policy)


def cancel_tasks(state: State, request: CancelTasksRequest, now: float) -> None:
    """A task that waits ends at once. A live one gets a stop, which `upkeep.stops` sends until its attempt has ended.
    One whose program has ended keeps its result; if it wrote none, it ends. Those of services stay."""
    run = state.runs.get(request.run_id)
    if run is None or run.terms.serves:
        return
    reason = run.reason_row(CANCELLED_ALONE)
    for index in (
        index for first, last in whole(run, request.tasks) for index in range(first, min(last + 1, run.task_count))
    ):
        row = state.attempts.row_of_task.get((run.number, index))
        if row is None:
            if run.tasks["status"][index] == TaskStatus.PENDING.value:
                state.set_task(run, index, status=TaskStatus.CANCELLED, reason=reason)
            elif run.tasks["status"][index] == TaskStatus.VERIFYING.value:
                state.set_task(run, index, stop_cause=StopCause.CANCELLED)
        elif state.attempts["status"][row] == AttemptStatus.INTENT.value:
            _drop(state, run, row, now, reason=reason)
        elif state.attempts["stop_cause"][row] != StopCause.CANCELLED.value:
            state.attempts.set(row, stop_cause=StopCause.CANCELLED, stop_at=0.0)


def give_up_results(state: State, run: Run, reason: str) -> None:
    """Results that cannot be looked up count as missing: as many as one commit can hold, the rest later."""
    give_up(state, run, f"results cannot be looked up: {reason}")
    rows = run.tasks.in_few_chunks((run.tasks["status"] == TaskStatus.VERIFYING.value).nonzero()[0])
    run.tasks.set_many(rows, status=TaskStatus.FAILED, reason=run.reason_row(reason))
    for index in rows.tolist():
        charges.unbook(state, run, index, Work.FAILED)
