"""What does the passing of time alone say, before anything is decided?"""

from __future__ import annotations

from controller.lifecycle.marks import note_orders
from controller.lifecycle.pools import note_unregistered
from controller.model.policy import Policy
from controller.model.state import State


def pass_time(state: State, now: float, policy: Policy) -> None:
    """Orders grow late, and instances that have not joined the cluster by now are given up."""
    note_orders(state, now)
    note_unregistered(state, now, policy)
