"""Which types are bought for several batches at once? The pattern allocator, asked about work whose room is arithmetic.

A batch joins in when an empty instance of every offer that admits it takes exactly as many tasks as its resources
allow: no limit per instance, no port, no distinctInstance. Batches with equal constraints are planned together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from argosy.market.allocation.allocate import Allocation, allocate
from argosy.market.allocation.effort import QUICK
from argosy.market.allocation.master import is_available
from argosy.market.allocation.problem import Offered, Problem, Wanted, rooms
from argosy.market.limits import Bounds, Choice, Headroom
from argosy.market.offers import over_zones
from argosy.model.orders import Patterns
from argosy.model.pools import Offer
from argosy.placement.arrays import MAX_TASKS, IntArray
from argosy.placement.demand import Batch

_MOST_SHAPES = 60  # planned together: a tick has little time


@dataclass(frozen=True, slots=True)
class Plan:
    """One entry per instance to buy; empty where there is nothing to gain."""

    bought: tuple[Offer, ...] = ()
    lower_bound_usd_per_hour: float | None = None  # of placing every batch; None where they were planned in groups
    method: str = ""
    patterns: Patterns = ()
    all_of_it: bool = False  # whether no batch was left to be bought for by itself


def planned_together(
    batches: Sequence[Batch],
    fits: IntArray,
    offers: Sequence[Offer],
    room: int,
    bounds: Bounds,
    patterns: Patterns = (),
) -> Plan:
    """What to buy, at most `room` instances.

    fits: (batches, offers) tasks of each batch that an empty instance of each offer takes. patterns: of an earlier
    plan.
    """
    sizes = np.array([offer.resources for offer in offers], dtype=np.int64).reshape(-1, 3)
    needs = np.array([batch.need for batch in batches], dtype=np.int64).reshape(-1, 3)
    groups = _groups(batches, fits, sizes, needs) if is_available() else []
    bought: list[Offer] = []
    found: list[Allocation] = []
    for members in groups:
        shapes, of_batch = np.unique(needs[members], axis=0, return_inverse=True)
        if 1 < len(shapes) <= _MOST_SHAPES:
            count = np.zeros(len(shapes), dtype=np.int64)
            np.add.at(count, of_batch.reshape(-1), [batches[member].count for member in members])
            admitted = [offers[n] for n in np.flatnonzero((fits[members] > 0).any(axis=0)).tolist()]
            if admitted:
                allocation, chosen = _planned(Wanted(shapes, count), admitted, room, bounds, patterns)
                found.append(allocation)
                bought += chosen
    whole = len(found) == 1 and len(groups[0]) == len(batches) and not found[0].left_out.any()
    return Plan(
        bought=tuple(_evenly(bought, room)),
        lower_bound_usd_per_hour=found[0].lower_bound_usd_per_hour if whole else None,
        method="patterns" if any(each.method == "patterns" for each in found) else "greedy",
        patterns=tuple(dict.fromkeys(pattern for each in found for pattern in each.kept)),
    )


def _groups(batches: Sequence[Batch], fits: IntArray, sizes: IntArray, needs: IntArray) -> list[list[int]]:
    """Batches that may be planned together, in the order of the first."""
    plain = ((fits == 0) | (fits == np.minimum(rooms(sizes, needs).T, MAX_TASKS))).all(axis=1)
    groups: dict[object, list[int]] = {}
    for number, batch in enumerate(batches):
        if batch.count and plain[number] and batch.max_instances is None and not batch.affinity:
            groups.setdefault((batch.constraints, batch.anti_affinity), []).append(number)
    return list(groups.values())


def _planned(
    wanted: Wanted, admitted: list[Offer], room: int, bounds: Bounds, patterns: Patterns
) -> tuple[Allocation, list[Offer]]:
    """A type's zones cost about the same or are not bought from: the allocator knows the cheapest only."""
    cheapest: dict[object, Offer] = {}
    for offer in sorted(admitted, key=lambda offer: offer.effective):
        cheapest.setdefault((offer.instance_type, offer.purchase), offer)
    options = list(cheapest.values())
    kinds = {kind: number for number, kind in enumerate(dict.fromkeys(option.instance_type for option in options))}
    tasks = int(wanted.count.sum())
    offered = Offered.of(
        [option.resources for option in options],
        [option.effective for option in options],
        _depths(options, admitted, tasks, room, bounds),
        [kinds[option.instance_type] for option in options],
    )
    share = max(bounds.max_type_share, 1 / len(kinds))
    found = allocate(Problem(offered, wanted, share if share < 1 else None), effort=QUICK, kept=patterns)
    bought = np.bincount(found.pool, weights=found.times, minlength=len(options)).astype(int)
    return found, [zone for option, n in zip(options, bought, strict=True) for zone in over_zones(option, admitted, n)]


def _depths(options: list[Offer], admitted: list[Offer], tasks: int, room: int, bounds: Bounds) -> list[int]:
    """How many instances of each option there are at most: as many as there are tasks, or as its quotas leave. Types
    that share a quota are told of all of it; what is too much falls off later."""
    if not bounds.vcpus_left:
        return [tasks] * len(options)
    quotas = Headroom(max(room, tasks), Bounds(vcpus_left=bounds.vcpus_left))
    choice = Choice(1, 1, 0)
    alike = {
        (offer.cell, offer.instance_type, offer.purchase): min(tasks, quotas.most(offer, choice)) for offer in admitted
    }
    return [
        min(tasks, sum(most for (_, kind, how), most in alike.items() if (kind, how) == (o.instance_type, o.purchase)))
        for o in options
    ]


def _evenly(bought: list[Offer], room: int) -> list[Offer]:
    """At most `room` of them, each kind of purchase in proportion."""
    if len(bought) <= room:
        return bought
    return [bought[number * len(bought) // room] for number in range(max(0, room))]
