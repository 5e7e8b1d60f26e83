"""Pools and cells whose instances never join the cluster.

After some in a row the cause is their AMI, network or role, and more would only cost money (reliability.md row 41). The
pool pauses; then one instance at a time is bought there (`scheduler.buying.trial_instances`), until one joins.

Failures in a row are also counted over all pools of the cell. Then one at a time is bought in the whole cell, in pools
that have not failed first, and each further failure pauses every pool that has failed.
"""

from __future__ import annotations

from argosy.model.policy import Policy
from argosy.model.pools import Pool
from argosy.model.state import State

_REASON = "instances in a row never joined the cluster"


def count(state: State, key: str, now: float, policy: Policy) -> None:
    """One more instance of the pool has not joined in time."""
    failed = state.pools.get(key)
    if failed is None:
        return
    failed.unregistered += 1
    for pool in _cell_of(state, failed):
        pool.cell_unregistered += 1
    in_cell = failed.cell_unregistered >= policy.max_unregistered
    in_row = failed.cell_unregistered if in_cell else failed.unregistered
    for pool in _cell_of(state, failed):
        if in_row >= policy.max_unregistered and (pool is failed or (in_cell and pool.unregistered)):
            pool.short_until = pool.on_demand_short_until = now + policy.cool_off_max_s
            pool.short_reason, pool.needs_mending = f"{in_row} {_REASON}", True
    state.changed_pools = True


def forgive(state: State, joined: Pool) -> None:
    """An instance of the pool has joined: its pause ends, and so do its limit and that of its cell."""
    joined.unregistered = 0
    for pool in _cell_of(state, joined):
        pool.cell_unregistered = 0
    if joined.short_reason.endswith(_REASON):
        joined.short_until = joined.on_demand_short_until = 0.0
        joined.needs_mending = False
    state.changed_pools = True


def _cell_of(state: State, pool: Pool) -> list[Pool]:
    return [each for each in state.pools.values() if each.cell == pool.cell]
