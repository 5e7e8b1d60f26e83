"""Caps and limits that are too low. One that no task could ever fit is refused; a budget that may be enough gets a
warning.

Every question is about the offers that the scheduler would buy from for the run: its cells, constraints, architecture,
GPUs and purchase options count, and so do the price caps and the closed cells of the deployment.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace

from argosy.catalogue.lookup import load_catalogue
from argosy.lifecycle.apply import apply
from argosy.lifecycle.revival import revive
from argosy.market.fallback import purchases
from argosy.model.damage import FAULTS
from argosy.model.events import RunRetried
from argosy.model.inbox import RetryRequest
from argosy.model.instances import Purchase
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.pools import Offer, as_registered, not_seen_yet
from argosy.model.resources import NOTHING
from argosy.model.run_terms import RunTerms
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.wording import dollars
from argosy.planning.question import with_run
from argosy.scheduler.buying.budget import RunBudget, cheapest_offer, paid_seconds, run_budgets
from argosy.scheduler.buying.whole_limits import WholeLimits
from argosy.scheduler.turns.asks import batch_of
from argosy.spec.faults import Fault


def market_of(state: State, fleets: Iterable[tuple[str, str, str]], now: float, policy: Policy) -> Moment:
    """The current offers. state: the caller's own; fleets (cell, instance type, zone) that no sweep has shown yet are
    added to it."""
    state.pools.update(not_seen_yet(state.pools, fleets))
    return Moment(state, as_registered(load_catalogue(), state.pools.values()), now, policy)


def hourly_faults(terms: RunTerms, market: Moment) -> list[Fault]:
    """Why the run could never start: its cap on money an hour is below the cheapest instance that could take a task.

    If it names a task definition its needs are not known here, and the controller ends the run when it has waited long
    enough for a lower price (`Policy.unaffordable_patience_s`).
    """
    hourly = terms.max_hourly_usd
    found = None if hourly is None else _cheapest_for(terms, market)
    if hourly is None or found is None or hourly >= found.price_usd_per_hour:
        return []
    sentence = f"{dollars(hourly)} an hour is below {_named(found)}: nothing could be bought"
    return [Fault("capacity.maxHourlyCost", sentence)]


def too_low(terms: RunTerms, market: Callable[[], Moment], path: str = "resources") -> list[Fault]:
    """Why no task of the run could ever start: its own hourly cap is too low, or one of its tasks exceeds a whole limit
    of the deployment or of its queue.

    path: what to change for the latter. While the state is unreadable, or for a run that names a task definition, only
    the controller can judge it.
    """
    try:
        moment, run = with_run(market(), terms, terms.needs)
    except FAULTS:
        return []
    told = "" if terms.task_definition else WholeLimits(moment).exceeded(run)
    return [*hourly_faults(terms, moment), *([Fault(path, told)] if told else [])]


def budget_warnings(terms: RunTerms, market: Moment) -> list[str]:
    """Sentences about a budget that is less than an hour of the cheapest instance: it may be enough."""
    budget = terms.budget_usd
    found = None if budget is None else _cheapest_for(terms, market)
    if budget is None or found is None or budget >= found.price_usd_per_hour:
        return []
    return [f"capacity.budgetUsd: {dollars(budget)} is less than an hour of {_named(found)}: Argosy buys what fits"]


def once_retried(run: Run, request: RetryRequest, market: Moment) -> tuple[RunBudget, float] | None:
    """The money of a run once the request is granted, and what one more attempt costs at least, in USD, on an instance
    that is bought for it; infinite if nothing is for sale, 0 if the size of a task is unknown. None for a run without a
    budget, or without a task that would run again.

    Run and state are the caller's own: the run is reopened in them.
    """
    _reopen(run, request, market)
    budget = None if run.terms.budget_usd is None or run.complete else run_budgets(market).get(run.id)
    if budget is None or run.needs == NOTHING:
        return None if budget is None else (budget, 0.0)
    offer = cheapest_offer(market, batch_of(market, run, math.inf, {}, purchases(run, market)))
    seconds = paid_seconds(market.policy, budget.expected_s)
    return budget, offer.price_usd_per_hour * seconds / 3600 if offer else math.inf


def outgrows(before: RunTerms, after: RunTerms, market: Moment) -> bool:
    """Whether instances may be bought for a run with the terms `before`, but none for one with `after`."""
    return _cheapest_for(before, market) is not None and _cheapest_for(after, market) is None


def _reopen(run: Run, request: RetryRequest, market: Moment) -> None:
    """All at once: nothing of it is stored, so that no commit has to hold it."""
    unbounded = replace(market.policy, max_dirty_documents=sys.maxsize, max_dirty_bytes=sys.maxsize)
    apply(market.state, RunRetried(request, run), market.now, unbounded)
    while run.revives:
        revive(market.state, run, unbounded)


def _cheapest_for(terms: RunTerms, market: Moment) -> Offer | None:
    if terms.task_definition:
        return None
    moment, run = with_run(market, terms, terms.needs)
    allowed = frozenset(each for each in Purchase if terms.purchase.allows(each))
    return cheapest_offer(moment, batch_of(moment, run, math.inf, {}, allowed))


def _named(offer: Offer) -> str:
    price = dollars(offer.price_usd_per_hour)
    return f"the cheapest instance that could take a task ({offer.instance_type}, about {price} an hour)"
