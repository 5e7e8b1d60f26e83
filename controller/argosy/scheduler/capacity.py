"""Which fleet targets and terminations follow from the places: grow for the backlog, shrink when it is gone?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from argosy.market.buy import NO_FITNESS, Order, buy
from argosy.market.cover import tasks_per_instance
from argosy.market.limits import Choice, Headroom
from argosy.market.offers import over_zones
from argosy.market.release import releasable
from argosy.model.actions import SetTarget, Terminate
from argosy.model.instance_types import InstanceType
from argosy.model.instances import Instance, Purchase
from argosy.model.policy import Policy
from argosy.model.pools import Offer, Pool
from argosy.model.state import State
from argosy.placement.fitness import Fitness
from argosy.scheduler.bounds import limits_of, promised_by_fleets, room_and_bounds
from argosy.scheduler.places import Places

NO_PLACES = Places((), (), (), frozenset(), {}, (), (), ())


def order_for(
    state: State,
    places: Places,
    offers: Sequence[Offer],
    catalogue: Mapping[str, InstanceType],
    policy: Policy,
    fitness: Mapping[str, Fitness] = NO_FITNESS,
) -> Order:
    """What to buy for the demand that is left over, and to bring the cluster to its least size."""
    room, bounds = room_and_bounds(state, catalogue, policy)
    limits = limits_of(state, places, policy)
    order = buy(places.left_over, limits, offers, room, fitness, bounds, state.last_order.patterns)
    if places.runs:
        headroom = Headroom(room, bounds)
        by_name = {(offer.pool, offer.purchase): offer for offer in offers}
        for name in order.instances.elements():
            headroom.take(by_name[name])
        _bring_to_size(state, order, places, offers, headroom, policy)
    return order


def order_in_turn(
    state: State,
    places: Places,
    offers: Sequence[Offer],
    catalogue: Mapping[str, InstanceType],
    policy: Policy,
    fitness: Mapping[str, Fitness] = NO_FITNESS,
) -> tuple[Places, Order]:
    """The order, and the places with what it is for: runs whose lost tasks get no on-demand buy for the others."""
    order = order_for(state, places, offers, catalogue, policy, fitness)
    left_over = tuple(
        places.ordinary.get(row, batch) if uncovered >= batch.count else batch
        for row, (batch, uncovered) in enumerate(zip(places.left_over, order.uncovered, strict=True))
    )
    if left_over == places.left_over:
        return places, order
    places = replace(places, left_over=left_over)
    return places, order_for(state, places, offers, catalogue, policy, fitness)


def _bring_to_size(
    state: State, order: Order, places: Places, offers: Sequence[Offer], headroom: Headroom, policy: Policy
) -> None:
    """To `min_instances`: what fleets owe us beyond the demand first, then the cheapest instances that could take a
    task of the first run that any could."""
    size = sum(instance.counts_for_target for instance in state.instances.values())
    missing = policy.min_instances - size - sum(places.owed_used.values()) - order.instances.total()
    for key, owed in sorted(state.owed().items()) if missing > 0 else ():
        spare = max(0, min(missing, owed - places.owed_used.get(key, 0) - order.instances[key]))
        order.instances[key] += spare
        missing -= spare
    if missing <= 0:
        return
    for batch in places.batches:
        fits = tasks_per_instance(replace(batch, count=1), offers).tolist()
        open_to = [offer for offer, tasks in zip(offers, fits, strict=True) if tasks]
        if added := _cheapest(open_to, missing, headroom):
            order.instances.update((offer.pool, offer.purchase) for offer in added)
            order.usd_per_hour += sum(offer.effective for offer in added)
            order.lower_bound_usd_per_hour = None  # it speaks of the work alone
            return


def _cheapest(offers: Sequence[Offer], most: int, headroom: Headroom) -> list[Offer]:
    """One offer per instance, taken out of `headroom`: the cheapest as far as shares and quotas go, then the next."""
    added: list[Offer] = []
    least_cpu = min((offer.resources.cpu_units for offer in offers), default=0)
    while len(added) < most:
        choice = Choice.of(offers, (most - len(added)) * least_cpu)
        able = sorted((offer for offer in offers if headroom.most(offer, choice)), key=lambda offer: offer.effective)
        if not able:
            break
        for zone in over_zones(able[0], able, most - len(added)):
            if headroom.most(zone, choice):
                headroom.take(zone)
                added.append(zone)
    return added


def targets(
    state: State,
    places: Places,
    order: Order,
    leaving: Sequence[Instance],
    now: float,
    policy: Policy,
    *,
    nothing: bool = False,
) -> list[SetTarget]:
    """The absolute targets that differ from what was wanted or acknowledged.

    Target = instances held and kept + ordered ones that the demand still needs + new ones. A pool that has owed us
    instances for too long gives up what it owes and cools off. What is lowered comes first. A fleet counts instances
    that were warned until they end: while their replacements are ordered they are added, so that these come at once.
    A surplus fleet of a pool is to keep nothing. Whatever we take ourselves to hold, no target rises by more than what
    is ordered (`_Rises`). `nothing`: all are 0, whatever is held.
    """
    kept = state.held()
    kept.subtract((i.pool, i.purchase) for i in leaving if i.counts_for_target and state.in_pools_fleet(i))
    warned = state.warned()
    # Their fleets must not replace them.
    warned.subtract((i.pool, i.purchase) for i in leaving if state.is_counted_by_fleet_alone(i))
    rises = _Rises(state, order, policy)
    actions = []
    for pool in sorted(state.pools.values(), key=lambda p: p.key):
        if not state.may_try(f"target:{pool.key}", now) or not _may_be_steered(state, pool):
            continue
        actions += [SetTarget(pool.key, 0, 0, fleet_id=fleet_id) for fleet_id in pool.surplus]
        late = bool(pool.ordered_since) and now - pool.ordered_since >= policy.order_patience_s
        want = {}
        for purchase in Purchase:
            key = pool.key, purchase
            new = (0 if late else places.owed_used.get(key, 0)) + order.instances[key]
            replaced = warned[key] if new else 0
            wanted = 0 if nothing else kept[key] + new + replaced
            want[purchase] = rises.at_most(pool, purchase, wanted, replaced)
        if pool.fleet_id and _differs(pool, want[Purchase.SPOT], want[Purchase.ON_DEMAND]):
            actions.append(SetTarget(pool.key, want[Purchase.SPOT], want[Purchase.ON_DEMAND], late))
    return sorted(actions, key=lambda action: _grows(state.pools[action.pool], action))


class _Rises:
    """How far may targets rise? The last guard before money is spent, on what was ordered and never on what we believe
    to hold: an instance that a fleet does not count would otherwise be bought once more with every decision."""

    def __init__(self, state: State, order: Order, policy: Policy) -> None:
        self._order, self._promised = order, promised_by_fleets(state)
        alive = sum(instance.alive for instance in state.instances.values())
        self._room = policy.max_instances - alive - self._promised.total()

    def at_most(self, pool: Pool, purchase: Purchase, wanted: int, replaced: int) -> int:
        """`wanted`, or as much of it as may be: beyond what the target is, or as EC2 has it still may be, no more than
        what is ordered and takes the place of `replaced` ones, and all fleets together within max_instances."""
        spot = purchase is Purchase.SPOT
        target, confirmed = (
            (pool.spot_target, pool.confirmed_spot) if spot else (pool.on_demand_target, pool.confirmed_on_demand)
        )
        now, ordered = max(0, target, confirmed), self._order.instances[pool.key, purchase]
        rise = min(max(0, wanted - now), ordered + replaced)
        bought = min(rise, ordered)
        over = max(0, bought - max(0, self._room))
        self._room -= bought - over
        return min(wanted, now + rise - over)


def _may_be_steered(state: State, pool: Pool) -> bool:
    """Where what could not be read has not been seen again, what is there is not known."""
    return not state.losses.blind or pool.cell in state.losses.seen


def _grows(pool: Pool, action: SetTarget) -> bool:
    return not action.fleet_id and action.spot_target + action.on_demand_target > pool.target


def terminations(leaving: Sequence[Instance]) -> list[Terminate]:
    by_cell: dict[str, list[str]] = {}
    for instance in leaving:
        by_cell.setdefault(instance.cell, []).append(instance.id)
    return [Terminate(cell, tuple(ids)) for cell, ids in sorted(by_cell.items())]


def let_go(state: State, now: float, policy: Policy, *, down: bool) -> list[SetTarget | Terminate]:
    """Where nothing may be bought: targets only go down, to what is held, and what idles goes. `down`: the deployment
    is shut down. No least size is kept then, and every target is 0, which ends nothing and replaces nothing: any other
    might be more than what the teardown has made of it meanwhile."""
    if down:
        policy = replace(policy, min_instances=0, min_idle=0)
    leaving = leaving_instances(state, NO_PLACES, now, policy)
    return [*targets(state, NO_PLACES, Order(), leaving, now, policy, nothing=down), *terminations(leaving)]


def leaving_instances(state: State, places: Places, now: float, policy: Policy) -> list[Instance]:
    going = releasable(state, places.wanted, now, policy, places.at_once)
    return [instance for instance in going if not state.losses.blind or instance.cell in state.losses.seen]


def _differs(pool: Pool, spot: int, on_demand: int) -> bool:
    return (spot, on_demand) != (pool.spot_target, pool.on_demand_target) or (spot, on_demand) != (
        pool.confirmed_spot,
        pool.confirmed_on_demand,
    )
