"""What is bought for the demand that is left over, and which fleet targets and terminations follow from it?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from argosy.catalogue.overheads import transfer_usd_per_gb
from argosy.market.buy import NO_FITNESS, Backlog, Order, Shortfall, buy
from argosy.market.limits import AT_ONCE, BatchLimits, Headroom, OrderLimits, QuotaKey, ShareKey, is_quota
from argosy.market.release import ends_daemons_first, releasable
from argosy.model.actions import LetGo, SetTarget, Terminate
from argosy.model.floor import NO_FLOOR
from argosy.model.instances import Instance, Purchase
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.pools import Offer, Patterns, Pool
from argosy.model.runs import Run
from argosy.model.setbacks import What
from argosy.model.state import State
from argosy.placement.fitness import Fitness
from argosy.scheduler.buying.capped_demand import CappedDemand
from argosy.scheduler.buying.least_size import bring_to_size
from argosy.scheduler.buying.purchase_shares import Due, due_instances, instances_left
from argosy.scheduler.placing.places import NO_PLACES, Places, RunPlaces, group_is_running
from argosy.scheduler.turns.caps import quotas_of, usd_of_all, vcpus_left

DEPLOYMENT = "maxInstances of the deployment"
DEPLOYMENT_USD = "the deployment's limit of {:,.2f} USD an hour (argosy queues)"
HOUR_S = 3600.0
USUAL_ATTEMPT_S = 300.0  # until attempts have been seen


def order_for(
    moment: Moment, places: Places, offers: Sequence[Offer], fitness: Mapping[str, Fitness] = NO_FITNESS
) -> Order:
    """What to buy for the demand that is left over."""
    backlog = [Backlog(each.left_over, _limits(moment, places, each), each.spread) for each in places.runs]
    limits, capped = order_limits(moment), None
    if places.dealing is not None and places.dealing.caps is not None:
        capped = CappedDemand.of(
            places.dealing, [each.batch for each in backlog], [e.run.id for e in places.runs], offers
        )
        limits = replace(limits, purses=capped.purses(limits, instances_left(moment)))
        backlog = capped.backlog(backlog, limits.purses)
    order = _bought(moment, places, backlog, offers, limits, fitness, capped)
    return order if capped is None else capped.with_reasons(order)


def _bought(
    moment: Moment,
    places: Places,
    backlog: Sequence[Backlog],
    offers: Sequence[Offer],
    limits: OrderLimits,
    fitness: Mapping[str, Fitness],
    capped: CappedDemand | None,
) -> Order:
    order = buy(backlog, offers, limits, fitness, moment.state.last_order.patterns)
    reached = {each.reason for each in order.shortfalls} & {limits.instances_limit, limits.usd_limit}
    reached |= {limits.instances_limit} if capped is not None and capped.keeps_any else set()
    reached |= {each.reason for each in order.shortfalls if is_quota(each.reason)}
    if places.dealing is None or not reached or not places.dealing.order.is_shared:
        return order
    told = next((each for each in (limits.usd_limit, limits.instances_limit) if each in reached), "")
    due = due_instances(moment, places, [each.batch for each in backlog], offers, limits, capped, told)
    return buy_in_turn(backlog, due, offers, limits, fitness, moment.state.last_order.patterns)


def buy_in_turn(
    backlog: Sequence[Backlog],
    due: Sequence[Due],
    offers: Sequence[Offer],
    limits: OrderLimits,
    fitness: Mapping[str, Fitness],
    patterns: Patterns,
) -> Order:
    """The order for as many tasks of each batch as are due to it. Who is due all that he wants comes first, so that
    what others want more than they are due takes nothing from him."""
    cut = [max(0, each.batch.count - its.tasks) for each, its in zip(backlog, due, strict=True)]
    turn = sorted(range(len(backlog)), key=lambda number: cut[number] > 0)
    asked = [(number, tasks, shut) for number in turn for tasks, shut in due[number].parts(backlog[number].batch.count)]
    parts = [_part(backlog[number], tasks, shut) for number, tasks, shut in asked]
    order = buy(parts, offers, replace(limits, in_turn=True), fitness, patterns)
    found = [Shortfall(0)] * len(backlog)
    for (number, _, _), its in zip(asked, order.shortfalls, strict=True):
        found[number] = Shortfall(found[number].tasks + its.tasks, found[number].reason or its.reason)
    order.shortfalls = [
        Shortfall(its.tasks + less, its.reason or (each.told if less else ""))
        for its, less, each in zip(found, cut, due, strict=True)
    ]
    if any(cut):
        order.lower_bound_usd_per_hour = None  # it speaks of what was due alone
    return order


def _part(backlog: Backlog, tasks: int, shut: frozenset[QuotaKey]) -> Backlog:
    return replace(backlog, batch=replace(backlog.batch, count=tasks), shut=shut)


def order_in_turn(
    moment: Moment, places: Places, offers: Sequence[Offer], fitness: Mapping[str, Fitness] = NO_FITNESS
) -> tuple[Places, Order]:
    """The order, and the places with the batches that it is for: a run whose lost tasks cannot get on-demand buys for
    its other tasks instead. What the cluster lacks of its least size is in the order as well."""
    places, order = _order_for_work(moment, places, offers, fitness)
    headroom = Headroom(order_limits(moment))
    by_name = {(offer.pool, offer.purchase): offer for offer in offers}
    for name in order.instances.elements():
        headroom.take(by_name[name])
    bring_to_size(moment, order, places, offers, headroom)
    return places, order


def _order_for_work(
    moment: Moment, places: Places, offers: Sequence[Offer], fitness: Mapping[str, Fitness]
) -> tuple[Places, Order]:
    order = order_for(moment, places, offers, fitness)
    runs = tuple(
        replace(each, left_over=each.ordinary) if each.ordinary and shortfall.tasks >= each.left_over.count else each
        for each, shortfall in zip(places.runs, order.shortfalls, strict=True)
    )
    if runs == places.runs:
        return places, order
    places = replace(places, runs=runs)
    return places, order_for(moment, places, offers, fitness)


def order_limits(moment: Moment) -> OrderLimits:
    """How many instances more the deployment allows now, and its other limits."""
    policy = moment.policy
    left, usd = instances_left(moment), moment.state.sharing.usd_per_hour
    return OrderLimits(
        instances=min(policy.growth_per_tick, left),
        max_type_share=policy.max_type_share,
        max_cell_share=policy.max_cell_share,
        held_cpu_units=_held_cpu(moment),
        vcpus_left=vcpus_left(moment),
        vcpus=quotas_of(moment.policy),
        instances_limit=AT_ONCE if 0 < policy.growth_per_tick < left else DEPLOYMENT,
        usd_per_hour=math.inf if math.isinf(usd) else max(0.0, usd - usd_of_all(moment)),
        usd_limit=DEPLOYMENT_USD.format(usd),
    )


def _limits(moment: Moment, places: Places, its: RunPlaces) -> BatchLimits:
    """What may be bought for a run."""
    run, policy = its.run, moment.policy
    instances = (
        policy.max_instances if run.terms.max_instances is None else run.terms.max_instances - len(its.instances)
    )
    if run.group in run.terms.affinity:
        instances = min(instances, _one_in_all(moment.state, places, run))
    return BatchLimits(
        instances=instances,
        usd_per_hour=its.usd_room,
        data_cell=policy.data_cell,
        away_usd_per_task_hour=away_usd_per_task_hour(run, policy),
    )


def away_usd_per_task_hour(run: Run, policy: Policy) -> float:
    """What the run's traffic costs for each hour that a task runs in another Region than its data, in USD.

    capacity.transferGbPerTask x the price of a GB between Regions, spread over the time that a task takes.
    """
    gigabytes = run.terms.transfer_gb_per_task
    if not gigabytes or not policy.data_cell:
        return 0.0
    expected = run.terms.expected_seconds or USUAL_ATTEMPT_S
    return gigabytes * transfer_usd_per_gb(policy.data_cell) * HOUR_S / max(1.0, run.mean_seconds(expected) or expected)


def _one_in_all(state: State, places: Places, run: Run) -> int:
    """How many instances may be bought for a group that keeps together: one, unless it has or is promised some."""
    has = any(its.instances for its in places.runs if its.run.group == run.group)
    return 0 if has or group_is_running(state, run.group) else 1


def _held_cpu(moment: Moment) -> Mapping[ShareKey, int]:
    """Cpu units alive or ordered, by type and by cell."""
    cpu: Counter[ShareKey] = Counter()
    for instance in moment.state.instances.values():
        if instance.counts_for_target and (kind := moment.catalogue.get(instance.instance_type)):
            cpu["type", instance.instance_type] += kind.cpu_units
            cpu["cell", instance.cell] += kind.cpu_units
    for (key, _), count in moment.promised.items():
        pool = moment.state.pools[key]
        if kind := moment.catalogue.get(pool.instance_type):
            cpu["type", pool.instance_type] += count * kind.cpu_units
            cpu["cell", pool.cell] += count * kind.cpu_units
    return cpu


def targets(
    moment: Moment, places: Places, order: Order, leaving: Sequence[Instance], *, to_zero: bool = False
) -> list[SetTarget]:
    """The absolute targets that differ from what was wanted or acknowledged. What is lowered comes first.

    Target = instances held and kept + ordered ones that the demand or a floor still needs + new ones.

    - A pool that has owed us instances for too long gives up what it owes and cools off.
    - A fleet counts instances that were warned until they end. While their replacements are ordered, they are added, so
      that the replacements come at once.
    - A surplus fleet of a pool gets the target 0.
    - The target of a pool whose cell is closed is 0, whatever is held: that ends nothing, and replaces nothing.
    - Whatever we believe we hold, no target rises by more than what is ordered (`_Rises`).

    to_zero: all targets are 0, whatever is held.
    """
    state = moment.state
    kept, warned = Counter(moment.held), Counter(moment.warned)
    kept.subtract((i.pool, i.purchase) for i in leaving if i.counts_for_target and state.in_pools_fleet(i))
    # The fleets of those that leave must not replace them.
    warned.subtract((i.pool, i.purchase) for i in leaving if state.is_counted_by_fleet_alone(i))
    rises = _Rises(moment, order)
    actions = []
    for pool in sorted(state.pools.values(), key=lambda p: p.key):
        if not state.may_try(What.TARGET, pool.key, moment.now) or not _may_be_steered(state, pool):
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
        if pool.fleet_id and _differs(pool, want[Purchase.SPOT], want[Purchase.ON_DEMAND]):
            actions.append(SetTarget(pool.key, want[Purchase.SPOT], want[Purchase.ON_DEMAND], late))
    return sorted(actions, key=lambda action: _grows(state.pools[action.pool], action))


class _Rises:
    """How far may targets rise? The last guard before money is spent: it counts what was ordered, never what we believe
    we hold. Otherwise an instance that a fleet does not count would be bought once more with every decision."""

    def __init__(self, moment: Moment, order: Order) -> None:
        self._order, self._room = order, instances_left(moment)

    def at_most(self, pool: Pool, purchase: Purchase, wanted: int, replaced: int) -> int:
        """`wanted`, or as much of it as is allowed: above the present target (ours or EC2's, whichever is higher) no
        more than what is ordered and replaces warned instances, and all fleets together within max_instances."""
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
    """Not where stored documents were lost and no sweep has shown since then what is there."""
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
    """Where nothing may be bought: targets only go down, to what is held, and idle instances go.

    down: the deployment is being shut down. Then no minimum size is kept, and every target is 0, which ends nothing and
    replaces nothing: any other target might be higher than what the teardown has set meanwhile.
    """
    if down:
        policy = replace(moment.policy, min_instances=0, min_idle=0)
        moment = replace(moment, policy=policy, state=replace(moment.state, floor=NO_FLOOR))
    leaving = leaving_instances(moment, NO_PLACES)
    return [*targets(moment, NO_PLACES, Order(), leaving, to_zero=down), *departures(moment, leaving)]


def leaving_instances(moment: Moment, places: Places) -> list[Instance]:
    """The instances to terminate now."""
    losses = moment.state.losses
    going = releasable(moment, places.wanted, places.no_linger)
    return [instance for instance in going if not losses.blind or instance.cell in losses.seen]


def _differs(pool: Pool, spot: int, on_demand: int) -> bool:
    return (spot, on_demand) != (pool.spot_target, pool.on_demand_target) or (spot, on_demand) != (
        pool.confirmed_spot,
        pool.confirmed_on_demand,
    )
