"""By how much does what a sharer used lately raise or lower his weight?

`entitled / used`, between a quarter and four times: who had less than his part of late has a larger weight, who had
more a smaller one. A factor, not the key itself: nobody gets everything until he has caught up, and nobody nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from argosy.model.recent_use import NOTHING, UNIT, Amounts, RecentUse, Sharer
from argosy.sharing.columns import MOST_FACTOR, ONE_FACTOR

LEAST_FACTOR = ONE_FACTOR * ONE_FACTOR // MOST_FACTOR


class Weight(NamedTuple):
    """Of a sharer: that of its queue, and into how many equal parts it is divided."""

    weight: int
    parts: int = 1


def factors(recent: RecentUse, weights: Mapping[Sharer, Weight]) -> dict[Sharer, int]:
    """In parts of ONE_FACTOR, of everybody who has a share now. While nothing is known, all weights are as they are."""
    if not recent.at:
        return dict.fromkeys(weights, ONE_FACTOR)
    in_all = sum({queue: its.weight for (queue, _), its in weights.items()}.values())
    there = _there(recent)
    return {name: _factor(recent.means.get(name), there, its, in_all) for name, its in weights.items()}


def part_used(recent: RecentUse, *sharers: Sharer) -> float:
    """Of the cluster, by these together: of what they used most of, 0..1."""
    used = [sum(amounts) for amounts in zip(*(recent.means.get(each, NOTHING) for each in sharers), strict=True)]
    return max((mean / of for mean, of in zip(used, _there(recent), strict=False) if of), default=0.0)


def _there(recent: RecentUse) -> Amounts:
    """Of what a mean is a part: of the cluster, or, where that was larger before, of what all used lately."""
    used = [sum(amounts) for amounts in zip(*recent.means.values(), strict=True)] or [0, 0, 0]
    return tuple(max(whole * UNIT, lately) for whole, lately in zip(recent.whole, used, strict=True))


def _factor(used: Amounts | None, there: Amounts, its: Weight, in_all: int) -> int:
    """What he used most of decides."""
    if not its.weight:
        return ONE_FACTOR
    found = [
        ONE_FACTOR * its.weight * of // (its.parts * in_all * mean)
        for mean, of in zip(used or (), there, strict=bool(used))
        if mean
    ]
    return max(LEAST_FACTOR, min([MOST_FACTOR, *found]))
