"""Which types are bought for several batches at once? The pattern allocator, asked about the work whose room is plain arithmetic.

A batch joins in when an empty instance of every offer that admits it takes exactly as many tasks as its resources allow (so no
limit per instance, no port, no distinctInstance), and batches are planned together when the same offers admit them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from controller.market.allocation.allocate import allocate
from controller.market.allocation.effort import QUICK
from controller.market.allocation.problem import Offered, Problem, Wanted, rooms
from controller.model.pools import Offer
from controller.placement.arrays import BoolArray, IntArray
from controller.placement.demand import Batch

_MOST_SHAPES = 60  # planned together: a tick has little time


def planned_together(
    batches: Sequence[Batch], fits: IntArray, offers: Sequence[Offer], room: int, max_share: float | None
) -> list[int]:
    """Offers to buy from, by number and one per instance, at most `room`; empty where there is nothing to gain.

    fits: (batches, offers) tasks of each batch that an empty instance of each offer takes.
    """
    sizes = np.array([offer.resources for offer in offers], dtype=np.int64).reshape(-1, 3)
    needs = np.array([batch.need for batch in batches], dtype=np.int64).reshape(-1, 3)
    bought: list[int] = []
    for admitted, members in _groups(batches, fits, sizes, needs):
        shapes, of_batch = np.unique(needs[members], axis=0, return_inverse=True)
        if not 1 < len(shapes) <= _MOST_SHAPES:
            continue
        count = np.zeros(len(shapes), dtype=np.int64)
        np.add.at(count, of_batch.reshape(-1), [batches[member].count for member in members])
        bought += _planned(shapes, count, _cheapest_zones(admitted, offers), offers, room, max_share)
    return _evenly(bought, room)


def _groups(
    batches: Sequence[Batch], fits: IntArray, sizes: IntArray, needs: IntArray
) -> list[tuple[list[int], list[int]]]:
    """(offers, batches) that belong together, in the order of the first batch."""
    plain = _takes_what_resources_allow(fits, sizes, needs)
    groups: dict[bytes, list[int]] = {}
    for number, batch in enumerate(batches):
        if batch.count and plain[number] and batch.max_instances is None:
            groups.setdefault((fits[number] > 0).tobytes(), []).append(number)
    # Offers too small for some of a group's batches still admit the others: the union counts.
    merged: dict[bytes, list[int]] = {}
    for members in groups.values():
        open_to = _admitting(fits[members[0]], sizes, needs[members[0]])
        merged.setdefault(open_to.tobytes(), []).extend(members)
    return [(np.flatnonzero((fits[members] > 0).any(axis=0)).tolist(), sorted(members)) for members in merged.values()]
