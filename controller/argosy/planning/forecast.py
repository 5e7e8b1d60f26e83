"""The forecast of a run on the cluster as it is: what is bought, when the run ends, and its cost.

The scheduler's own placing and buying on a copy of the state (DESIGN D1), and a closed form for the time from then on.
Runs that were submitted earlier keep what they have and are bought for first; what they release later is not counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from argosy.market.cover import tasks_per_instance
from argosy.market.daemons import daemons_of
from argosy.market.offers import offers_of, rate_of
from argosy.market.risk import redo_share
from argosy.model.instances import LEAST_BILLED_S, Purchase
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.pools import Offer, as_registered
from argosy.model.run_record import RunRecord
from argosy.model.run_terms import RunTerms
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.placement.arrays import AnyArray
from argosy.placement.demand import Batch
from argosy.placement.fitness import Candidates, Fitness
from argosy.placement.strategy import own_functions
from argosy.planning.schedule import Completion, EqualTasks, InstanceGroup, completion
from argosy.scheduler.buying.orders import MarketView, order_for
from argosy.scheduler.placing.places import Places, assign
from argosy.scheduler.placing.run_places import RunPlaces
from argosy.scheduler.supply.roster import Roster

GUESS_S = 60.0
# How far the mean of the next run may be from the known one. Our choice: runs on the same images and data agree to
# within a half; a person's estimate is off by a factor of two; a guess, by a factor of ten.
AFTER_PAST, AFTER_ESTIMATE, AFTER_NOTHING = (0.67, 1.5), (0.5, 2.0), (0.1, 10.0)
_PAST_RUNS = 20  # the newest that count


@dataclass(frozen=True, slots=True)
class Seconds:
    """Mean seconds of one task with a range, and where they come from."""

    low: float
    expected: float
    high: float
    source: str


def seconds_of(terms: RunTerms, records: Iterable[RunRecord]) -> Seconds:
    """Of a run with these terms. records: of earlier runs, newest first; those of other names do not count, and shards
    of another size count in proportion."""
    past = [record for record in records if record.name == terms.name and record.ended][:_PAST_RUNS]
    ended = sum(record.ended for record in past)
    if ended:
        mean = sum(record.ended_seconds * _scale(record, terms) for record in past) / ended
        runs = "an earlier run" if len(past) == 1 else f"{len(past)} earlier runs"
        return _spread(mean, AFTER_PAST, f"{ended:,} tasks of {runs} took {mean:,.1f} s on average")
    estimate = terms.expected_seconds
    if estimate:
        return _spread(estimate, AFTER_ESTIMATE, f"array.expectedSeconds says {estimate:,.1f} s")
    return _spread(
        GUESS_S,
        AFTER_NOTHING,
        f"unknown: {GUESS_S:.0f} s is assumed; set array.expectedSeconds for a useful forecast",
    )


def pulled_s(records: Iterable[RunRecord], image: str) -> float | None:
    """The mean pull of the image by earlier runs that pulled it; None = none did. records: newest first."""
    seen = [each.start_ups for each in records if each.image == image and each.start_ups.pulls][:_PAST_RUNS]
    return sum(each.pull_s for each in seen) / sum(each.pulls for each in seen) if seen else None


def _scale(record: RunRecord, terms: RunTerms) -> float:
    """How many times larger a shard of this run is than one of the earlier run."""
    was, is_now = record.shard_size, terms.shard_size
    return is_now / was if was and is_now else 1.0


def _spread(mean: float, around: tuple[float, float], source: str) -> Seconds:
    mean = max(mean, 0.1)  # tasks that take no time would need no instance
    return Seconds(mean * around[0], mean, mean * around[1], source)


# The assumptions of a low and a high forecast, besides quick and slow tasks. Boots, in units of the policy's boot_s:
# from an instance that needs no image to one that pulls a large one.
_QUICK_BOOTS, _SLOW_BOOTS = 0.4, 1.5
# The price at which an instance will be bought, as a share of what is known: a typical price, or one that was seen and
# may change until the order.
_AROUND_TYPICAL, _AROUND_SEEN = (0.8, 1.2), (0.9, 1.1)
_TAKEN_AT_THE_END = 3  # spot instances, in the high forecast: one zone's storm over a small run, noise for a large one
PULL_BYTES_PER_S = 50 * 1024 * 1024  # compressed bytes that a large instance pulls and unpacks; assumed, not measured
ECS_LAUNCHES_PER_S = 40.0  # of one cell: aws.md, ECS's rate for starting tasks


@dataclass(frozen=True, slots=True)
class Bundle:
    """Instances of one pool, and how many of the run's tasks each takes at a time."""

    offer: Offer
    instances: int
    places: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """Instances to buy for a run, and when it would be done: at best, as expected, at worst."""

    tasks: int
    here: int  # places on instances that are here or on their way
    bought: tuple[Bundle, ...]
    low: Completion
    expected: Completion
    high: Completion

    @property
    def places(self) -> int:
        """How many tasks could run at a time."""
        return self.here + sum(each.instances * each.places for each in self.bought)

    @property
    def possible(self) -> bool:
        """Whether anything could run its tasks."""
        return not self.tasks or self.places > 0


