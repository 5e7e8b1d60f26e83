"""What becomes of an open run when a user changes what it asks for?

Nothing that runs is stopped for it: the next decision is made by the new terms, whatever was started by the old ones. A
run that is to start nothing more, and one whose tasks an environment rules over, stay as they are.
"""

from __future__ import annotations

from dataclasses import replace

from argosy.model.inbox import UpdateRequest
from argosy.model.purchases import Stance
from argosy.model.runs import Run
from argosy.model.state import State


def update(state: State, request: UpdateRequest) -> None:
    """Of a run that has ended meanwhile nothing changes."""
    run = state.runs.get(request.run_id)
    if run is None or run.done or run.terms.serves or is_given_up(run):
        return
    deadline_at = run.deadline_at
    run.change(request.changes, request.reason)
    if run.deadline_at != deadline_at:
        _steer_anew(run)
    state.changed_runs.add(run.id)


def is_given_up(run: Run) -> bool:
    """Whether nothing of it is to start any more. A run that is being reopened only seems so."""
    return run.cancelled or (run.halted and not run.revives)


def _steer_anew(run: Run) -> None:
    """By another deadline it may be in time, and spot may do."""
    stance = Stance.ON_DEMAND if run.steering.stance is Stance.FIRM else run.steering.stance
    run.steering = replace(run.steering, late=False, stance=stance)
