"""Which fleet targets and terminations follow from the places: grow for the backlog, shrink when it is gone?"""

from __future__ import annotations

from collections.abc import Sequence

from controller.market.buy import Order, buy
from controller.market.release import releasable
from controller.model.actions import SetTarget, Terminate
from controller.model.instances import Instance, Purchase
from controller.model.policy import Policy
from controller.model.pools import Offer, Pool
from controller.model.state import State
from controller.scheduler.places import Places


def order_for(state: State, places: Places, offers: Sequence[Offer], policy: Policy) -> Order:
    """What to buy for the demand that is left over."""
    alive = sum(instance.alive for instance in state.instances.values())
    room = min(policy.growth_per_tick, policy.max_instances - alive - sum(places.owed_used.values()))
    caps = [
        run.max_instances - has if run.max_instances is not None else policy.max_instances
        for run, has in zip(places.runs, places.instances_per_run, strict=True)
    ]
    return buy(places.left_over, caps, offers, room)


def targets(
    state: State, places: Places, order: Order, leaving: Sequence[Instance], now: float, policy: Policy
) -> list[SetTarget]:
    """The absolute targets that differ from what was wanted or acknowledged.

    Target = instances held and kept + ordered ones that the demand still needs + new ones. A pool that has owed us
    instances for too long gives up what it owes and cools off.
    """
    kept = state.held()
    kept.subtract((i.pool, i.purchase) for i in leaving if i.counts_for_target)
    actions = []
    for pool in sorted(state.pools.values(), key=lambda p: p.key):
        late = bool(pool.ordered_since) and now - pool.ordered_since >= policy.order_patience_s
        want = {
            purchase: kept[pool.key, purchase]
            + (0 if late else places.owed_used.get((pool.key, purchase), 0))
            + order.instances[pool.key, purchase]
            for purchase in Purchase
        }
        if _differs(pool, want[Purchase.SPOT], want[Purchase.ON_DEMAND]):
            actions.append(SetTarget(pool.key, want[Purchase.SPOT], want[Purchase.ON_DEMAND], late))
    return actions


def terminations(leaving: Sequence[Instance]) -> list[Terminate]:
    by_cell: dict[str, list[str]] = {}
    for instance in leaving:
        by_cell.setdefault(instance.cell, []).append(instance.id)
    return [Terminate(cell, tuple(ids)) for cell, ids in sorted(by_cell.items())]


def leaving_instances(state: State, places: Places, now: float, policy: Policy) -> list[Instance]:
    return releasable(state, places.wanted, now, policy)


def _differs(pool: Pool, spot: int, on_demand: int) -> bool:
    return (spot, on_demand) != (pool.spot_target, pool.on_demand_target) or (spot, on_demand) != (
        pool.confirmed_spot,
        pool.confirmed_on_demand,
    )
