"""What lifts a sharer's level while places are dealt out: how much of what does a task count?

Of the cluster's cpu, memory and GPUs, whichever a sharer uses most of. GPUs count only where several want any: what
nobody else wants is taken from nobody. Where the document limits the dollars of an hour, these are what is shared: a
task counts what it costs on the instance where it costs least, and cpu, memory and GPUs only say where there is room
(decision 55). Launches that come again and again count as well: short tasks would be "below" for ever.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from argosy.model.moment import Moment
from argosy.model.runs import Run
from argosy.model.sharers import sharer_of
from argosy.model.state import State
from argosy.placement.arrays import FloatArray
from argosy.scheduler.turns.caps import SCALE, USD, part_of
from argosy.scheduler.turns.fair_order import FairOrder
from argosy.sharing.columns import MOST, IntArray

Size = tuple[int, int, int]  # cpu units, MiB, GPUs
PER_S = 1 << 20  # units of a launch a second
_NOTHING: Mapping[Size, int] = {}


@dataclass(frozen=True, slots=True)
class ShareLevels:
    """Columns: cpu units, MiB, GPUs, dollars in the units of caps, and launches of `PER_S` a second."""

    capacity: IntArray  # (5,) MOST where it lifts nobody
    usd: Mapping[Size, int] = field(default_factory=lambda: _NOTHING)
    """Of a task with these needs, where dollars are what is shared."""

    @classmethod
    def of(cls, state: State, sizes: IntArray, usd_per_hour: FloatArray, launch_rate: float) -> ShareLevels:
        """sizes, usd_per_hour: (instances, 3) and (instances,) of all on which places are dealt out. launch_rate: per
        second, in the long run."""
        usd, launches = state.sharing.usd_per_hour, round(PER_S * launch_rate)
        if not math.isinf(usd):
            capacity = [MOST, MOST, MOST, max(1, round(usd * SCALE[USD])), launches]
            return cls(np.array(capacity, dtype=np.int64), _least_costs(state.runs.values(), sizes, usd_per_hour))
        whole = sizes.sum(axis=0)
        counts = (whole > 0) & [True, True, _several_want_gpus(state)]
        return cls(np.array([*np.where(counts, whole, MOST), MOST, launches], dtype=np.int64))

    def takes(self, run: Run) -> tuple[int, ...]:
        """(5,) what a task of it counts."""
        return (*run.needs, self.usd.get(run.needs, 0), _launches_of_a_place(run))

    def used(self, state: State, order: FairOrder) -> IntArray:
        """(sharers, 5) what the live attempts of all open runs count."""
        found = np.column_stack([order.tasks, np.zeros((len(order.tasks), 2), dtype=np.int64)])
        queues, rows = state.sharing.queues(), {sharer: row for row, sharer in enumerate(order.sharers)}
        for run in state.runs.values():
            live, row = order.live.get(run.id, 0), rows.get(sharer_of(run, queues))
            if live and row is not None and not run.is_daemon:
                found[row, 3:] += live * np.array(self.takes(run)[3:], dtype=np.int64)
        return found


def long_run_launches(moment: Moment) -> float:
    """Per second: what AWS allows in all cells with instances."""
    cells = {instance.cell for instance in moment.state.instances.values()}
    return moment.policy.launch_rate * max(1, len(cells))


def _launches_of_a_place(run: Run) -> int:
    """What a place costs as long as the run keeps it: one launch for each task that ends there, in 1 / PER_S of one a
    second; 0 where nobody knows how long its tasks take. It closes nothing: what a tick may start is known in it."""
    seconds = run.mean_seconds(run.terms.expected_seconds)
    return int(PER_S / max(1.0, seconds)) if seconds else 0


def _several_want_gpus(state: State) -> bool:
    queues = state.sharing.queues()
    wanting = {sharer_of(run, queues) for run in state.runs.values() if run.needs.gpus and not run.is_daemon}
    return len(wanting) > 1


def _least_costs(runs: Iterable[Run], sizes: IntArray, usd_per_hour: FloatArray) -> dict[Size, int]:
    """By needs, on the instance where a task costs least; 0 where none is large enough."""
    kinds = np.unique(np.column_stack([sizes, usd_per_hour]), axis=0)  # few, whatever the number of instances
    sizes, prices = kinds[:, :3], kinds[:, 3]
    found: dict[Size, int] = {}
    for needs in {run.needs for run in runs}:
        fits = (sizes >= needs).all(axis=1)
        costs = (part_of(np.array(needs), sizes) * prices)[fits]
        found[needs] = round(float(costs.min(initial=math.inf)) * SCALE[USD]) if len(costs) else 0
    return found
