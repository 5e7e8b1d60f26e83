"""What raises a sharer's level while places are shared out?

The largest of its shares of the cluster's cpu, memory and GPUs. GPUs count only where several sharers need any, because
otherwise their use takes nothing from the others. If the document limits dollars per hour, dollars are shared instead:
a task counts its cost on the cheapest instance for it, and cpu, memory and GPUs only show where there is room (decision
55). Repeated launches count as well: otherwise short tasks would always have a low level.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from argosy.model.moment import Moment
from argosy.model.money.occupancy import part_of
from argosy.model.resources import AXES, Resources
from argosy.model.runs import Run
from argosy.model.sharers import sharer_of
from argosy.model.state import State
from argosy.placement.arrays import FloatArray
from argosy.scheduler.turns.caps import SCALE, USD
from argosy.scheduler.turns.fair_order import FairOrder
from argosy.sharing.columns import MOST, IntArray

PER_S = 1 << 20  # units of a launch a second
_NOTHING: Mapping[Resources, int] = {}


@dataclass(frozen=True, slots=True)
class ShareLevels:
    """Columns: cpu units, MiB, GPUs in `gpu_units`, dollars in the units of caps, and launches of `PER_S` a second."""

    capacity: IntArray  # (5,) MOST where it raises no level
    usd: Mapping[Resources, int] = field(default_factory=lambda: _NOTHING)
    """The cost of a task by its needs, if dollars are shared."""
    gpu_units: int = 1
    """Of a GPU: the MiB of its memory, on average, if tasks share GPUs."""

    @classmethod
    def of(cls, state: State, sizes: IntArray, usd_per_hour: FloatArray, launch_rate: float) -> ShareLevels:
        """sizes, usd_per_hour: (instances, AXES) and (instances,) of all instances with places. launch_rate: per
        second, in the long run."""
        usd, launches = state.sharing.usd_per_hour, round(PER_S * launch_rate)
        if not math.isinf(usd):
            capacity = [MOST, MOST, MOST, max(1, round(usd * SCALE[USD])), launches]
            return cls(np.array(capacity, dtype=np.int64), _least_costs(state.runs.values(), sizes, usd_per_hour))
        whole, gpu_units = sizes[:, :3].sum(axis=0), 1
        if any(run.needs.gpu_share_mib for run in state.runs.values()):
            gpu_units = max(1, int(sizes[:, 3].sum()) // max(1, int(whole[2])))
            whole[2] *= gpu_units
        counts = (whole > 0) & [True, True, _several_want_gpus(state)]
        raising = np.array([*np.where(counts, whole, MOST), MOST, launches], dtype=np.int64)
        return cls(raising, gpu_units=gpu_units)

    def free(self, free: IntArray, used: IntArray) -> list[int]:
        """(5,) of what is left. free: (3, m) of the instances. used: (sharers, 5)."""
        left = np.maximum(free, 0).sum(axis=1)
        if self.gpu_units > 1:  # no GPU that tasks share is free as a whole
            left[2] = max(0, self.capacity[2] - used[:, 2].sum())
        return [*left.tolist(), MOST, MOST]

    def takes(self, run: Run) -> tuple[int, ...]:
        """(5,) the amounts that one task counts."""
        cpu_units, memory_mib, gpus, share_mib = run.needs
        of_gpus = gpus * self.gpu_units + share_mib if self.gpu_units > 1 else gpus
        return (cpu_units, memory_mib, of_gpus, self.usd.get(run.needs, 0), _launches_of_a_place(run))

    def used(self, state: State, order: FairOrder) -> IntArray:
        """(sharers, 5) the amounts of the live attempts of all open runs."""
        found = np.column_stack([order.tasks, np.zeros((len(order.tasks), 2), dtype=np.int64)])
        queues, rows = state.sharing.queues(), {sharer: row for row, sharer in enumerate(order.sharers)}
        for run in state.runs.values():
            live, row = order.live.get(run.id, 0), rows.get(sharer_of(run, queues))
            if live and row is not None and not run.is_daemon:
                found[row, 3:] += live * np.array(self.takes(run)[3:], dtype=np.int64)
                found[row, 2] += live * (self.takes(run)[2] - run.needs.gpus)
        return found


def long_run_launches(moment: Moment) -> float:
    """Per second: the AWS limit over all cells with instances."""
    cells = {instance.cell for instance in moment.state.instances.values()}
    return moment.policy.launch_rate * max(1, len(cells))


def _launches_of_a_place(run: Run) -> int:
    """The launches that a place costs while the run keeps it, one for each task that ends there, in units of 1 /
    PER_S a second; 0 if the duration of its tasks is unknown. It limits no run by itself; the launch limit is known
    within the tick."""
    seconds = run.mean_seconds(run.terms.expected_seconds)
    return int(PER_S / max(1.0, seconds)) if seconds else 0


def _several_want_gpus(state: State) -> bool:
    queues = state.sharing.queues()
    wanting = {
        sharer_of(run, queues)
        for run in state.runs.values()
        if run.needs.gpus + run.needs.gpu_share_mib and not run.is_daemon
    }
    return len(wanting) > 1


def _least_costs(runs: Iterable[Run], sizes: IntArray, usd_per_hour: FloatArray) -> dict[Resources, int]:
    """By needs, on the instance where a task costs least; 0 if none is large enough."""
    kinds = np.unique(np.column_stack([sizes, usd_per_hour]), axis=0)  # few, whatever the number of instances
    sizes, prices = kinds[:, :AXES], kinds[:, AXES]
    found: dict[Resources, int] = {}
    for needs in {run.needs for run in runs}:
        fits = (sizes >= needs).all(axis=1)
        costs = (part_of(np.array(needs)[:, None], sizes.T) * prices)[fits]
        found[needs] = round(float(costs.min(initial=math.inf)) * SCALE[USD]) if len(costs) else 0
    return found
