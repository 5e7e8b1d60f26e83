"""Which types are bought for several batches at once? The pattern allocator, asked about work whose room is arithmetic.

A batch joins in when an empty instance of every offer that admits it takes exactly as many tasks as its resources
allow: no limit per instance, no port, no distinctInstance. Batches with equal constraints are planned together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from controller.market.allocation.allocate import allocate
from controller.market.allocation.effort import QUICK
from controller.market.allocation.master import is_available
from controller.market.allocation.problem import Offered, Problem, Wanted, rooms
from controller.market.zones import over_zones
from controller.model.pools import Offer
from controller.placement.arrays import MAX_TASKS, IntArray
from controller.placement.demand import Batch

_MOST_SHAPES = 60  # planned together: a tick has little time


def planned_together(
    batches: Sequence[Batch], fits: IntArray, offers: Sequence[Offer], room: int, max_share: float | None
) -> list[Offer]:
    """Offers to buy from, one entry per instance and at most `room`; empty where there is nothing to gain.

    fits: (batches, offers) tasks of each batch that an empty instance of each offer takes. max_share: largest share of
    the bought cpu that one instance type may have; None = any.
    """
    sizes = np.array([offer.resources for offer in offers], dtype=np.int64).reshape(-1, 3)
    needs = np.array([batch.need for batch in batches], dtype=np.int64).reshape(-1, 3)
    bought: list[Offer] = []
    for members in _groups(batches, fits, sizes, needs) if is_available() else []:
        shapes, of_batch = np.unique(needs[members], axis=0, return_inverse=True)
        if 1 < len(shapes) <= _MOST_SHAPES:
            count = np.zeros(len(shapes), dtype=np.int64)
            np.add.at(count, of_batch.reshape(-1), [batches[member].count for member in members])
            admitted = [offers[n] for n in np.flatnonzero((fits[members] > 0).any(axis=0)).tolist()]
            bought += _planned(Wanted(shapes, count), admitted, max_share)
    return _evenly(bought, room)


def _groups(batches: Sequence[Batch], fits: IntArray, sizes: IntArray, needs: IntArray) -> Iterable[list[int]]:
    """Batches that may be planned together, in the order of the first."""
    plain = ((fits == 0) | (fits == np.minimum(rooms(sizes, needs).T, MAX_TASKS))).all(axis=1)
    groups: dict[object, list[int]] = {}
    for number, batch in enumerate(batches):
        if batch.count and plain[number] and batch.max_instances is None and not batch.affinity:
            groups.setdefault((batch.constraints, batch.anti_affinity), []).append(number)
    return groups.values()


def _planned(wanted: Wanted, admitted: list[Offer], max_share: float | None) -> list[Offer]:
    """A type's zones cost about the same or are not bought from: the allocator knows the cheapest only."""
    cheapest: dict[object, Offer] = {}
    for offer in admitted:  # sorted by price
        cheapest.setdefault((offer.instance_type, offer.purchase), offer)
    options = list(cheapest.values())
    if not options:
        return []
    kinds = {kind: number for number, kind in enumerate(dict.fromkeys(option.instance_type for option in options))}
    offered = Offered.of(
        [option.resources for option in options],
        [option.price_usd_per_hour for option in options],
        [int(wanted.count.sum())] * len(options),
        [kinds[option.instance_type] for option in options],
    )
    found = allocate(Problem(offered, wanted, max_share), effort=QUICK)
    bought = np.bincount(found.pool, weights=found.times, minlength=len(options)).astype(int)
    return [zone for option, n in zip(options, bought, strict=True) for zone in over_zones(option, admitted, n)]


def _evenly(bought: list[Offer], room: int) -> list[Offer]:
    """At most `room` of them, each kind of purchase in proportion."""
    if len(bought) <= room:
        return bought
    return [bought[number * len(bought) // room] for number in range(max(0, room))]
