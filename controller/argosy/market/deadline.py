"""Spot, or on-demand, for a job with a deadline: what does its slack allow?

Slack is the time that is left beyond what the rest of the work takes on on-demand. It is worth money: it pays for
waiting while spot is short, and for the change-overs of going back to spot after a loss. Spent at once, as a greedy
policy does, it is gone when spot comes back. So on-demand steps in while some slack is left: the *uniform progress*
line ("Can't Be Late", NSDI'24) is the most that is kept back; a small share of the work left is enough (decision 10).
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy.model.purchases import Stance

# Chosen on recorded availability traces, on which they are flat: half or twice of each costs a few per cent more.
RESERVE_SHARE = 0.1  # of the time that the rest of the work takes: the slack that is kept back
BACK_CHANGES = 6  # change-overs that slack has to be over the reserve before on-demand is left with no spot in sight
SETTLED_CHANGES = 2  # change-overs for which spot has to have been back before on-demand is left for it


@dataclass(frozen=True, slots=True)
class Job:
    """Where a job stands. All in seconds; work is measured by the time that it takes on on-demand."""

    total_s: float  # the whole work
    left_s: float
    window_s: float  # from the submission to the deadline
    time_left_s: float
    change_s: float  # from a decision to work on a new instance: order, boot, image
    look_s: float  # until the job is looked at again
    at_risk_s: float = 0.0  # of work that the loss of an instance undoes
    narrow: bool = False  # on-demand, by quotas or the hourly cap, has room for fewer tasks at once than spot
    changes: int = 2  # that on-demand is away when spot is lost: one where the job is working on spot already

    @property
    def slack_s(self) -> float:
        return self.time_left_s - self.left_s

    @property
    def margin_s(self) -> float:
        """With less slack than this, what spot may still cost could not be made up for."""
        return self.changes * self.change_s + self.look_s + self.at_risk_s

    @property
    def reserve_s(self) -> float:
        """With less slack than this, nothing is spent on waiting."""
        share = self.left_s / self.total_s if self.total_s else 0.0
        line_s = max(0.0, self.window_s - self.total_s) * share
        return min(self.margin_s + RESERVE_SHARE * self.left_s, line_s)


def stance_of(job: Job, before: Stance, spot_for_s: float) -> Stance:
    """Safety first; then spot wherever there is some; then on-demand where the slack is to be kept.

    `spot_for_s`: how long spot has been to be had by now, 0 = it is not. Each stance has to be left by a margin before
    it ends: slack only grows when work turns out to be less than was thought, or while on-demand lifts it over the
    reserve.
    """
    firm_below_s = job.margin_s * (2 if before is Stance.FIRM else 1)
    if job.slack_s < firm_below_s:
        return Stance.FIRM
    settled_s = SETTLED_CHANGES * job.change_s if before is not Stance.SPOT else 0.0
    if spot_for_s > settled_s:
        return Stance.SPOT
    back_s = BACK_CHANGES * job.change_s if before is Stance.ON_DEMAND else 0.0
    return Stance.ON_DEMAND if job.slack_s < job.reserve_s + back_s else Stance.SPOT
