"""Spot or on-demand for a run with a deadline: what does its slack allow?

Slack is the time that is left beyond what the rest of the work takes on on-demand. It is worth money: it pays for
waiting while spot is short, and for the change-overs of going back to spot after a loss. A greedy policy spends it at
once, and then it is gone when spot comes back. So on-demand steps in while some slack is left. The *uniform progress*
line ("Can't Be Late", NSDI'24) is the most that is kept in reserve; a small share of the remaining work is enough
(decision 10).
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy.model.purchases import Stance

# Chosen on recorded availability traces, on which they are flat: half or twice of each costs a few per cent more.
RESERVE_SHARE = 0.1  # of the time that the rest of the work takes: the slack that is kept in reserve
BACK_CHANGES = 6  # slack must exceed the reserve by so many change-overs before on-demand is left with no spot in sight
SETTLED_CHANGES = 2  # spot must have been back for so many change-overs before on-demand is left for it


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run with a deadline has come. All in seconds; work is measured by the time it takes on on-demand."""

    total_s: float  # the whole work
    left_s: float
    window_s: float  # from the submission to the deadline
    time_left_s: float
    change_s: float  # from a decision to work on a new instance: order, boot, image
    look_s: float  # until the run is looked at again
    at_risk_s: float = 0.0  # work that the loss of an instance undoes
    narrow: bool = False  # on-demand, by quotas or the hourly cap, has room for fewer tasks at once than spot
    changes: int = 2  # change-overs until on-demand works when spot is lost: one if the run works on spot already

    @property
    def slack_s(self) -> float:
        return self.time_left_s - self.left_s

    @property
    def margin_s(self) -> float:
        """With less slack than this, what spot may still cost could not be made up for."""
        return self.changes * self.change_s + self.look_s + self.at_risk_s

    @property
    def reserve_s(self) -> float:
        """With less slack than this, the run does not wait for spot."""
        share = self.left_s / self.total_s if self.total_s else 0.0
        line_s = max(0.0, self.window_s - self.total_s) * share
        return min(self.margin_s + RESERVE_SHARE * self.left_s, line_s)


def stance_of(progress: Progress, before: Stance, spot_for_s: float) -> Stance:
    """Safety first; then spot wherever there is some; then on-demand where the slack is to be kept.

    spot_for_s: seconds since spot became available; 0 = it is not available. A stance ends only once the slack is past
    its limit by a margin: slack grows only when work turns out to be less than expected, or while on-demand lifts it
    above the reserve.
    """
    firm_below_s = progress.margin_s * (2 if before is Stance.FIRM else 1)
    if progress.slack_s < firm_below_s:
        return Stance.FIRM
    settled_s = SETTLED_CHANGES * progress.change_s if before is not Stance.SPOT else 0.0
    if spot_for_s > settled_s:
        return Stance.SPOT
    back_s = BACK_CHANGES * progress.change_s if before is Stance.ON_DEMAND else 0.0
    return Stance.ON_DEMAND if progress.slack_s < progress.reserve_s + back_s else Stance.SPOT
