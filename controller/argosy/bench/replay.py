"""What does a job with a deadline cost and does it get done, when spot comes and goes as it once did?

One worker with one checkpointed job, as in "Can't Be Late": time in steps, a change-over before every new instance, and
the policy asked at each step. `stance_of` is the very function that the controller decides with; beside it what it is
measured against: greedy (spot, or waiting for it, until only on-demand can still meet the deadline), on-demand alone,
and the least cost in hindsight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from argosy.bench.hindsight import least_cost
from argosy.market.deadline import Job, stance_of
from argosy.model.stance import Stance

Policy = Callable[[Job, Stance, float], Stance]  # as stance_of: job, the stance before, how long spot has been there


@dataclass(frozen=True, slots=True)
class Setting:
    """The job. `step_s` divides the other times."""

    work_s: float
    window_s: float
    change_s: float
    step_s: float
    spot_price: float = 0.3  # of on-demand's: the median spot discount of the catalogue of 2022 is 70 %

    @property
    def steps(self) -> int:
        return round(self.window_s / self.step_s)


@dataclass(frozen=True, slots=True)
class Outcome:
    """`cost` in hours at the on-demand price."""

    cost: float
    met: bool


@dataclass(slots=True)
class _Worker:
    left_s: float
    where: Stance | None = None  # SPOT, FIRM for on-demand, None = idle
    change_left_s: float = 0.0
    cost: float = 0.0

    def work(self, where: Stance | None, setting: Setting) -> None:
        if where is not self.where:
            self.change_left_s = setting.change_s
        self.where = where
        if where is None:
            return
        used_s = min(setting.step_s, self.change_left_s + self.left_s)
        self.cost += used_s / 3600 * (setting.spot_price if where is Stance.SPOT else 1.0)
        changing_s = min(self.change_left_s, used_s)
        self.change_left_s -= changing_s
        self.left_s -= used_s - changing_s


def greedy(job: Job, before: Stance, spot_for_s: float) -> Stance:
    """Spot or nothing, until the slack is gone; then on-demand to the end."""
    return Stance.FIRM if before is Stance.FIRM or job.slack_s < job.margin_s else Stance.SPOT


def on_demand_only(job: Job, before: Stance, spot_for_s: float) -> Stance:
    return Stance.FIRM


def replay(available: NDArray[np.bool_], setting: Setting, policy: Policy = stance_of) -> Outcome:
    """One job from the first step of `available` to its end or deadline."""
    worker, stance, spot_for_s = _Worker(setting.work_s), Stance.SPOT, 0.0
    for step, there in enumerate(available[: setting.steps].tolist()):
        spot_for_s = spot_for_s + setting.step_s if there else 0.0
        on_spot = there and worker.where is Stance.SPOT
        time_left_s = setting.window_s - step * setting.step_s
        job = Job(
            setting.work_s,
            worker.left_s,
            setting.window_s,
            time_left_s,
            setting.change_s,
            setting.step_s,
            changes=1 if on_spot else 2,
        )
        stance = policy(job, stance, spot_for_s)
        wanted = Stance.FIRM if stance is not Stance.SPOT else Stance.SPOT if there else None
        worker.work(wanted, setting)
        if worker.left_s <= 1e-6:
            return Outcome(worker.cost, True)
    return Outcome(worker.cost, False)


def hindsight(available: NDArray[np.bool_], setting: Setting) -> Outcome:
    """The least cost at which the job could have been done."""
    work, change = round(setting.work_s / setting.step_s), round(setting.change_s / setting.step_s)
    hours = setting.step_s / 3600
    cost = least_cost(available[: setting.steps], work, change, hours * setting.spot_price, hours)
    return Outcome(cost, bool(np.isfinite(cost)))


def windows(data: NDArray[np.int64], gap_s: float, setting: Setting, jobs: int) -> Iterator[NDArray[np.bool_]]:
    """Up to `jobs` starts spread evenly over a trace of how many could be had, each with the window's steps.

    A job needs one instance; a trace of several is asked about its first, its middle and its last: a step counts as
    available when so many are there.
    """
    steps = int(len(data) * gap_s // setting.step_s)
    sampled = data[(np.arange(steps) * setting.step_s / gap_s).astype(np.int64)]
    most = int(data.max(initial=0))
    levels = sorted({1, max(1, most // 2), max(1, most)})
    starts = steps - setting.steps
    if starts < 0:
        return
    for level in levels:
        for start in np.unique(np.linspace(0, starts, max(1, jobs)).astype(np.int64)).tolist():
            yield sampled[start : start + setting.steps] >= level
