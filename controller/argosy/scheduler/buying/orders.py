"""The order for tasks without a place and for the minimum size of the cluster."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from argosy.catalogue.lookup import transfer_usd_per_gb
from argosy.market.cover import tasks_per_instance
from argosy.market.daemons import daemons_of
from argosy.market.floors import LeastSize, least_sizes, missing
from argosy.market.limits import AT_ONCE, BatchLimits, Choice, Headroom, OrderLimits, QuotaKey, ShareKey, is_quota
from argosy.market.offers import offers_of, over_zones
from argosy.market.order import Backlog, Order, Shortfall, buy
from argosy.model.actions import Launch
from argosy.model.moment import Moment, PoolPurchase
from argosy.model.policy import Policy
from argosy.model.pools import Offer
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.placement.demand import Batch
from argosy.placement.fitness import Fitness
from argosy.scheduler.buying.capped_demand import CappedDemand
from argosy.scheduler.buying.gang_orders import gang_order
from argosy.scheduler.buying.purchase_shares import Demand, Due, due_instances
from argosy.scheduler.buying.reasons import DEPLOYMENT, HELD_BY, why_nothing_is_bought
from argosy.scheduler.buying.refusals import cannot_prove
from argosy.scheduler.buying.trial_instances import reserved_left, trials_left, unproven
from argosy.scheduler.placing.places import Places, group_is_running
from argosy.scheduler.placing.run_places import RunPlaces
from argosy.scheduler.placing.spare_room import HEADROOM, NO_SPARE_ROOM
from argosy.scheduler.turns.caps import quotas_of, usd_of_all, vcpus_left

DEPLOYMENT_USD = "the deployment's limit of {:,.2f} USD an hour (argosy queues)"
HOUR_S = 3600.0
USUAL_ATTEMPT_S = 300.0  # until attempts have been seen


@dataclass(frozen=True)
class MarketView:
    """The offers of one tick. Example: a c5.large on spot in eu-west-1a at 0.031 USD an hour is one offer."""

    moment: Moment
    fitness: Mapping[str, Fitness]  # users' own functions: they affect placement on bought instances, not purchases
    assumed: Sequence[Offer] | None = None  # in place of the present ones

    @cached_property
    def offers(self) -> Sequence[Offer]:
        """The current offers of all pools. In most ticks nothing is bought, and nothing asks for them."""
        if self.assumed is not None:
            return self.assumed
        state, moment = self.moment.state, self.moment
        seconds, daemons = _attempt_seconds(state), daemons_of(state) if state.daemons else ()
        pools = [each for each in state.pools.values() if not cannot_prove(state, each.cell, moment.now)]
        return offers_of(pools, moment.catalogue, moment.now, moment.policy, seconds, daemons)

    def buy(self, backlog: Sequence[Backlog], limits: OrderLimits) -> Order:
        offers = self.offers if any(each.batch.count for each in backlog) else ()
        return buy(backlog, offers, limits, self.fitness, self.moment.state.last_order.patterns)


@dataclass(frozen=True, slots=True)
class OrderedPlaces:
    """The result of `bought`, the fourth phase of a tick.

    Example: 7 tasks of run r1 found no place, and 2 of them no offer within the limits. Then `order.shortfalls[0]` is
    (2 tasks, "maxInstances of the deployment"), and `order.instances` takes the other 5.
    """

    places: Places  # with the batches that the order is for
    order: Order

    def runs(self) -> Iterator[tuple[RunPlaces, Shortfall]]:
        """Each run that asked for places, and its tasks that no purchase covers."""
        return zip(self.places.runs, self.order.shortfalls, strict=True)

    def with_launches(self, *launches: Launch) -> OrderedPlaces:
        """With further launches of this tick."""
        return replace(self, places=replace(self.places, launches=(*self.places.launches, *launches)))


def bought(market: MarketView, places: Places) -> OrderedPlaces:
    """The order for tasks without a place and for the minimum size of the cluster.

    A run whose lost tasks cannot get on-demand buys for its other tasks instead.
    """
    order = order_for(market, places)
    runs = tuple(
        replace(each, left_over=each.ordinary) if each.ordinary and shortfall.tasks >= each.left_over.count else each
        for each, shortfall in zip(places.runs, order.shortfalls, strict=True)
    )
    if runs != places.runs:
        places = replace(places, runs=runs)
        order = order_for(market, places)
    places = _with_spare_room(market, replace(places, wanted=places.wanted | order.beside), order)
    headroom = Headroom(order_limits(market.moment))
    by_name = {(offer.pool, offer.purchase): offer for offer in market.offers} if order.instances else {}
    for name in order.instances.elements():
        headroom.take(by_name[name])
    bring_to_size(market, order, places, headroom)
    return OrderedPlaces(places, order)


def _with_spare_room(market: MarketView, places: Places, order: Order) -> Places:
    """Keep the room for further tasks, and buy what it lacks once nothing is bought for waiting ones.

    While a limit of the deployment holds tasks back, nothing is kept or bought for the headroom, which would be in
    their way. Nor is an instance kept that only runs with caps pay for, because its hours would use up their money.
    """
    moment, spare = market.moment, places.spare
    if spare == NO_SPARE_ROOM:
        return places
    limits = order_limits(moment)
    reasons = (each.reason for each in order.shortfalls if _is_shared(each, limits))
    if held_back := next((reason for reason in reasons if reason != AT_ONCE), ""):
        order.why_no_headroom = f"tasks wait for {held_back}" if spare.lacks_headroom else ""
        return places
    order.kept.update(places.owed[name] for name in spare.instances & places.owed.keys())
    if spare.lacking and not order.instances:
        more = market.buy([Backlog(each, BatchLimits(moment.policy.max_instances)) for each in spare.lacking], limits)
        order.instances.update(more.instances)
        order.usd_per_hour, order.lower_bound_usd_per_hour = more.usd_per_hour, None
        both = zip(spare.lacking, more.shortfalls, strict=True)
        short = [pair for pair in both if pair[1].tasks and pair[0].group.startswith(HEADROOM)]
        told = (why_nothing_is_bought(moment, size, its.reason) for size, its in short if its.reason != AT_ONCE)
        order.why_no_headroom = next(told, "")
    return replace(places, wanted=places.wanted | (spare.instances - places.owed.keys() - places.no_linger))


def order_for(market: MarketView, places: Places) -> Order:
    """The order for the remaining demand. A tick that buys for gangs buys for nothing else."""
    alone = replace(places, runs=tuple(its for its in places.runs if its.run.terms.gang is None))
    if len(alone.runs) == len(places.runs):
        return _order_for(market, places)
    wanted = any(its.left_over.count for its in places.runs if its.run.terms.gang is not None)
    gangs = gang_order(market.moment, places, market.offers if wanted else (), order_limits(market.moment))
    return gangs if gangs.instances else _with_gangs(_order_for(market, alone), gangs, places)


def _with_gangs(order: Order, gangs: Order, places: Places) -> Order:
    """With the reasons of gangs for which nothing can be bought."""
    own, both = iter(order.shortfalls), zip(places.runs, gangs.shortfalls, strict=True)
    order.shortfalls = [next(own) if its.run.terms.gang is None else theirs for its, theirs in both]
    order.kept.update(gangs.kept)
    return order


def _order_for(market: MarketView, places: Places) -> Order:
    """The same for runs without gangs."""
    moment = market.moment
    backlog = [Backlog(each.left_over, _limits(moment, places, each), each.spread) for each in places.runs]
    limits, capped = order_limits(moment), None
    if places.share is not None and places.share.caps is not None:
        wanted, runs = [each.batch for each in backlog], [each.run for each in places.runs]
        capped = CappedDemand.of(places.share, wanted, runs, market.offers)
        limits = replace(limits, purses=capped.purses(limits, moment.instances_left()))
        backlog = capped.backlog(backlog, limits.purses)
    order = _within_limits(market, places, Demand(backlog, limits, capped))
    return order if capped is None else capped.with_reasons(order)


def _within_limits(market: MarketView, places: Places, demand: Demand) -> Order:
    """Buys first as if every run were alone. If that reaches a limit of the deployment, each run buys its share."""
    limits, capped = demand.limits, demand.capped
    order = market.buy(demand.backlog, limits)
    reached = {each.reason for each in order.shortfalls if _is_shared(each, limits)}
    reached |= {limits.instances_limit} if capped is not None and capped.keeps_any else set()
    if places.share is None or not reached or not places.share.order.is_shared:
        return order
    told = next((each for each in (limits.usd_limit, limits.instances_limit) if each in reached), "")
    return _shared_order(market, places, demand, told)


def _is_shared(shortfall: Shortfall, limits: OrderLimits) -> bool:
    """Whether a limit of the deployment held the tasks back, not one of their run or queue."""
    return shortfall.reason in {limits.instances_limit, limits.usd_limit} - {""} or is_quota(shortfall.reason)


def _shared_order(market: MarketView, places: Places, demand: Demand, told: str, again: bool = True) -> Order:
    """Each run buys its share. The part that its own limits keep it from buying is shared among the others, once in a
    tick: an allocation takes long, and in the next tick the runs that are at their limits by then have no part."""
    order = buy_in_turn(market, demand, due_instances(market.moment, places, demand, market.offers, told))
    found, shared = order.shortfalls, [_is_shared(each, demand.limits) for each in order.shortfalls]
    own = [each.tasks if each.reason and not its else 0 for each, its in zip(found, shared, strict=True)]
    if not (again and any(own) and any(shared)):
        return order
    able = [_part(each, each.batch.count - n, each.shut) for each, n in zip(demand.backlog, own, strict=True)]
    order = _shared_order(market, places, replace(demand, backlog=able), told, again=False)
    both = zip(order.shortfalls, own, found, strict=True)
    order.shortfalls = [Shortfall(its.tasks + n, was.reason) if n else its for its, n, was in both]
    order.lower_bound_usd_per_hour = None
    return order


def buy_in_turn(market: MarketView, demand: Demand, due: Sequence[Due]) -> Order:
    """The order for as many tasks of each batch as its share allows. Batches within their share are bought first, so
    that others' excess demand cannot take capacity from them."""
    backlog = demand.backlog
    cut = [max(0, each.batch.count - its.tasks) for each, its in zip(backlog, due, strict=True)]
    turn = sorted(range(len(backlog)), key=lambda number: cut[number] > 0)
    asked = [(number, tasks, shut) for number in turn for tasks, shut in due[number].parts(backlog[number].batch.count)]
    parts = [_part(backlog[number], tasks, shut) for number, tasks, shut in asked]
    order = market.buy(parts, replace(demand.limits, in_turn=True))
    found = [Shortfall(0)] * len(backlog)
    for (number, _, _), its in zip(asked, order.shortfalls, strict=True):
        found[number] = Shortfall(found[number].tasks + its.tasks, found[number].reason or its.reason)
    order.shortfalls = [
        Shortfall(its.tasks + less, its.reason or (each.told if less else ""))
        for its, less, each in zip(found, cut, due, strict=True)
    ]
    if any(cut):
        order.lower_bound_usd_per_hour = None  # the bound covers only the due tasks
    return order


