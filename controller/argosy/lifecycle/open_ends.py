"""Open ends: failures on instances that may have been going down, booked once that is known.

An operating system that shuts down ends the containers before EC2 says that the instance ends, and the agent may still
report their exit codes: 143, 137, or whatever a program answers to SIGTERM. So a failure is not booked on the user
before its instance is seen to run some seconds later; nor is an exit code of 0 that left no result, which is a failure
as well. EC2 is asked for just these instances, because a sweep of thousands takes too long. Meanwhile an attempt that
failed keeps its row and its place, and a task whose result is missing stays VERIFYING.
"""

from __future__ import annotations

from argosy.lifecycle.attempts import end, end_without_result
from argosy.lifecycle.marks import may_settle_more
from argosy.model.instances import Instance
from argosy.model.open_ends import MissingResult
from argosy.model.policy import Policy
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus


def settle_open_ends(state: State, now: float, policy: Policy) -> None:
    """Book the failures of which it is known, or will not be known any more, whether their instances went down."""
    for row, open_end in list(state.open_ends.failures.items()):
        if not may_settle_more(state, policy):
            return
        if _is_decided(state, state.instance_of(row), open_end.heard_at, now, policy):
            end(state, row, open_end.seen, now, policy)
    for (run_id, index), missing in list(state.open_ends.missing_results.items()):
        if not may_settle_more(state, policy):
            return
        run = state.runs.get(run_id)
        if run is None or not _is_of_now(missing, run, index):
            del state.open_ends.missing_results[run_id, index]
        elif _is_decided(state, state.instances.get(missing.instance), missing.heard_at, now, policy):
            del state.open_ends.missing_results[run_id, index]
            end_without_result(state, run, index, now, policy)
    if not state.open_ends:
        state.open_ends.ran_at.clear()


def _is_of_now(missing: MissingResult, run: Run, index: int) -> bool:
    """Whether the task still waits for it: its run may have been given up meanwhile, or retried."""
    same = run.tasks["attempts"][index] == missing.attempt
    return bool(same and run.tasks["status"][index] == TaskStatus.VERIFYING)


def _is_decided(state: State, instance: Instance | None, heard_at: float, now: float, policy: Policy) -> bool:
    if instance is None or instance.leaves:
        return True
    ran = state.open_ends.ran_at.get(instance.id, 0.0) >= heard_at + policy.fate_s
    return ran or now >= heard_at + policy.fate_patience_s
