"""What would a job have cost at least, had the whole availability of spot been known? A bound for every policy.

Exact for time in steps: a table over (work left, change-over left, on spot or on-demand or idle), from the deadline
backwards. One step of work takes one step of time; whoever starts on an instance pays for the change-over first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Costs = NDArray[np.float64]  # by steps of work left


def least_cost(available: NDArray[np.bool_], work: int, change: int, spot: float, on_demand: float) -> float:
    """Dollars for `work` steps within `len(available)` steps; infinity when there is no way.

    `change`: steps of change-over. `spot`, `on_demand`: dollars a step.
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
    """The cost of being on an instance for this step, with `left` steps of its change-over to go."""
    if left:
        cost = following[left - 1] + price
    else:
        cost = np.empty_like(following[0])
        cost[1:] = following[0][:-1] + price
    cost[0] = 0.0
    return cost
