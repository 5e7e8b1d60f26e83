"""What may a run of purchase spot-then-on-demand buy now, since when, and why?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Stance(StrEnum):
    SPOT = "spot"  # take spot, or wait for it
    ON_DEMAND = "on-demand"  # until spot is worth another try
    FIRM = "firm"  # on-demand to the end: a loss of spot could not be made up for any more


@dataclass(frozen=True, slots=True)
class Steering:
    """What the controller remembers of it. Times are epoch seconds, 0 = not."""

    stance: Stance = Stance.SPOT
    since: float = 0.0  # of the stance
    reason: str = ""
    short_since: float = 0.0  # since when tasks wait while spot is short
    try_spot_at: float = 0.0  # when spot is tried again, as seen from on-demand
    falls: int = 0  # times in a row that spot was left; each doubles the time to the next try
    late: bool = False  # the deadline has passed


UNSTEERED = Steering()