@dataclass(frozen=True, slots=True)
class _ForecastCase:
    """The assumptions of one of the three forecasts."""

    task_s: float
    boots: float  # how long an instance takes to boot, in units of the policy's boot_s
    redo: float  # share of the work that interruptions have done again


def pull_seconds(image_bytes: int) -> float:
    """How long a new instance pulls and unpacks an image of this size, compressed; 0 = unknown, and not counted."""
    return image_bytes / PULL_BYTES_PER_S


def forecast(
    moment: Moment, run: Run, seconds: Seconds, offers_at: float | None = None, pull_s: float = 0.0
) -> Forecast:
    """`run` is one of the state's, prepared. The state is left as it is. offers_at: the time whose offers count, if it
    differs from `moment.now`; infinity includes the pools that are cooling off. pull_s: added to the boot of instances
    to buy; present ones are taken to have the image."""
    policy, pools = moment.policy, moment.state.pools.values()
    at_once = replace(policy, growth_per_tick=policy.max_instances)
    policy = replace(policy, boot_s=policy.boot_s + pull_s)  # the purchase itself is the controller's, without it
    moment = replace(moment, catalogue=as_registered(moment.catalogue, pools), policy=at_once)
    fitness = _constant_fitness(moment.state)
    places = assign(moment, Roster(), fitness)
    mine = next(its for its in places.runs if its.run.id == run.id)
    offers = offers_of(
        pools, moment.catalogue, offers_at or moment.now, at_once, seconds.expected, daemons_of(moment.state)
    )
    left = [mine.left_over, *([mine.ordinary] if run.terms.on_demand_base and mine.ordinary else [])]
    after = MarketView(_after_others(moment, places, mine, offers), fitness, offers)
    order = order_for(after, _only(places, mine, left))
    bought = _bought(order.instances, left, offers)
    asked = run.tasks.startable_count(math.inf) if run.terms.on_demand_base else mine.batch.count
    here = asked - sum(batch.count for batch in left)
    groups = _groups(moment.state, run, bought, here)
    cheap, expensive = (_repriced(moment, groups, bought, end) for end in (0, 1))
    quick = _ForecastCase(seconds.low, boots=_QUICK_BOOTS, redo=0.0)
    redo = _redo(moment, bought, at_risk_s(run.terms, seconds.expected))
    return Forecast(
        tasks=run.task_count,
        here=here,
        bought=bought,
        low=_completion(run, _shared(cheap) if _has_company(moment.state, run) else cheap, policy, quick),
        expected=_completion(run, groups, policy, _ForecastCase(seconds.expected, boots=1.0, redo=redo)),
        high=_high(run, expensive, policy, _ForecastCase(seconds.high, boots=_SLOW_BOOTS, redo=2 * redo), bought),
    )


def _constant_fitness(state: State) -> dict[str, Fitness]:
    """Users' own functions as constants: they order instances and do not influence purchases."""
    names = {name for run in state.runs.values() for name in own_functions(run.terms.strategy)}
    return dict.fromkeys(names, _all_equal)


def _all_equal(candidates: Candidates) -> AnyArray:
    return np.ones(len(candidates.price_usd_per_hour))


def _only(places: Places, mine: RunPlaces, left: Sequence[Batch]) -> Places:
    """What is left over of one run alone, each batch of it within its cap on money an hour."""
    cap = mine.run.terms.max_hourly_usd
    alone = replace(mine, usd_room=math.inf if cap is None else cap, ordinary=None)
    return replace(places, runs=tuple(replace(alone, left_over=batch) for batch in left))


def _after_others(moment: Moment, places: Places, mine: RunPlaces, offers: list[Offer]) -> Moment:
    """With the deployment's limit less what the runs before this one are bought first."""
    before = places.runs[: places.runs.index(mine)]
    if not any(its.left_over.count for its in before):
        return moment
    after = (replace(its, left_over=replace(its.left_over, count=0)) for its in places.runs[len(before) :])
    first = replace(places, runs=(*before, *after))
    theirs = order_for(MarketView(moment, _constant_fitness(moment.state), offers), first).instances.total()
    return replace(moment, policy=replace(moment.policy, max_instances=moment.policy.max_instances - theirs))


