"""Which members end because their gang has to start again?"""

from __future__ import annotations

from argosy.gangs.members import live_rows, why_broken
from argosy.model.attempts import StopCause
from argosy.model.moment import Moment


def members_of_broken_gangs(moment: Moment) -> dict[int, tuple[StopCause, str]]:
    """Their rows in the table of attempts. A failure whose cause is not known yet stays as it is."""
    state, found = moment.state, dict[int, tuple[StopCause, str]]()
    for run in state.runs.values():
        for number in run.gangs:
            if why := why_broken(state, run, number, moment.now):
                rows = set(live_rows(state, run, number)) - state.open_ends.failures.keys()
                found |= dict.fromkeys(rows, (StopCause.GANG, why))
    return found
