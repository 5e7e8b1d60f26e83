"""How does past use raise or lower a sharer's weight?

The factor is `entitled / used`, from a quarter to four. A sharer that recently had less than its share has a larger
weight, and one that had more has a smaller weight. Because it is a factor and not the sort key, no sharer gets
everything until it has caught up, and none gets nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from argosy.model.shares.recent_use import NOTHING, UNIT, Amounts, RecentUse, Sharer
from argosy.sharing.columns import MOST_FACTOR, ONE_FACTOR

LEAST_FACTOR = ONE_FACTOR * ONE_FACTOR // MOST_FACTOR


class Weight(NamedTuple):
    """The key of a sharer's queue, and the number of equal parts of its weight."""

    weight: int
    parts: int = 1


def factors(recent: RecentUse, weights: Mapping[Sharer, Weight]) -> dict[Sharer, int]:
    """In parts of ONE_FACTOR, for all present sharers. Without a record of past use, weights stay as they are."""
    if not recent.at:
        return dict.fromkeys(weights, ONE_FACTOR)
    in_all = sum({queue: its.weight for (queue, _), its in weights.items()}.values())
    there = _there(recent)
    return {name: _factor(recent.means.get(name), there, its, in_all) for name, its in weights.items()}


def part_used(recent: RecentUse, *sharers: Sharer) -> float:
    """The past use of these sharers together, as their largest share of any resource of the cluster, 0..1."""
    used = [sum(amounts) for amounts in zip(*(recent.means.get(each, NOTHING) for each in sharers), strict=True)]
    return max((mean / of for mean, of in zip(used, _there(recent), strict=False) if of), default=0.0)


def _there(recent: RecentUse) -> Amounts:
    """The denominator of a mean: the cluster's size, or all past use where that is larger."""
    used = [sum(amounts) for amounts in zip(*recent.means.values(), strict=True)] or [0, 0, 0]
    return tuple(max(whole * UNIT, lately) for whole, lately in zip(recent.whole, used, strict=True))


def _factor(used: Amounts | None, there: Amounts, its: Weight, in_all: int) -> int:
    """The resource with the largest share counts."""
    if not its.weight:
        return ONE_FACTOR
    found = [
        ONE_FACTOR * its.weight * of // (its.parts * in_all * mean)
        for mean, of in zip(used or (), there, strict=bool(used))
        if mean
    ]
    return max(LEAST_FACTOR, min([MOST_FACTOR, *found]))
