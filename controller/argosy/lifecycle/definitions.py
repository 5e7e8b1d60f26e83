"""Task definitions that lost a run that needed them."""

from __future__ import annotations

from argosy.model.arns import family_of
from argosy.model.runs import Run
from argosy.model.setbacks import Subject, What
from argosy.model.state import State
from argosy.model.stored.run_record import RunRecord

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
    state.setbacks.pop(Subject(What.DEREGISTER, family), None)  # this run may have been the one that held it up
    while len(unused) > MOST_UNUSED:
        del unused[next(iter(unused))]
