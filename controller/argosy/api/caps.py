"""Are a run's caps on money too low? What no price allows is refused; what may be enough is accepted with a warning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from argosy.market.offers import offers_of, resources_of
from argosy.model.instance_types import InstanceType
from argosy.model.policy import Policy
from argosy.model.pools import Pool
from argosy.model.purchases import PurchaseMode
from argosy.model.resources import Resources
from argosy.model.run_terms import RunTerms
from argosy.model.wording import dollars
from argosy.spec.faults import Fault

ALWAYS = float("inf")  # pools that are cooling off count as well
USUALLY = "-"  # cell and zone of a pool that stands for its type everywhere


@dataclass(frozen=True, slots=True)
class Market:
    """What could be bought: the pools, or, before the first look at the market, the types at their usual prices."""

    pools: Sequence[Pool]
    types: Iterable[str]
    catalogue: Mapping[str, InstanceType]
    policy: Policy

    def cheapest(self, needs: Resources, purchase: PurchaseMode) -> tuple[float, str] | None:
        """(USD an hour, instance type) of the cheapest offer that has room for a task; None when nothing has."""
        usual = [Pool(USUALLY, name, USUALLY, USUALLY) for name in self.types]
        offers = offers_of(self.pools or usual, self.catalogue, ALWAYS, self.policy)
        able = (
            (offer.price_usd_per_hour, offer.instance_type)
            for offer in offers
            if purchase.allows(offer.purchase) and needs.fits_in(resources_of(self.catalogue[offer.instance_type]))
        )
        return min(able, default=None)

    def attempt_usd(self, needs: Resources, purchase: PurchaseMode, attempt_s: float) -> float:
        """What an attempt of so many seconds costs alone on the cheapest instance, its boot and its stop included; 0 if
        that is not known."""
        found = self.cheapest(needs, purchase)
        seconds = self.policy.boot_s + attempt_s + self.policy.wind_down_s
        return found[0] * seconds / 3600 if found else 0.0


def hourly_faults(form: Mapping[str, Any], market: Market) -> list[Fault]:
    """Why the run could never start: its cap on money an hour is below the cheapest instance that could take a task.

    form: the JSON form of its spec. If it names a task definition its needs are not known here, and the controller ends
    the run when it has waited long enough for a lower price (`Policy.unaffordable_patience_s`).
    """
    hourly = RunTerms.of(form).max_hourly_usd
    found = _cheapest_for(form, market)
    if hourly is None or found is None or hourly >= found[0]:
        return []
    sentence = f"{dollars(hourly)} an hour is below {_named(*found)}: nothing could be bought"
    return [Fault("capacity.maxHourlyCost", sentence)]


def budget_warnings(form: Mapping[str, Any], market: Market) -> list[str]:
    """Sentences about a budget that is less than an hour of the cheapest instance: it may be enough."""
    budget = RunTerms.of(form).budget_usd
    found = _cheapest_for(form, market)
    if budget is None or found is None or budget >= found[0]:
        return []
    return [f"capacity.budgetUsd: {dollars(budget)} is less than an hour of {_named(*found)}: what fits is bought"]


def _cheapest_for(form: Mapping[str, Any], market: Market) -> tuple[float, str] | None:
    terms = RunTerms.of(form)
    return None if form.get("taskDefinition") is not None else market.cheapest(terms.needs, terms.purchase)


def _named(price: float, name: str) -> str:
    return f"the cheapest instance that could take a task ({name}, about {dollars(price)} an hour)"
