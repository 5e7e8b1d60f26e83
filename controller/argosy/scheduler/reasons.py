"""What is a user told about tasks for which nothing could be bought?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from argosy.market.buy import hypothetical
from argosy.market.cover import tasks_per_instance
from argosy.market.offers import clock, offers_of, rejected
from argosy.model.instance_types import InstanceType
from argosy.model.instances import Purchase
from argosy.model.policy import Policy
from argosy.model.pools import Offer
from argosy.model.state import State
from argosy.placement.demand import Batch
from argosy.placement.explain import Explanation, explain
from argosy.placement.supply import Supply
from argosy.scheduler.places import group_is_running

USUAL = Policy()
HELD_BY = "held back by "
HELD_BACK = f"{HELD_BY}a limit on instances: maxInstances of the run, or that of the deployment"


def market_answer(batch: Batch, offers: Sequence[Offer]) -> Explanation:
    """What empty instances of every offer would say to one task of the batch."""
    rows = [hypothetical(offer, number) for number, offer in enumerate(offers)]
    return explain(replace(batch, count=1), Supply.of(rows))


def why_nothing_is_bought(
    state: State,
    batch: Batch,
    catalogue: Mapping[str, InstanceType],
    now: float,
    policy: Policy = USUAL,
    limit: str = "",
) -> str:
    """Nothing that could ever hold it, a limit, or every pool that could is short or too dear: in that order. `limit`:
    the one that held the order back, if that is known."""
    everything = offers_of(state.pools.values(), catalogue, float("inf"))
    if not everything:
        return "this deployment has no fleets yet"
    if sentence := _company(state, batch, everything):
        return sentence
    if not market_answer(batch, everything).fits:
        return market_answer(batch, everything).sentence()
    if market_answer(batch, offers_of(state.pools.values(), catalogue, now, policy)).fits:
        return f"{HELD_BY}{limit}" if limit else HELD_BACK
    fits = tasks_per_instance(replace(batch, count=1), everything).tolist()
    return _out_of_reach(state, [o for o, tasks in zip(everything, fits, strict=True) if tasks], catalogue, now, policy)


def _out_of_reach(
    state: State, able: Sequence[Offer], catalogue: Mapping[str, InstanceType], now: float, policy: Policy
) -> str:
    """What keeps those offers from being made now: cool-offs, which end by themselves, and price caps, which do not."""
    short: list[tuple[float, str]] = []
    dear: list[str] = []
    for purchase in Purchase:
        pools = [state.pools[offer.pool] for offer in able if offer.purchase is purchase]
        refused = dict(rejected(pools, catalogue, now, policy, purchase))
        for pool in pools:
            until = pool.short_until if purchase is Purchase.SPOT else pool.on_demand_short_until
            if until > now:
                short.append((until, f"{pool.instance_type} in {pool.zone}: {pool.short_reason}"))
            elif pool.key in refused:
                dear.append(f"{pool.instance_type} in {pool.zone} ({purchase}): {refused[pool.key]}")
    above = f"the price caps of this deployment leave nothing that could hold it, e.g. {dear[0]}" if dear else ""
    if not short:
        return above
    until, last = min(short)
    also = f"; {len(dear)} offers are above the price caps" if dear else ""
    return f"the pools that could hold it are short of capacity; tried again at {clock(until)} ({last}){also}"


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
