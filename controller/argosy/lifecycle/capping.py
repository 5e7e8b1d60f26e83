"""What happens to a run whose budget is used up, and to the launches that a stopped run never sent?"""

from __future__ import annotations

from argosy.lifecycle.ending import give_up
from argosy.lifecycle.marks import end_attempt, may_settle_more, set_task
from argosy.model.attempts import AttemptStatus
from argosy.model.policy import Policy
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus


def cap(state: State, run: Run, reason: str, now: float, policy: Policy) -> None:
    """Nothing of it is started any more; what runs is stopped or may end, as `upkeep.stops` decides."""
    run.capped_at = now
    give_up(state, run, reason)
    drop_unsent(state, run, now, policy)


def drop_unsent(state: State, run: Run, now: float, policy: Policy) -> None:
    """Intents that were never sent: there is nothing to stop. As many as this commit can hold, the run may be spread
    over a hundred chunks; what is left is not sent either (`upkeep.unsent`), and is dropped by the next ticks."""
    for row in state.attempts.of_run(run.number).tolist():
        if state.attempts["status"][row] != AttemptStatus.INTENT:
            continue
        if not may_settle_more(state, policy):
            return
        index, launch = int(state.attempts["index"][row]), int(state.attempts["launch"][row])
        set_task(state, run, index, status=TaskStatus.CANCELLED, launch=launch + 1)  # its token is never used
        end_attempt(state, row, now)