def _part(backlog: Backlog, tasks: int, shut: frozenset[QuotaKey]) -> Backlog:
    return replace(backlog, batch=replace(backlog.batch, count=tasks), shut=shut)


def order_limits(moment: Moment) -> OrderLimits:
    """How many instances the deployment may still add now, and its other limits."""
    policy, quotas = moment.policy, bool(moment.policy.vcpu_quotas)
    left, usd, first = moment.instances_left(), moment.state.sharing.usd_per_hour, unproven(moment)
    return OrderLimits(
        instances=min(policy.growth_per_tick, left),
        max_type_share=policy.max_type_share,
        max_cell_share=policy.max_cell_share,
        held_cpu_units=_held_cpu(moment),
        vcpus_left=vcpus_left(moment) if quotas else {},
        vcpus=quotas_of(policy) if quotas else {},
        instances_limit=AT_ONCE if 0 < policy.growth_per_tick < left else DEPLOYMENT,
        usd_per_hour=math.inf if math.isinf(usd) else max(0.0, usd - usd_of_all(moment)),
        usd_limit=DEPLOYMENT_USD.format(usd),
        reserved=reserved_left(moment),
        trials=trials_left(moment, first),
        unproven=first,
    )


def _limits(moment: Moment, places: Places, its: RunPlaces) -> BatchLimits:
    """The limits of purchases for a run."""
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
    """The cost of the run's traffic per hour that a task runs in another Region than its data, in USD.

    capacity.transferGbPerTask x the price of a GB between Regions, spread over the duration of a task.
    """
    gigabytes = run.terms.transfer_gb_per_task
    if not gigabytes or not policy.data_cell:
        return 0.0
    expected = run.terms.expected_seconds or USUAL_ATTEMPT_S
    return gigabytes * transfer_usd_per_gb(policy.data_cell) * HOUR_S / max(1.0, run.mean_seconds(expected) or expected)


