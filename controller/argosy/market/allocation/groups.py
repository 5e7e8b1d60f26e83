"""Groups of similar tasks among thousands of distinct ones."""

from __future__ import annotations

import heapq

import numpy as np

from argosy.placement.arrays import FloatArray, IntArray


def grouped(need: IntArray, weight: FloatArray, most: int) -> IntArray:
    """(s,) a group number for each need (s, 3), at most `most` groups and one per number of GPUs at least.

    The group whose members differ most is halved, along the axis on which they do, until there are enough.
    """
    place = np.log(np.maximum(need[:, :2], 1))
    heap: list[tuple[float, int, int, IntArray]] = []

    def push(members: IntArray) -> None:
        reach = np.ptp(place[members], axis=0)
        axis = int(reach.argmax())
        heapq.heappush(heap, (-float(weight[members].sum() * reach[axis]), int(members[0]), axis, members))

    for gpus in np.unique(need[:, 2]).tolist():
        push(np.flatnonzero(need[:, 2] == gpus).astype(np.int64))
    while len(heap) < most and heap[0][0] < 0:
        _, _, axis, members = heapq.heappop(heap)
        members = members[np.argsort(place[members, axis], kind="stable")]
        over = np.cumsum(weight[members])
        half = min(max(1, int(np.searchsorted(over, over[-1] / 2))), len(members) - 1)
        push(members[:half])
        push(members[half:])
    group = np.zeros(len(need), dtype=np.int64)
    for number, (_, _, _, members) in enumerate(sorted(heap, key=lambda entry: entry[1])):
        group[members] = number
    return group
