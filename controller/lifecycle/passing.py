"""What does the passing of time alone say, before anything is decided?"""

from __future__ import annotations

from controller.lifecycle import losing
from controller.lifecycle.capping import drop_unsent
from controller.lifecycle.marks import note_orders
from controller.lifecycle.pools import note_unregistered
from controller.model.policy import Policy
from controller.model.state import State


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
