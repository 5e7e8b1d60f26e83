"""Which fleet targets and terminations follow from the places: grow for the backlog, shrink when it is gone?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from controller.market.buy import NO_FITNESS, Order, buy
from controller.market.release import releasable
from controller.model.actions import SetTarget, Terminate
from controller.model.instances import Instance, Purchase
from controller.model.policy import Policy
from controller.model.pools import Offer, Pool
from controller.model.runs import Run
from controller.model.state import State
from controller.placement.fitness import Fitness
from controller.scheduler.places import Places, group_is_running


def order_for(
    state: State,
    places: Places,
    offers: Sequence[Offer],
    policy: Policy,
    fitness: Mapping[str, Fitness] = NO_FITNESS,
) -> Order:
    """What to buy for the demand that is left over."""
    alive = sum(instance.alive for instance in state.instances.values())
    room = min(policy.growth_per_tick, policy.max_instances - alive - _promised(state))
    caps = [
        run.max_instances - has if run.max_instances is not None else policy.max_instances
        for run, has in zip(places.runs, places.instances_per_run, strict=True)
    ]
    caps = [
        min(cap, _one_in_all(state, places, run)) if run.group in run.affinity else cap
        for cap, run in zip(caps, places.runs, strict=True)
    ]
    share = policy.max_type_share if policy.max_type_share < 1 else None
    return buy(places.left_over, caps, offers, room, fitness, share)


def _one_in_all(state: State, places: Places, run: Run) -> int:
    """How many instances may be bought for a group that keeps together: one, unless it has or is promised some."""
    promised = zip(places.runs, places.instances_per_run, strict=True)
    has = any(count for other, count in promised if other.group == run.group)
    return 0 if has or group_is_running(state, run.group) else 1


def _promised(state: State) -> int:
    """Instances that fleets may still launch, wanted or not: what we give up counts until EC2 has acknowledged it."""
    held, warned = state.held(), state.warned()
    return sum(
        max(0, max(wanted, confirmed) - held[pool.key, purchase] - warned[pool.key, purchase])
        for pool in state.pools.values()
        for purchase, wanted, confirmed in (
            (Purchase.SPOT, pool.spot_target, pool.confirmed_spot),
            (Purchase.ON_DEMAND, pool.on_demand_target, pool.confirmed_on_demand),
        )
    )


def targets(
    state: State, places: Places, order: Order, leaving: Sequence[Instance], now: float, policy: Policy
) -> list[SetTarget]:
    """The absolute targets that differ from what was wanted or acknowledged.

    Target = instances held and kept + ordered ones that the demand still needs + new ones. A pool that has owed us
    instances for too long gives up what it owes and cools off. What is lowered comes first. A fleet counts instances
    that were warned until they end: while their replacements are ordered they are added, so that these come at once.
    """
    kept = state.held()
    kept.subtract((i.pool, i.purchase) for i in leaving if i.counts_for_target)
    warned = state.warned()
    warned.subtract((i.pool, i.purchase) for i in leaving if i.interrupted_at)  # its fleet must not replace it
    actions = []
    for pool in sorted(state.pools.values(), key=lambda p: p.key):
        late = bool(pool.ordered_since) and now - pool.ordered_since >= policy.order_patience_s
        want = {}
        for purchase in Purchase:
            key = pool.key, purchase
            new = (0 if late else places.owed_used.get(key, 0)) + order.instances[key]
            want[purchase] = kept[key] + new + (warned[key] if new else 0)
        if not state.may_try(f"target:{pool.key}", now):
            continue
        if _differs(pool, want[Purchase.SPOT], want[Purchase.ON_DEMAND]):
            actions.append(SetTarget(pool.key, want[Purchase.SPOT], want[Purchase.ON_DEMAND], late))
    return sorted(actions, key=lambda action: _grows(state.pools[action.pool], action))


def _grows(pool: Pool, action: SetTarget) -> bool:
    return action.spot_target + action.on_demand_target > pool.target


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
