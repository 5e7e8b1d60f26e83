"""Are a run's caps on money too low to be of use? Its submitter is warned at once; the run is accepted all the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from argosy.market.offers import offers_of, resources_of
from argosy.model.instance_types import InstanceType
from argosy.model.policy import Policy
from argosy.model.pools import Pool
from argosy.model.run_terms import RunTerms
from argosy.model.wording import dollars

ALWAYS = float("inf")  # pools that are cooling off count as well
USUALLY = "-"  # cell and zone of a pool that stands for its type everywhere


def money_warnings(
    form: Mapping[str, Any],
    pools: Sequence[Pool],
    types: Iterable[str],
    catalogue: Mapping[str, InstanceType],
    policy: Policy,
) -> list[str]:
    """Sentences that compare a run's caps with the cheapest instance that could take one of its tasks.

    form: the JSON form of its spec. Compared are the offers of `pools` or, before the first look at the market, of
    `types` at their usual prices. A spec that names a task definition gets no warning: its needs are not known here.
    """
    terms = RunTerms.of(form)
    offers = [] if form.get("taskDefinition") is not None else list(_able(terms, pools, types, catalogue, policy))
    if not offers:
        return []
    price, name = min(offers)
    cheapest = f"the cheapest instance that could take a task ({name}, about {dollars(price)} an hour)"
    said, hourly, budget = [], terms.max_hourly_usd, terms.budget_usd
    if hourly is not None and hourly < price:
        said.append(f"capacity.maxHourlyCost: {dollars(hourly)} an hour is below {cheapest}: nothing can be bought")
    if budget is not None and budget < price:
        said.append(f"capacity.budgetUsd: {dollars(budget)} is less than an hour of {cheapest}: what fits is bought")
    return said


def _able(
    terms: RunTerms,
    pools: Sequence[Pool],
    types: Iterable[str],
    catalogue: Mapping[str, InstanceType],
    policy: Policy,
) -> Iterator[tuple[float, str]]:
    """(USD an hour, instance type) of every offer that has room for a task."""
    usual = [Pool(USUALLY, name, USUALLY, USUALLY) for name in types]
    for offer in offers_of(pools or usual, catalogue, ALWAYS, policy):
        if terms.purchase.allows(offer.purchase) and terms.needs.fits_in(resources_of(catalogue[offer.instance_type])):
            yield offer.price_usd_per_hour, offer.instance_type
