"""What does a job with a deadline cost on a recorded trace of spot availability?

One worker with one checkpointed job, as in "Can't Be Late" (NSDI'24). Time passes in steps, each new instance costs a
change-over, and a policy decides at each step. `stance_of` is the function that the controller decides with. It is
compared with greedy (spot, or waiting for it, until only on-demand can still meet the deadline), with on-demand alone,
and with the least cost in hindsight, which bounds every policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from argosy.market.progress import Progress, stance_of
from argosy.model.purchases import PurchaseStance

PurchasePolicy = Callable[[Progress, PurchaseStance, float], PurchaseStance]
"""(the job, the previous stance, seconds for which spot has been available) -> the stance now, like `stance_of`."""
Costs = NDArray[np.float64]
"""USD, or hours at the on-demand price, by steps of work left."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The job. `step_s` divides the other times."""

    work_s: float
    window_s: float
    change_s: float
    step_s: float
    spot_price: float = 0.3  # share of the on-demand price: the median spot discount of the catalogue of 2022 is 70 %

    @property
    def steps(self) -> int:
        return round(self.window_s / self.step_s)


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """cost: in hours at the on-demand price."""

    cost: float
    met: bool


@dataclass(slots=True)
class _Worker:
    left_s: float
    where: PurchaseStance | None = None  # SPOT, FIRM for on-demand, None = idle
    change_left_s: float = 0.0
    cost: float = 0.0

    def work(self, where: PurchaseStance | None, setting: Setting) -> None:
        if where is not self.where:
            self.change_left_s = setting.change_s
        self.where = where
        if where is None:
            return
        used_s = min(setting.step_s, self.change_left_s + self.left_s)
        self.cost += used_s / 3600 * (setting.spot_price if where is PurchaseStance.SPOT else 1.0)
        changing_s = min(self.change_left_s, used_s)
        self.change_left_s -= changing_s
        self.left_s -= used_s - changing_s


def greedy(job: Progress, before: PurchaseStance, spot_for_s: float) -> PurchaseStance:
    """Spot or nothing until the slack is used up; then on-demand to the end."""
    return PurchaseStance.FIRM if before is PurchaseStance.FIRM or job.slack_s < job.margin_s else PurchaseStance.SPOT


def on_demand_only(job: Progress, before: PurchaseStance, spot_for_s: float) -> PurchaseStance:
    return PurchaseStance.FIRM


def replay(available: NDArray[np.bool_], setting: Setting, policy: PurchasePolicy = stance_of) -> ReplayOutcome:
    """One job from the first step of `available` to its end or deadline."""
    worker, stance, spot_for_s = _Worker(setting.work_s), PurchaseStance.SPOT, 0.0
    for step, there in enumerate(available[: setting.steps].tolist()):
        spot_for_s = spot_for_s + setting.step_s if there else 0.0
        on_spot = there and worker.where is PurchaseStance.SPOT
        time_left_s = setting.window_s - step * setting.step_s
        job = Progress(
            setting.work_s,
            worker.left_s,
            setting.window_s,
            time_left_s,
            setting.change_s,
            setting.step_s,
            changes=1 if on_spot else 2,
        )
        stance = policy(job, stance, spot_for_s)
        wanted = PurchaseStance.FIRM if stance is not PurchaseStance.SPOT else PurchaseStance.SPOT if there else None
        worker.work(wanted, setting)
        if worker.left_s <= 1e-6:
            return ReplayOutcome(worker.cost, True)
    return ReplayOutcome(worker.cost, False)


def hindsight(available: NDArray[np.bool_], setting: Setting) -> ReplayOutcome:
    """The least cost of the job in hindsight."""
    work, change = round(setting.work_s / setting.step_s), round(setting.change_s / setting.step_s)
    hours = setting.step_s / 3600
    cost = least_cost(available[: setting.steps], work, change, hours * setting.spot_price, hours)
    return ReplayOutcome(cost, bool(np.isfinite(cost)))


def least_cost(available: NDArray[np.bool_], work: int, change: int, spot: float, on_demand: float) -> float:
    """The least cost of `work` steps within `len(available)` steps; infinite when that is impossible.

    Exact for time in steps: a table over (work left, change-over left, on spot or on-demand or idle), from the deadline
    backwards. One step of work takes one step of time, after the change-over of its instance.
    change: steps of change-over. spot, on_demand: cost of a step.
    """
    never = np.full(work + 1, np.inf)
    never[0] = 0.0
    idle, on_spot, held = never, [never] * (change + 1), [never] * (change + 1)
    for there in available[::-1].tolist():
        held_now = [_step(held, left, on_demand) for left in range(change + 1)]
        idle_now = np.minimum(idle, held_now[change])
        spot_now: list[Costs] = []
        if there:
            spot_now = [_step(on_spot, left, spot) for left in range(change + 1)]
            idle_now = np.minimum(idle_now, spot_now[change])
        on_spot = [np.minimum(cost, idle_now) for cost in spot_now] or [idle_now] * (change + 1)
        held = [np.minimum(cost, idle_now) for cost in held_now]
        idle = idle_now
    return float(idle[work])


def _step(following: list[Costs], left: int, price: float) -> Costs:
    """The cost of using an instance in this step, with `left` steps of its change-over to go."""
    if left:
        cost = following[left - 1] + price
    else:
        cost = np.empty_like(following[0])
        cost[1:] = following[0][:-1] + price
    cost[0] = 0.0
    return cost


def windows(data: NDArray[np.int64], gap_s: float, setting: Setting, jobs: int) -> Iterator[NDArray[np.bool_]]:
    """Whether spot is available in each step of a job's window, for up to `jobs` starts spread evenly over a trace.

    data: the number of available instances at each point, `gap_s` seconds apart. A job needs one instance. A trace of
    several gives windows for the first, the middle and the last of them; instance k is available while at least k are.
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
