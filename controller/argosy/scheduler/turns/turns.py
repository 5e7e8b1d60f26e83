"""Whose turn it is in one tick: the runs in order, the request of each, and the division of scarce room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from argosy.scheduler.supply.present import PresentSupply
from argosy.scheduler.turns.asks import NO_BOUND, Ask, Bound, asks_of
from argosy.scheduler.turns.caps import CapRoom, costs_on, prices
from argosy.scheduler.turns.fair_order import FairOrder, latest_starts
from argosy.scheduler.turns.fair_share import FairShare, QueueCaps
from argosy.scheduler.turns.share_levels import ShareLevels, long_run_launches


@dataclass(frozen=True, slots=True)
class Turns:
    """The result of `whose_turn`, the second phase of a tick.

    Example: queue `a` has 4 tasks running and run r1 with 10 pending; queue `b` has none running and run r2 with 5
    pending. Then `asks` are those of r2 (5 tasks) and r1 (10), because `b` uses less for its weight, and `share` gives
    `b` the first 4 places before the two take turns. With one queue alone, `share` is None: first come, first served.
    """

    present: PresentSupply
    asks: Sequence[Ask]  # in the order of their turns
    gangs: Sequence[Ask]  # of runs with gangs, which are placed first
    share: FairShare | None  # None: there is one sharer, and no queue has a cap


def whose_turn(present: PresentSupply, at_most: Mapping[str, Bound] = NO_BOUND) -> Turns:
    """at_most: by run id."""
    moment, lineup, state = present.moment, present.lineup, present.moment.state
    alone, together = ([run for run in present.runs if bool(run.terms.gang) is its] for its in (False, True))
    order = FairOrder.of(state, alone, latest_starts(moment, alone))
    gangs = asks_of(moment, FairOrder.of(state, together).runs, at_most) if together else []
    asks, room = asks_of(moment, order.runs, at_most), CapRoom.of(state) if state.sharing.limits_queues else None
    if not order.is_shared and (room is None or not asks):
        return Turns(present, asks, gangs, None)
    usd_per_hour = prices(moment, lineup)
    caps = None
    if room is not None and asks:
        costs = costs_on([ask.run.needs for ask in asks], lineup.supply, usd_per_hour)
        queue = order.groups(room.names)[[order.row[ask.run.id] for ask in asks]]
        caps = QueueCaps(order, asks, lineup, room, usd_per_hour, costs, queue)
    levels = ShareLevels.of(state, lineup.supply.sizes.T, usd_per_hour, long_run_launches(moment))
    return Turns(present, asks, gangs, FairShare(order, asks, levels, levels.used(state, order), caps))
