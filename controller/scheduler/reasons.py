"""What is a user told about tasks for which nothing could be bought?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from controller.catalogue.types import InstanceType
from controller.market.buy import hypothetical
from controller.market.offers import offers_of
from controller.model.pools import Offer
from controller.model.state import State
from controller.placement.demand import Batch
from controller.placement.explain import Explanation, explain
from controller.placement.supply import Supply
from controller.scheduler.places import group_is_running

HELD_BACK = "held back by a limit on instances: maxInstances of the run, or that of the deployment"


def market_answer(batch: Batch, offers: Sequence[Offer]) -> Explanation:
    """What empty instances of every offer would say to one task of the batch."""
    rows = [hypothetical(offer, number) for number, offer in enumerate(offers)]
    return explain(replace(batch, count=1), Supply.of(rows))


def why_nothing_is_bought(state: State, batch: Batch, catalogue: Mapping[str, InstanceType], now: float) -> str:
    """Nothing that could ever hold it, every pool that could is short, or a limit: in that order."""
    everything = offers_of(state.pools.values(), catalogue, float("inf"))
    if not everything:
        return "this deployment has no fleets yet"
    if sentence := _company(state, batch, everything):
        return sentence
    if not market_answer(batch, everything).fits:
        return market_answer(batch, everything).sentence()
    if market_answer(batch, offers_of(state.pools.values(), catalogue, now)).fits:
        return HELD_BACK
    again = min(pool.short_until for pool in state.pools.values() if pool.short_until > now)
    when = datetime.fromtimestamp(again, UTC)
    return f"the pools that could hold it are short of capacity; tried again at {when:%H:%M:%S} UTC"


def _company(state: State, batch: Batch, everything: Sequence[Offer]) -> str:
    """Affinity is met by instances that run the right tasks, and by no new one; "" where it is not the reason."""
    groups = [group for group in batch.affinity if group != batch.group]
    if not market_answer(replace(batch, affinity=()), everything).fits:
        return ""
    if groups:
        return f"runs only next to tasks of {' and '.join(groups)} (affinity): no instance that runs them has room now"
    if batch.group in batch.affinity and group_is_running(state, batch.group):
        return f"keeps to the instance that runs its group {batch.group} (affinity), and that has no room now"
    return ""
