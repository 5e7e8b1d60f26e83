"""Which runs change from spot to on-demand or back in this tick, and which are late?"""

from __future__ import annotations

from collections.abc import Iterator

from argosy.market.buy import Order
from argosy.market.fallback import steered
from argosy.market.offers import tasks_in
from argosy.model.actions import Steer
from argosy.model.instances import Purchase
from argosy.model.policy import Policy
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.scheduler.places import Places

OVERDUE_S = 60.0  # EC2 launches within seconds what it has


def steers(state: State, places: Places, order: Order, now: float, policy: Policy) -> Iterator[Steer]:
    """Only those that differ from what is known: most ticks have none."""
    rows = {run.id: row for row, run in enumerate(places.runs)}
    for run in state.runs.values():
        if run.done or not _is_steered(run):
            continue
        steering = steered(run, state, now, policy)  # what this very tick has placed and bought by
        if steering.stance is run.steering.stance:
            short: bool | None = False
            if (row := rows.get(run.id)) is not None and _waits(places, order, row):
                short = _is_short(state, run, now, policy) or None
            steering = steered(run, state, now, policy, short)
        if steering != run.steering:
            yield Steer(run.id, steering)


def _is_steered(run: Run) -> bool:
    return run.terms.purchase.mixes or run.deadline_at is not None


def _waits(places: Places, order: Order, row: int) -> bool:
    """Its tasks count on spot instances that nobody has seen yet, are bought for now, or found no offer at all; what a
    limit holds back does not wait for the market."""
    ordered = [places.owed[name] for name in places.counted_on[row] & places.owed.keys()]
    held_back = order.uncovered[row] if order.held_back[row] else 0
    return any(purchase is Purchase.SPOT for _, purchase in ordered) or places.left_over[row].count > held_back


def _is_short(state: State, run: Run, now: float, policy: Policy) -> bool:
    """Whether spot was short lately where the run may buy: a pool cools off, or owes instances for longer than EC2
    takes."""
    return any(
        pool.short_until > now
        or (pool.ordered_since and now - pool.ordered_since >= min(OVERDUE_S, policy.order_patience_s))
        for pool in state.pools.values()
        if tasks_in(pool, run)
    )
