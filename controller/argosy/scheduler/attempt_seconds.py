"""How long is the work that an interruption would have to do again? What offers are weighed with (market/risk.py)."""

from __future__ import annotations

from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus


def attempt_seconds(state: State) -> float | None:
    """The mean over the pending tasks of the open runs that know how long an attempt takes; None while none does."""
    known = [(seconds, run) for run in state.runs.values() if (seconds := _known(run)) is not None]
    waiting = [int(run.tasks.counts()[TaskStatus.PENDING]) for _, run in known]
    if not sum(waiting):
        return None
    return sum(seconds * count for (seconds, _), count in zip(known, waiting, strict=True)) / sum(waiting)


def _known(run: Run) -> float | None:
    """As long as earlier ones took, else as its spec expects. A time-out is no expectation."""
    said = run.terms.expected_seconds
    return run.mean_seconds(None if said is None else float(said))
