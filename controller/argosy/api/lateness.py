"""Does a run that waits miss its deadline by how the cluster is shared, and which weight of its queue would do?

Worked out by the course of the same fill (`sharing.course`), when somebody asks. Nothing in a tick goes by it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from argosy.api.crowd import Crowd
from argosy.model.moment import Moment
from argosy.model.runs import Run
from argosy.sharing.columns import MOST_WEIGHT
from argosy.sharing.course import HORIZON_S, ends_in_s

LEAST_S = 60.0  # that a run has to be late, for anything to be said
DOUBLINGS = 5  # of the weight, in search of one that would do
HALVINGS = 3  # of what is between the last one that does not and the first that does


@dataclass(frozen=True, slots=True)
class Lateness:
    """By how much a run ends after its deadline, as things stand."""

    late_s: float
    weight: int  # that its queue has
    enough: int | None  # the weight with which it would end in time; None: none that was tried does, or none is needed


def lateness_of(moment: Moment, run: Run, crowd: Crowd) -> Lateness | None:
    """None: it has no deadline, or makes it, or nobody knows."""
    if run.deadline_at is None or not crowd.known[crowd.row]:
        return None
    left_s = run.deadline_at - moment.now
    ends_s = ends_in_s(crowd.runs, crowd.sharers, crowd.room, crowd.row, HORIZON_S)
    if ends_s is None or ends_s - left_s < LEAST_S:
        return None
    weight = int(crowd.sharers.weight[crowd.runs.columns.sharer[crowd.row]])
    return Lateness(ends_s - left_s, weight, _enough(crowd, left_s, weight))


def _enough(crowd: Crowd, left_s: float, weight: int) -> int | None:
    """The least weight of its queue that would do, as far as a few tries tell."""
    if len(crowd.sharers.weight) < 2 or left_s <= 0:
        return None
    low, high = weight, max(1, 2 * weight)
    for _ in range(DOUBLINGS):
        if high > MOST_WEIGHT:
            return None
        if _is_in_time(crowd, left_s, high):
            break
        low, high = high, 2 * high
    else:
        return None
    for _ in range(HALVINGS):
        middle = (low + high) // 2
        if middle in (low, high):
            break
        low, high = (low, middle) if _is_in_time(crowd, left_s, middle) else (middle, high)
    return high


def _is_in_time(crowd: Crowd, left_s: float, weight: int) -> bool:
    queue, _ = crowd.order.sharers[int(crowd.runs.columns.sharer[crowd.row])]
    mine = np.array([name == queue for name, _ in crowd.order.sharers], dtype=np.bool_)
    sharers = replace(crowd.sharers, weight=np.where(mine, weight, crowd.sharers.weight))
    ends_s = ends_in_s(crowd.runs, sharers, crowd.room, crowd.row, left_s)
    return ends_s is not None and ends_s <= left_s
