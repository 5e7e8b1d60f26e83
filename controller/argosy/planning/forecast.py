"""What would be bought for a run on the cluster as it is, when would the run end, and at what cost?

The scheduler's own placing and buying on a copy of the state (DESIGN D1), and a closed form for the time from then on.
Runs that were submitted earlier keep what they have and are bought for first; what they let go of later is not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from argosy.market.cover import tasks_per_instance
from argosy.market.offers import as_registered, offers_of, rate_of
from argosy.market.risk import redo_share
from argosy.model.instance_types import InstanceType
from argosy.model.instances import LEAST_BILLED_S, Purchase
from argosy.model.policy import Policy
from argosy.model.pools import Offer
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.placement.arrays import AnyArray
from argosy.placement.demand import Batch
from argosy.placement.fitness import Candidates, Fitness
from argosy.placement.strategy import own_functions
from argosy.planning.durations import Seconds
from argosy.planning.schedule import Course, Crew, course
from argosy.scheduler.capacity import order_for
from argosy.scheduler.places import Places, assign

_TAKEN_AT_THE_END = 3  # spot instances, in the high forecast: one zone's storm over a small run, noise for a large one
ECS_LAUNCHES_PER_S = 40.0  # of one cell: aws.md, ECS's rate for starting tasks


@dataclass(frozen=True, slots=True)
class Bought:
    """Instances of one pool, and how many of the run's tasks each takes at a time."""

    offer: Offer
    instances: int
    places: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """`uncovered`: tasks that nothing here could ever run, if there are any, is all of them."""

    tasks: int
    here: int  # places on instances that are here or on their way
    bought: tuple[Bought, ...]
    low: Course
    expected: Course
    high: Course

    @property
    def places(self) -> int:
        return self.here + sum(each.instances * each.places for each in self.bought)

    @property
    def possible(self) -> bool:
        return not self.tasks or self.places > 0


def forecast(
    state: State,
    run: Run,
    catalogue: Mapping[str, InstanceType],
    now: float,
    policy: Policy,
    seconds: Seconds,
    offers_at: float | None = None,
) -> Forecast:
    """`run` is one of `state`'s, prepared. The state is left as it is. `offers_at`: the time whose offers count, if not
    `now`; infinity includes the pools that are cooling off."""
    at_once = replace(policy, growth_per_tick=policy.max_instances, min_instances=0)
    catalogue = as_registered(catalogue, state.pools.values())
    places = assign(state, catalogue, now, at_once, _no_say(state))
    mine = next(number for number, each in enumerate(places.runs) if each.id == run.id)
    offers = offers_of(state.pools.values(), catalogue, offers_at or now, at_once, seconds.expected)
    left = _after_others(state, places, mine, offers, catalogue, at_once)
    order = order_for(state, _only(places, mine), offers, catalogue, left, _no_say(state))
    bought = _bought(order.instances, places.left_over[mine], offers)
    here = places.batches[mine].count - places.left_over[mine].count
    crews = _crews(state, run, bought, here)
    redo = _redo(state, bought, now, policy, seconds.expected)
    return Forecast(
        tasks=run.task_count,
        here=here,
        bought=bought,
        low=_course(run, _shared(crews), policy, seconds.low, boot=0.5, redo=0.0),
        expected=_course(run, crews, policy, seconds.expected, boot=1.0, redo=redo),
        high=_high(run, crews, policy, seconds.high, 2 * redo, bought),
    )


def _no_say(state: State) -> dict[str, Fitness]:
    """Users' own functions as constants: they order instances and have no say in what is bought."""
    names = {name for run in state.runs.values() for name in own_functions(run.terms.strategy)}
    return dict.fromkeys(names, _as_good_as_any)


def _as_good_as_any(candidates: Candidates) -> AnyArray:
    return np.ones(len(candidates.price_usd_per_hour))


def _only(places: Places, mine: int) -> Places:
    """What is left over of one run alone, within its cap on money an hour."""
    cap = places.runs[mine].terms.max_hourly_usd
    return replace(
        places,
        usd_rooms=() if cap is None else (cap,),
        runs=(places.runs[mine],),
        batches=(places.batches[mine],),
        left_over=(places.left_over[mine],),
        instances_per_run=(places.instances_per_run[mine],),
        coming_per_run=(places.coming_per_run[mine],),
    )


