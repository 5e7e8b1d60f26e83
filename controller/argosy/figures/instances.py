"""The living instances and their tasks, from the columns of DescribeCluster's reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.figures.history import column

View = Mapping[str, Any]
_ENDED = "GONE"


@dataclass(frozen=True, slots=True)
class Instances:
    """Columns of one length. type, zone, purchase, state: rows of the lists of names. Shares 0..1, not a number if an
    instance has none of the resource. tasks: how many run there."""

    types: Sequence[str]
    zones: Sequence[str]
    purchases: Sequence[str]
    states: Sequence[str]
    ids: NDArray[np.bytes_]
    type: NDArray[np.uint16]
    zone: NDArray[np.uint16]
    purchase: NDArray[np.uint16]
    state: NDArray[np.uint16]
    usd_per_hour: NDArray[np.float64]
    on_demand_usd_per_hour: NDArray[np.float64]
    cpu: NDArray[np.float32]
    memory: NDArray[np.float32]
    gpu: NDArray[np.float32]
    tasks: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def is_spot(self) -> NDArray[np.bool_]:
        return named(self.purchases, self.purchase, "spot")

    def where(self, chosen: NDArray[Any]) -> Instances:
        """Some of them: a mask, or rows."""
        columns = {each.name for each in fields(self)} - {"types", "zones", "purchases", "states"}
        changed: Mapping[str, Any] = {name: getattr(self, name)[chosen] for name in columns}
        return replace(self, **changed)


@dataclass(frozen=True, slots=True)
class RunningAttempts:
    """Attempts at work, in the order of their instances. instance: row of `Instances`; run: row of `runs`. gpu_mask:
    bit j = the j-th GPU of the instance. left: the number of attempts that the reply lacks."""

    runs: Sequence[str]
    instance: NDArray[np.int64]
    run: NDArray[np.uint16]
    index: NDArray[np.uint32]
    gpu_mask: NDArray[np.uint32]
    left: int

    def on(self, row: int, gpu: int | None = None) -> str:
        """The tasks on an instance: `digits-...: 3, 17 (GPU 1)`; of one of its GPUs without its number."""
        low, high = np.searchsorted(self.instance, [row, row + 1]).tolist()
        found: dict[str, list[str]] = {}
        for place in range(low, high):
            gpus = [str(bit) for bit in range(32) if int(self.gpu_mask[place]) >> bit & 1]
            if gpu is not None and not int(self.gpu_mask[place]) >> gpu & 1:
                continue
            task = f"{self.index[place]}" + (f" (GPU {', '.join(gpus)})" if gpus and gpu is None else "")
            found.setdefault(self.runs[self.run[place]], []).append(task)
        return "; ".join(f"{run}: {', '.join(tasks)}" for run, tasks in found.items())


def instances_of(cluster: View) -> tuple[Instances, RunningAttempts]:
    """Those that live. cluster: DescribeCluster's reply in columns, with its attempts."""
    told = cluster["instances"]["columns"]
    every = Instances(
        types=told["type"]["values"],
        zones=told["zone"]["values"],
        purchases=told["purchase"]["values"],
        states=told["status"]["values"],
        ids=column(told["id"]),
        type=column(told["type"]),
        zone=column(told["zone"]),
        purchase=column(told["purchase"]),
        state=column(told["status"]),
        usd_per_hour=column(told["usdPerHour"]),
        on_demand_usd_per_hour=column(told["onDemandUsdPerHour"]),
        cpu=column(told["cpuUsed"]),
        memory=column(told["memoryUsed"]),
        gpu=column(told["gpuUsed"]),
        tasks=column(told["tasks"]),
    )
    alive = ~named(every.states, every.state, _ENDED)
    return every.where(alive), _at_work(cluster["attempts"], alive)


def named(names: Sequence[str], rows: NDArray[Any], name: str) -> NDArray[np.bool_]:
    """The rows of that name."""
    found: NDArray[np.bool_] = np.array([each == name for each in names] or [False])[rows]
    return found


def _at_work(told: View, alive: NDArray[np.bool_]) -> RunningAttempts:
    """Those of live instances, by their rows among these. They come in the order of their instances."""
    columns = told["columns"]
    instance = column(columns["instance"])
    here = alive[instance]
    return RunningAttempts(
        runs=columns["run"]["values"],
        instance=(np.cumsum(alive) - 1)[instance[here]],
        run=column(columns["run"])[here],
        index=column(columns["index"])[here],
        gpu_mask=column(columns["gpuMask"])[here],
        left=told["left"],
    )
