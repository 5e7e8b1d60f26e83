"""What is bought for tasks that are to be spread over the values of an attribute, such as zones?

ECS spreads over the instances that there are. What is there is what was bought, so each value gets as many of the
tasks as evens out the whole group, at the lowest price within that value. What a value cannot have, for lack of offers
or limits, goes to the others: a spread never leaves a task without an instance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from argosy.market.cover import cover
from argosy.market.limits import BatchLimits, Headroom
from argosy.model.pools import Offer
from argosy.placement.arrays import IntArray, sums
from argosy.placement.demand import Batch
from argosy.placement.supply import Supply


@dataclass(frozen=True, slots=True)
class Spread:
    """tasks: by value, those of the group that run, start now, or wait for an instance on its way."""

    attribute: str
    tasks: Mapping[str, int]

    def also_on(self, supply: Supply, group: str) -> Spread:
        """With the group's tasks on these instances as well."""
        found = supply.attribute(self.attribute)
        counts = sums(found.codes, supply.of_group(group), len(found.values) + 1)
        more = {value: count for value, count in zip((*found.values, ""), counts.tolist(), strict=True) if count}
        return replace(self, tasks=Counter(self.tasks) + Counter(more))


def cover_evenly(
    spread: Spread, batch: Batch, limits: BatchLimits, offers: Sequence[Offer], fits: IntArray, headroom: Headroom
) -> tuple[list[Offer], str]:
    """As `cover.cover`: one offer per instance, taken out of `headroom`, and what holds back the tasks left over."""
    value_of = np.array([dict(offer.attributes).get(spread.attribute, "") for offer in offers], dtype=object)
    cheapest: dict[str, float] = {}
    for value, offer, tasks in zip(value_of.tolist(), offers, fits.tolist(), strict=True):
        if tasks:
            cheapest[value] = min(cheapest.get(value, np.inf), offer.effective / tasks)
    # Ties go to the cheaper value.
    values = sorted(cheapest, key=lambda value: (cheapest[value], value))
    if len(values) < 2 or limits.instances < len(values):
        return cover(batch, limits, offers, fits, headroom)
    here = [spread.tasks.get(value, 0) for value in values]
    picked: list[Offer] = []
    for value, count in zip(values, even_shares(batch.count, here), strict=True):
        found, _ = cover(replace(batch, count=count), limits, offers, np.where(value_of == value, fits, 0), headroom)
        for offer in found:
            limits = limits.after(offer)
        picked += found
    room_of = {(offer.pool, offer.purchase): tasks for offer, tasks in zip(offers, fits.tolist(), strict=True)}
    rest = batch.count - sum(room_of[offer.pool, offer.purchase] for offer in picked)
    if rest <= 0:
        return picked, ""
    more, reason = cover(replace(batch, count=rest), limits, offers, fits, headroom)
    return picked + more, reason


def even_shares(count: int, here: Sequence[int]) -> list[int]:
    """`count` divided so that the sums with `here` are as even as can be; of equal ones the first gets more."""
    order = sorted(range(len(here)), key=lambda place: here[place])
    shares = [0] * len(here)
    for lowest in range(len(order), 0, -1):
        # The highest that is still below the common level decides how many share.
        filled = sum(here[place] for place in order[:lowest]) + count
        level, extra = divmod(filled, lowest)
        if level >= here[order[lowest - 1]]:
            for place in order[:lowest]:
                shares[place] = level - here[place]
            for place in sorted(order[:lowest])[:extra]:
                shares[place] += 1
            break
    return shares
