"""Fleet targets and terminations that follow from an order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from argosy.market.order import Order
from argosy.market.release import ends_daemons_first, releasable
from argosy.model.actions import LetGo, SetTarget, Terminate
from argosy.model.instances import Instance, Purchase
from argosy.model.moment import Moment
from argosy.model.pools import NO_FLOOR, Pool
from argosy.model.setbacks import Act
from argosy.model.state import State
from argosy.scheduler.buying.orders import OrderedPlaces
from argosy.scheduler.placing.places import NO_PLACES, Places
from argosy.scheduler.supply.kept_instances import idle_yields


@dataclass(frozen=True, slots=True)
class Departures:
    """The result of `what_goes`, the fifth phase of a tick.

    Example: i-7 has been idle for longer than it lingers. Then `leaving` is {"i-7"}, and `actions` lowers the target of
    its fleet by one before it terminates i-7.
    """

    leaving: frozenset[str]  # instance ids
    actions: Sequence[SetTarget | Terminate | LetGo]


def what_goes(moment: Moment, ordered: OrderedPlaces, *, keep_placeable: bool) -> Departures:
    """keep_placeable: keep instances that could take tasks, because services need places in the next tick."""
    places = ordered.places
    useless = idle_yields(moment, places.wanted) if moment.state.keeps_instances else frozenset()
    leaving = leaving_instances(moment, places.wanted, places.no_linger | useless)
    if keep_placeable:
        leaving = [instance for instance in leaving if not instance.placeable]
    actions = (*targets(moment, places, ordered.order, leaving), *departures(moment, leaving))
    return Departures(frozenset(instance.id for instance in leaving), actions)


def targets(
    moment: Moment, places: Places, order: Order, leaving: Sequence[Instance], *, to_zero: bool = False
) -> list[SetTarget]:
    """The absolute targets that differ from the last requested or acknowledged ones. Decreases come first.

    Target = instances held and kept + ordered ones that the demand or a floor still needs + new ones.

    - A pool that has owed us instances for too long loses its order and cools off.
    - A fleet counts warned instances until they end. While replacements are ordered, they are added to the target, so
      that the replacements come at once.
    - EC2 replaces no on-demand instance. A target above what is there is an order, and stays until EC2 has answered it.
    - A surplus fleet of a pool gets the target 0.
    - The target of a pool in a closed cell is 0, whatever it holds: this ends nothing and replaces nothing.
    - No target rises by more than the order, whatever the state records as held (`_RiseLimits`).

    to_zero: all targets are 0, whatever they hold.
    """
    state = moment.state
    kept, warned = Counter(moment.held), Counter(moment.warned)
    kept.subtract((i.pool, i.purchase) for i in leaving if i.counts_for_target and state.is_of_pool(i))
    # The fleets of the leaving instances must not replace them.
    warned.subtract((i.pool, i.purchase) for i in leaving if state.is_counted_by_fleet_alone(i))
    rises = _RiseLimits(moment, order)
    actions = []
    for pool in sorted(state.pools.values(), key=lambda p: p.key):
        if not state.may_try(Act.TARGET, pool.key, moment.now) or not _may_be_steered(state, pool):
            continue
        actions += [SetTarget(pool.key, 0, 0, fleet_id=fleet_id) for fleet_id in pool.surplus]
        late = bool(pool.ordered_since) and moment.now - pool.ordered_since >= moment.policy.order_patience_s
        want = {}
        for purchase in Purchase:
            key = pool.key, purchase
            new = (0 if late else places.owed_used.get(key, 0) + order.kept[key]) + order.instances[key]
            replaced = warned[key] if new else 0
            wanted = 0 if to_zero or pool.closed else kept[key] + new + replaced
            want[purchase] = rises.at_most(pool, purchase, wanted, replaced)
        late = late or bool(pool.on_demand_count and (pool.closed or places is NO_PLACES))
        if pool.on_demand_count and not late:
            want[pool.ordered_as] = pool.on_demand_target
        may_differ = bool(pool.fleet_id or pool.reservation)
        if may_differ and _differs(pool, want[Purchase.SPOT], want[pool.ordered_as]):
            actions.append(SetTarget(pool.key, want[Purchase.SPOT], want[pool.ordered_as], late))
    return sorted(actions, key=lambda action: _grows(state.pools[action.pool], action))


class _RiseLimits:
    """Limits on how far targets may rise: the last guard before money is spent. It counts orders and ignores the
    instances that the state records as held. Otherwise every decision would buy again an instance that a fleet does not
    count."""

    def __init__(self, moment: Moment, order: Order) -> None:
        self._order, self._room = order, moment.instances_left()

    def at_most(self, pool: Pool, purchase: Purchase, wanted: int, replaced: int) -> int:
        """`wanted`, limited in two ways. Above the present target (ours or EC2's, whichever is higher) it adds no
        more than the ordered and replacement instances; all fleets together stay within max_instances."""
        spot = purchase is Purchase.SPOT
        target = max(pool.spot_target, pool.confirmed_spot) if spot else pool.on_demand_target
        now, ordered = max(0, target), self._order.instances[pool.key, purchase]
        rise = min(max(0, wanted - now), ordered + replaced)
        bought = min(rise, ordered)
        over = max(0, bought - max(0, self._room))
        self._room -= bought - over
        return min(wanted, now + rise - over)


def _may_be_steered(state: State, pool: Pool) -> bool:
    """False while stored documents are lost and no sweep has shown what exists."""
    return not state.losses.blind or pool.cell in state.losses.seen


def _grows(pool: Pool, action: SetTarget) -> bool:
    return not action.fleet_id and action.spot_target + action.on_demand_target > pool.target


def departures(moment: Moment, leaving: Sequence[Instance]) -> list[Terminate | LetGo]:
    """Daemons end before their instances do."""
    first = tuple(instance.id for instance in leaving if ends_daemons_first(moment, instance))
    by_cell: dict[str, list[str]] = {}
    for instance in leaving:
        if instance.id not in first:
            by_cell.setdefault(instance.cell, []).append(instance.id)
    terminations = [Terminate(cell, tuple(ids)) for cell, ids in sorted(by_cell.items())]
    return [*terminations, *([LetGo(first)] if first else [])]


def let_go(moment: Moment, *, down: bool) -> list[SetTarget | Terminate | LetGo]:
    """Targets while nothing may be bought: they fall to the held instances, and idle instances are released.

    down: the deployment is shutting down. Then no minimum size holds, and every target is 0, which ends nothing and
    replaces nothing: any other target might be higher than the one that the teardown has set in the meantime.
    """
    if down:
        policy = replace(moment.policy, min_instances=0, min_idle=0)
        moment = replace(moment, policy=policy, state=replace(moment.state, floor=NO_FLOOR))
    leaving = leaving_instances(moment)
    return [*targets(moment, NO_PLACES, Order(), leaving, to_zero=down), *departures(moment, leaving)]


def leaving_instances(
    moment: Moment, wanted: Collection[str] = frozenset(), no_linger: Collection[str] = frozenset()
) -> list[Instance]:
    """The instances to terminate now. wanted: ids of those that stay. no_linger: ids of those that go as soon as
    they idle."""
    losses = moment.state.losses
    going = releasable(moment, wanted, no_linger)
    return [instance for instance in going if not losses.blind or instance.cell in losses.seen]


def _differs(pool: Pool, spot: int, on_demand: int) -> bool:
    """An open order is sent again until EC2 answers."""
    targets = pool.spot_target, pool.on_demand_target
    return (spot, on_demand) != targets or not pool.confirmed or pool.on_demand_count > 0
