"""What does the passing of time alone say, before anything is decided?"""

from __future__ import annotations

from argosy.lifecycle import losing
from argosy.lifecycle.capping import drop_unsent
from argosy.lifecycle.marks import note_orders
from argosy.lifecycle.pools import note_unregistered
from argosy.model.policy import Policy
from argosy.model.state import State


def pass_time(state: State, now: float, policy: Policy) -> None:
    """What is left of lost instances is settled, orders grow late, instances that have not joined the cluster are given
    up, and what was intended for a run that is to start nothing any more is taken back: intents that are left once all
    outcomes are known were never sent."""
    losing.go_on(state, policy)
    note_orders(state, now)
    note_unregistered(state, now, policy)
    for run in state.runs.values():
        if run.halted:
            drop_unsent(state, run, now, policy)