def _bought(
    instances: Counter[tuple[str, Purchase]], batches: Sequence[Batch], offers: list[Offer]
) -> tuple[Bundle, ...]:
    """batches: of one run; each instance is for one of them."""
    chosen = [offer for offer in offers if instances[offer.pool, offer.purchase]]
    fits = np.max([tasks_per_instance(batch, chosen) for batch in batches], axis=0).tolist()
    return tuple(
        Bundle(offer, instances[offer.pool, offer.purchase], places) for offer, places in zip(chosen, fits, strict=True)
    )


def _groups(state: State, run: Run, bought: tuple[Bundle, ...], here: int) -> list[InstanceGroup]:
    """`_completion` fills in `ready_s` of the purchases: 1 means one boot."""
    groups = [
        InstanceGroup(
            each.instances, each.places, each.offer.price_usd_per_hour, ready_s=1.0, least_paid_s=LEAST_BILLED_S
        )
        for each in bought
    ]
    if here:
        groups.append(InstanceGroup(here, 1, _price_of_a_place(state, run)))
    return groups


def _repriced(moment: Moment, groups: list[InstanceGroup], bought: tuple[Bundle, ...], end: int) -> list[InstanceGroup]:
    """The same groups at the lowest (end 0) or highest (1) prices at which they may be bought; present instances keep
    their prices."""
    factors = [_around(moment, each.offer)[end] for each in bought] + [1.0] * (len(groups) - len(bought))
    return [
        replace(group, price_usd_per_hour=group.price_usd_per_hour * factor)
        for group, factor in zip(groups, factors, strict=True)
    ]


def _around(moment: Moment, offer: Offer) -> tuple[float, float]:
    if offer.purchase is not Purchase.SPOT:
        return 1.0, 1.0
    return _AROUND_SEEN if moment.state.pools[offer.pool].priced_at else _AROUND_TYPICAL


def _has_company(state: State, run: Run) -> bool:
    """Whether other runs are open that may use the same instances."""
    return any(not each.done for each in state.runs.values() if each.id != run.id)


def _shared(groups: list[InstanceGroup]) -> list[InstanceGroup]:
    """The same groups where other runs use, and pay for, the rest of each instance's first minute."""
    return [replace(group, least_paid_s=0.0) for group in groups]


def _price_of_a_place(state: State, run: Run) -> float:
    """USD an hour for one task's part of the present instances, on average."""
    able = [i for i in state.instances.values() if i.placeable and run.needs.fits_in(i.size)]
    prices = [run.needs.share_of(i.size) * i.price_usd_per_hour for i in able]
    return sum(prices) / len(prices) if prices else 0.0


def _completion(run: Run, groups: list[InstanceGroup], policy: Policy, case: _ForecastCase) -> Completion:
    booted = [replace(group, ready_s=group.ready_s * case.boots * policy.boot_s) for group in groups]
    each_s = (case.task_s + policy.start_s) * (1 + case.redo)
    tasks = EqualTasks(run.task_count, each_s, policy.machine_programs or None)
    return completion(tasks, booted, policy.linger_s, ECS_LAUNCHES_PER_S)


def at_risk_s(terms: RunTerms, task_s: float) -> float:
    """The most seconds of work that an interruption of a task repeats."""
    return min(task_s, terms.checkpoint_s) if terms.checkpoint_s else task_s


def _redo(moment: Moment, bought: tuple[Bundle, ...], risked_s: float) -> float:
    """The share of the work that interruptions are expected to repeat, on average over the purchases. risked_s: the
    most that one of them repeats."""
    spot = [each for each in bought if each.offer.purchase.may_be_taken_back]
    rates = [rate_of(moment.state.pools[each.offer.pool], moment.now, moment.policy) for each in spot]
    shares = [each.instances * float(redo_share(rate, risked_s)) for each, rate in zip(spot, rates, strict=True)]
    return sum(shares) / max(1, sum(each.instances for each in bought))


def _high(
    run: Run, groups: list[InstanceGroup], policy: Policy, case: _ForecastCase, bought: tuple[Bundle, ...]
) -> Completion:
    """On spot, a few instances are also reclaimed during their last tasks."""
    worst = _completion(run, groups, policy, case)
    spot = [each for each in bought if each.offer.purchase.may_be_taken_back]
    if not spot:
        return worst
    again_s = case.task_s + policy.start_s + case.boots * policy.boot_s
    highest_usd = max(group.price_usd_per_hour for group, _ in zip(groups, bought, strict=False))
    replaced = min(_TAKEN_AT_THE_END, sum(each.instances for each in spot))
    return replace(
        worst,
        seconds=worst.seconds + again_s,
        cost_usd=worst.cost_usd + replaced * highest_usd * max(LEAST_BILLED_S, again_s) / 3600,
    )
