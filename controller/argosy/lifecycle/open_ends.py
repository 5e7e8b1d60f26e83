"""Open ends: failures on instances that may have been ending, booked once that is known.

An operating system that shuts down ends the containers before EC2 reports the end of the instance, and the agent may
still report their exit codes: 143, 137, or the program's answer to SIGTERM. So a failure is booked on the user only
after its instance is seen running some seconds later. The same applies to an exit code of 0 that left no result. EC2 is
queried for only these instances, because a sweep of thousands takes too long. Until then a failed attempt keeps its row
and its room, and a task without a result stays VERIFYING. ECS finds a broken GPU later than its program does, so a
failure with a GPU waits longer.
"""

from __future__ import annotations

from argosy.lifecycle import gpu_resets
from argosy.lifecycle.attempts import end, end_without_result
from argosy.model.instances import Instance
from argosy.model.open_ends import MissingResult, OpenEnd
from argosy.model.policy import Policy
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus


def settle_open_ends(state: State, now: float, policy: Policy) -> None:
    """Book the failures for which it is known, or can no longer be known, whether their instances were ending."""
    for row in list(state.open_ends.failures):
        if not state.may_settle_more(policy):
            return
        if _is_decided(state, state.instance_of(row), state.open_ends.failures[row], now, policy):
            gpu_resets.mark(state, row, policy)
            _end(state, row, now, policy)
    for (run_id, index), missing in list(state.open_ends.missing_results.items()):
        if not state.may_settle_more(policy):
            return
        run = state.runs.get(run_id)
        if run is None or not _is_of_now(missing, run, index):
            del state.open_ends.missing_results[run_id, index]
        elif _is_decided(state, state.instances.get(missing.instance), missing, now, policy):
            del state.open_ends.missing_results[run_id, index]
            end_without_result(state, run, index, now, policy)
    if not state.open_ends:
        state.open_ends.ran_at.clear()


def _end(state: State, row: int, now: float, policy: Policy) -> None:
    open_end, key = state.open_ends.failures[row], state.key_of(row)
    end(state, row, open_end.seen, now, policy)
    run = state.runs.get(key.run_id) if key and open_end.pause_s else None
    if key and run is not None and run.tasks["status"][key.index] == TaskStatus.PENDING:
        state.set_task(run, key.index, not_before=now + open_end.pause_s)


def _is_of_now(missing: MissingResult, run: Run, index: int) -> bool:
    """Whether the task still waits for it: its run may have been given up or retried since then."""
    same = run.tasks["attempts"][index] == missing.attempt
    return bool(same and run.tasks["status"][index] == TaskStatus.VERIFYING)


def _is_decided(
    state: State, instance: Instance | None, end: OpenEnd | MissingResult, now: float, policy: Policy
) -> bool:
    if instance is None or instance.leaves:
        return True
    ran = state.open_ends.ran_at.get(instance.id, 0.0) >= end.known_at
    return ran or now >= end.heard_at + policy.fate_patience_s