def _after_others(
    state: State,
    places: Places,
    mine: int,
    offers: list[Offer],
    catalogue: Mapping[str, InstanceType],
    policy: Policy,
) -> Policy:
    """The deployment's limit less what the runs before this one are bought first."""
    waiting = [batch if number < mine else replace(batch, count=0) for number, batch in enumerate(places.left_over)]
    if not any(batch.count for batch in waiting):
        return policy
    first = replace(places, left_over=tuple(waiting))
    theirs = order_for(state, first, offers, catalogue, policy, _no_say(state)).instances.total()
    return replace(policy, max_instances=policy.max_instances - theirs)


def _bought(instances: Counter[tuple[str, Purchase]], batch: Batch, offers: list[Offer]) -> tuple[Bought, ...]:
    chosen = [offer for offer in offers if instances[offer.pool, offer.purchase]]
    fits = tasks_per_instance(batch, chosen).tolist()
    return tuple(
        Bought(offer, instances[offer.pool, offer.purchase], places) for offer, places in zip(chosen, fits, strict=True)
    )


def _crews(state: State, run: Run, bought: tuple[Bought, ...], here: int) -> list[Crew]:
    """`ready_s` of what is bought is filled in by `_course`: 1 stands for one boot."""
    crews = [
        Crew(
            each.instances,
            each.places,
            each.offer.price_usd_per_hour,
            ready_s=1.0,
            least_paid_s=LEAST_BILLED_S,
        )
        for each in bought
    ]
    if here:
        crews.append(Crew(here, 1, _price_of_a_place(state, run)))
    return crews


def _shared(crews: list[Crew]) -> list[Crew]:
    """The same crews where others use, and pay for, what is left of each instance's first minute."""
    return [replace(crew, least_paid_s=0.0) for crew in crews]


def _price_of_a_place(state: State, run: Run) -> float:
    """USD an hour of what one task takes of the instances that are here, on average."""
    able = [i for i in state.instances.values() if i.placeable and run.needs.fits_in(i.total)]
    prices = [run.needs.share_of(i.total) * i.price_usd_per_hour for i in able]
    return sum(prices) / len(prices) if prices else 0.0


def _course(run: Run, crews: list[Crew], policy: Policy, task_s: float, boot: float, redo: float) -> Course:
    booted = [replace(crew, ready_s=crew.ready_s * boot * policy.boot_s) for crew in crews]
    pace = ECS_LAUNCHES_PER_S
    each_s = (task_s + policy.start_s) * (1 + redo)
    return course(run.task_count, each_s, booted, policy.linger_s, pace)


def _redo(state: State, bought: tuple[Bought, ...], now: float, policy: Policy, task_s: float) -> float:
    """The share of the work that interruptions are expected to have done again, on average over what is bought."""
    spot = [each for each in bought if each.offer.purchase is Purchase.SPOT]
    rates = [rate_of(state.pools[each.offer.pool], now, policy) for each in spot]
    shares = [each.instances * float(redo_share(rate, task_s)) for each, rate in zip(spot, rates, strict=True)]
    return sum(shares) / max(1, sum(each.instances for each in bought))


def _high(
    run: Run, crews: list[Crew], policy: Policy, task_s: float, redo: float, bought: tuple[Bought, ...]
) -> Course:
    """Boots take twice as long, and on spot a few instances are taken away under their last tasks."""
    worst = _course(run, crews, policy, task_s, boot=2.0, redo=redo)
    if not any(each.offer.purchase is Purchase.SPOT for each in bought):
        return worst
    again_s = task_s + policy.start_s + 2 * policy.boot_s
    spot = [each for each in bought if each.offer.purchase is Purchase.SPOT]
    dearest = max(each.offer.price_usd_per_hour for each in spot)
    replaced = min(_TAKEN_AT_THE_END, sum(each.instances for each in spot))
    return replace(
        worst,
        seconds=worst.seconds + again_s,
        cost_usd=worst.cost_usd + replaced * dearest * max(LEAST_BILLED_S, again_s) / 3600,
    )
