"""Which pools does a plan leave out, and why? Grouped, because dozens of pools share a reason."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

from argosy.market.daemons import daemons_of
from argosy.market.offers import offers_of, rejected
from argosy.model.instances import Purchase
from argosy.model.pools import Offer
from argosy.model.purchases import PurchaseMode
from argosy.planning.question import PlanQuestion
from argosy.scheduler.buying.reasons import market_answer
from argosy.scheduler.placing.asks import batch_of, shunned_by


def rejected_pools(question: PlanQuestion) -> list[dict[str, Any]]:
    """`reason`, `pools` (how many) and `instanceTypes` of every reason for which pools are not bought from: they make
    no offer, or their instances would not take a task even when empty. The reason with most instance types first."""
    moment, run = question.on_copy(question.form)
    pools, catalogue, now, policy = moment.state.pools.values(), moment.catalogue, moment.now, moment.policy
    batch = batch_of(moment.state, run, math.inf, shunned_by(moment.state))
    found: defaultdict[str, set[str]] = defaultdict(set)
    kind = Purchase.ON_DEMAND if run.terms.purchase is PurchaseMode.ON_DEMAND else Purchase.SPOT
    for pool, reason in rejected(pools, catalogue, now, policy, kind):
        found[reason].add(pool)
    of_type: dict[tuple[object, ...], list[Offer]] = defaultdict(list)
    for offer in offers_of(pools, catalogue, now, policy, daemons=daemons_of(moment.state)):
        if run.terms.purchase.allows(offer.purchase):
            of_type[offer.attributes].append(offer)
    taken: set[str] = set()
    refused: dict[str, str] = {}
    for alike in of_type.values():
        answer = market_answer(batch, alike[:1])
        for offer in alike:
            if answer.fits:
                taken.add(offer.pool)
            else:
                refused.setdefault(offer.pool, "; ".join(reason.detail for reason in answer.reasons))
    for pool, reason in refused.items():
        if pool not in taken:
            found[reason].add(pool)
    rows = [
        {"reason": reason, "pools": len(pools), "instanceTypes": sorted({pool.split("/")[1] for pool in pools})}
        for reason, pools in found.items()
    ]
    return sorted(rows, key=lambda row: (-len(row["instanceTypes"]), str(row["reason"])))
