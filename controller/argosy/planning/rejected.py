"""Which pools does a plan leave out, and why? Grouped, because dozens of pools share a reason."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from argosy.market.offers import offers_of, rejected
from argosy.model.instances import Purchase
from argosy.model.pools import Offer
from argosy.model.purchases import PurchaseMode
from argosy.model.state import State
from argosy.scheduler.asks import batch_of, shunned_by
from argosy.scheduler.reasons import market_answer

if TYPE_CHECKING:
    from argosy.planning.plan import Planned


def rejected_pools(question: Planned, state: State) -> list[dict[str, Any]]:
    """`reason`, `pools` (how many) and `instanceTypes` of every reason for which a pool is not bought from: it makes no
    offer, or its instances would not take a task even when empty. The most frequent first."""
    copy, run = question.on(state, question.form)
    batch = batch_of(copy, run, float("inf"), shunned_by(copy))
    found: defaultdict[str, set[str]] = defaultdict(set)
    kind = Purchase.ON_DEMAND if run.terms.purchase is PurchaseMode.ON_DEMAND else Purchase.SPOT
    for pool, reason in rejected(copy.pools.values(), question.catalogue, question.now, question.policy, kind):
        found[reason].add(pool)
    of_type: dict[tuple[object, ...], list[Offer]] = defaultdict(list)
    for offer in offers_of(copy.pools.values(), question.catalogue, question.now, question.policy):
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
