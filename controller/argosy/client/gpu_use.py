"""How much of their GPUs do the tasks of a run use, and would a part of one be enough?

The runners write the figures next to the attempts (`runner.task_use`). The advice is given only where it saves at least
a tenth.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from argosy import layout
from argosy.catalogue.lookup import CPU_UNITS_PER_VCPU, load_catalogue
from argosy.client.access import Access
from argosy.client.measurements import (
    WORTH,
    Column,
    MeasuredAttempt,
    largest_of,
    latest,
    mean_of,
    samples_from,
    usd_per_hour,
)
from argosy.model.instance_types import InstanceType
from argosy.model.resources import Resources

_MARGIN, _STEP_MIB = 1.05, 500  # of a share beyond the most memory that was used


@dataclass(frozen=True, slots=True)
class MeasuredUse(MeasuredAttempt):
    """Of one attempt. use: percent of the time in which its GPUs computed; memory_mib: of the GPU that it used most;
    watts: of all its GPUs. share_mib: 0 = it has whole GPUs. None in a column: not known."""

    gpus: int
    name: str
    total_mib: float
    share_mib: int
    use: Column
    memory_mib: Column
    watts: Column

    @property
    def peak_mib(self) -> float | None:
        return largest_of(self.memory_mib)

    @property
    def has_mib(self) -> float:
        """What it may use of one GPU."""
        return self.share_mib or self.total_mib

    def to_json(self) -> dict[str, Any]:
        columns = {"at": self.at, "use": self.use, "memoryMib": self.memory_mib, "watts": self.watts}
        own = {"index": self.index, "attempt": self.attempt, "gpus": self.gpus, "name": self.name}
        return {**own, "totalMib": self.total_mib, "shareMib": self.share_mib, **columns}


def uses_of(access: Access, view: Mapping[str, Any]) -> list[MeasuredUse]:
    """Of the latest attempts that were measured, by their tasks. None of a run without GPUs, or if S3 refuses."""
    if not (view.get("gpus") or view.get("gpuShareMib")):
        return []
    return latest(access, layout.uses_uri(view["output"], of_gpus=True), use_from)


def use_from(key: str, body: bytes) -> MeasuredUse | None:
    """None if a program has written something else there."""
    try:
        task, told, (at, *columns) = samples_from(key, body, ("use", "memoryMib", "watts"))
        sizes = float(told["totalMib"] or 0.0), int(told["shareMib"])
        return MeasuredUse(*task, at, int(told["gpus"]), str(told["name"]), *sizes, *columns)
    except (ValueError, TypeError, KeyError, OverflowError):
        return None


def sentence(uses: Sequence[MeasuredUse]) -> str:
    """`9.0 of 22.4 GiB, 12 % of the time, 120 W`, over all of them; "" without any."""
    if not uses:
        return ""
    means = [[each.mean(column) for column in (each.use, each.watts)] for each in uses]
    use, watts = (mean_of(row[place] for row in means) for place in (0, 1))
    peak = largest_of(each.peak_mib for each in uses)
    told = [f"{peak / 1024:.1f} of {uses[0].has_mib / 1024:.1f} GiB"] if peak is not None else []
    told += [f"{use:.0f} % of the time"] if use is not None else []
    return ", ".join([*told, *([f"{watts:.0f} W"] if watts is not None else [])])


def advice(uses: Sequence[MeasuredUse], view: Mapping[str, Any], region: str) -> str:
    """`gpuShare {memoryMib: 10000} would cost $0.44 an hour of a task instead of $1.01`; "" if it would save little,
    or too little is known."""
    peaks = [each.peak_mib for each in uses if each.peak_mib is not None]
    mean = mean_of(each.mean(each.use) for each in uses)
    whole = not view.get("gpuShareMib")
    if not peaks or not view.get("vcpus") or (whole and (view["gpus"] != 1 or mean is None or mean > 50.0)):
        return ""
    needs = Resources(
        round(view["vcpus"] * CPU_UNITS_PER_VCPU), view["memoryMib"] or 0, view["gpus"], view.get("gpuShareMib") or 0
    )
    enough = math.ceil(max(peaks) * _MARGIN / _STEP_MIB) * _STEP_MIB
    kinds = [kind for kind in load_catalogue(region).values() if kind.gpu_model and _is_named(uses[0].name, kind)]
    now = usd_per_hour(needs, kinds)
    then = usd_per_hour(needs._replace(gpus=0, gpu_share_mib=enough), kinds)
    if now is None or then is None or then > WORTH * now:
        return ""
    return (
        f"gpuShare {{memoryMib: {enough}}} would cost ${then:.2f} an hour of a task instead of ${now:.2f} (on demand)"
    )


def _is_named(driver: str, kind: InstanceType) -> bool:
    """Whether the driver's name, such as `NVIDIA A10G`, is that of the type's GPUs. Names contain others: L40S, L4."""
    words = re.split(r"[ -]", driver)
    return all(word in words for word in str(kind.gpu_model).split())
