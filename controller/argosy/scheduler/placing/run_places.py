"""The places of one run in a tick."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from argosy.market.cover import Spread
from argosy.model.runs import Run
from argosy.placement.demand import Batch


@dataclass(frozen=True, slots=True)
class RunPlaces:
    """One run's request, its places, and the tasks for which instances still have to be bought."""

    run: Run
    batch: Batch  # tasks asked for; of a run whose lost tasks move to on-demand, its ordinary tasks
    left_over: Batch  # tasks without a place, to be bought for now
    instances: frozenset[str]  # ids of the instances that it has or waits for
    coming: int  # the number of its tasks that wait for incoming instances
    ordinary: Batch | None  # bought for instead if `left_over` finds no offer
    usd_room: float = math.inf  # how many more USD an hour may be bought
    spread: Spread | None = None  # its first spread attribute, and where the group has tasks already
    by_zone: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of gangs: instances with room for members
