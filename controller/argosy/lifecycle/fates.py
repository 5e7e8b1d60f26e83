"""Whose was a failure on an instance that may have been going down?

An operating system that shuts down ends the containers before EC2 says that the instance ends, and the agent may still
report their exit codes: 143, 137, or whatever a program answers to SIGTERM. So a failure is not booked on the user
before its instance is seen to run some seconds later. EC2 is asked for just these instances, because a sweep of
thousands takes too long. Meanwhile the attempt keeps its row and its place.
"""

from __future__ import annotations

from argosy.lifecycle.attempts import end
from argosy.lifecycle.marks import may_settle_more
from argosy.model.policy import Policy
from argosy.model.state import OpenEnd, State


def settle_open_ends(state: State, now: float, policy: Policy) -> None:
    """Book the failures of which it is known, or will not be known any more, whether their instances went down."""
    for row, open_end in list(state.open_ends.items()):
        if not may_settle_more(state, policy):
            return
        if _is_decided(state, row, open_end, now, policy):
            end(state, row, open_end.seen, now, policy)


def _is_decided(state: State, row: int, open_end: OpenEnd, now: float, policy: Policy) -> bool:
    instance = state.instance_of(row)
    ran = open_end.host_ran_at >= open_end.heard_at + policy.fate_s
    too_late = now >= open_end.heard_at + policy.fate_patience_s
    return instance is None or instance.leaves or ran or too_late