def _one_in_all(state: State, places: Places, run: Run) -> int:
    """How many instances may be bought for a group that keeps together: one, unless it has an instance or waits for
    one."""
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


def _attempt_seconds(state: State) -> float | None:
    """Mean expected seconds of an attempt, the work that an interruption repeats (market/risk.py), over the pending
    tasks of open runs with a known duration; None if there are none."""
    known = [(seconds, run) for run in state.runs.values() if (seconds := _known_seconds(run)) is not None]
    waiting = [int(run.tasks.counts()[TaskStatus.PENDING]) for _, run in known]
    if not sum(waiting):
        return None
    return sum(seconds * count for (seconds, _), count in zip(known, waiting, strict=True)) / sum(waiting)


def _known_seconds(run: Run) -> float | None:
    """The duration of earlier attempts, or else of the spec. A time-out does not indicate a duration."""
    return run.mean_seconds(run.terms.expected_seconds)


def bring_to_size(market: MarketView, order: Order, places: Places, headroom: Headroom) -> None:
    """Add the instances that the floors (`market.floors`) lack to the order, independent of the demand.

    Instances that fleets owe beyond the demand count first, then the cheapest offers of the types that count are
    bought. A floor never exceeds a limit of the deployment: the order then says why the floor is not reached. headroom:
    the rest of the limits after the order.
    """
    moment = market.moment
    for least in least_sizes(moment):
        lacking = missing(moment, least) - _on_its_way(moment, least, (places.owed_used, order.instances, order.kept))
        for key, owed in sorted(moment.owed.items()):
            unused = owed - places.owed_used.get(key, 0) - order.kept[key]
            if lacking > 0 < unused and _is_of(moment, least, key):
                kept = min(lacking, unused)
                order.kept[key] += kept
                lacking -= kept
        if lacking > 0:
            _buy_least(order, _FloorGap(moment, least, lacking, _open_to(least, places, market.offers)), headroom)


