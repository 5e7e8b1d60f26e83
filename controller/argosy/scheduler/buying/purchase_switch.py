"""Changes of runs between spot and on-demand, and late runs."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.market.fallback import steered
from argosy.market.offers import tasks_in
from argosy.market.order import Shortfall
from argosy.model.actions import Steer
from argosy.model.instances import Purchase
from argosy.model.moment import Moment
from argosy.model.runs import Run
from argosy.scheduler.buying.orders import OrderedPlaces
from argosy.scheduler.placing.places import Places
from argosy.scheduler.placing.run_places import RunPlaces

OVERDUE_S = 60.0  # EC2 launches available capacity within seconds


def steers(moment: Moment, ordered: OrderedPlaces) -> Iterator[Steer]:
    """Only changes: most ticks have none."""
    placed = {its.run.id: (its, shortfall) for its, shortfall in ordered.runs()}
    for run in moment.state.runs.values():
        if run.done or not run.is_steered:
            continue
        steering = steered(run, moment)  # the steering that this tick uses for placing and buying
        if steering.stance is run.steering.stance:
            waits = run.id in placed and _waits(ordered.places, *placed[run.id])
            short = (_is_short(moment, run) or None) if waits else False
            steering = steered(run, moment, short)
        if steering != run.steering:
            yield Steer(run.id, steering)


def _waits(places: Places, its: RunPlaces, shortfall: Shortfall) -> bool:
    """Whether its tasks wait for the market: for incoming spot instances, for a purchase of this tick, or for any
    offer at all. Tasks held back by a limit do not wait for the market."""
    ordered = [places.owed[name] for name in its.instances & places.owed.keys()]
    held_back = shortfall.tasks if shortfall.reason else 0
    return any(purchase is Purchase.SPOT for _, purchase in ordered) or its.left_over.count > held_back


def _is_short(moment: Moment, run: Run) -> bool:
    """Whether the run's pools were recently short of spot: one cools off, or has owed instances for longer than EC2
    takes to launch them."""
    now, patience_s = moment.now, min(OVERDUE_S, moment.policy.order_patience_s)
    return any(
        pool.short_until > now or (pool.ordered_since and now - pool.ordered_since >= patience_s)
        for pool in moment.state.pools.values()
        if tasks_in(pool, run, moment.policy)
    )