def _is_of(moment: Moment, least: LeastSize, key: PoolPurchase) -> bool:
    return least.is_of(moment.state.pools[key[0]].instance_type)


def _on_its_way(moment: Moment, least: LeastSize, counts: Sequence[Mapping[PoolPurchase, int]]) -> int:
    return sum(count for each in counts for key, count in each.items() if _is_of(moment, least, key))


def _open_to(least: LeastSize, places: Places, offers: Sequence[Offer]) -> Sequence[Offer]:
    """The offers that count towards the floor. Without named types, these are the offers for the first run that any
    offer could serve."""
    able = [offer for offer in offers if least.is_of(offer.instance_type)]
    for its in places.runs if not least.types else ():
        fits = tasks_per_instance(replace(its.batch, count=1), able).tolist()
        if useful := [offer for offer, tasks in zip(able, fits, strict=True) if tasks]:
            return useful
    return [] if least.for_work else able


@dataclass(frozen=True, slots=True)
class _FloorGap:
    """Instances that a floor lacks, and the offers that count for it."""

    moment: Moment
    least: LeastSize
    instances: int
    offers: Sequence[Offer]


def _buy_least(order: Order, lacking: _FloorGap, headroom: Headroom) -> None:
    added = _cheapest(lacking.offers, lacking.instances, headroom)
    order.instances.update((offer.pool, offer.purchase) for offer in added)
    order.usd_per_hour += sum(offer.effective for offer in added)
    if added:
        order.lower_bound_usd_per_hour = None  # the bound covers only the demand of tasks
    if len(added) < lacking.instances and not lacking.least.for_work:
        order.why_small = _why_not_more(lacking, headroom)


def _cheapest(offers: Sequence[Offer], most: int, headroom: Headroom) -> list[Offer]:
    """One offer per instance, taken out of `headroom`: the cheapest until a share or a quota is full, then the next."""
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


def _why_not_more(lacking: _FloorGap, headroom: Headroom) -> str:
    """The limit that was reached; "" if the next tick continues."""
    moment, offers = lacking.moment, lacking.offers
    if not offers:
        return why_nothing_is_bought(moment, _smallest(lacking.least))
    cheapest = min(offers, key=lambda offer: offer.effective)
    limit = headroom.why_none(cheapest, Choice.of(offers, cheapest.resources.cpu_units))
    return f"{HELD_BY}{limit}" if limit not in ("", AT_ONCE) else ""


def _smallest(least: LeastSize) -> Batch:
    """The constraint that allows instances of the types."""
    only = (f"attribute:ecs.instance-type in [{', '.join(least.types)}]",) if least.types else ()
    return Batch(1, 1, 0, 1, constraints=only)
