"""How many vCPUs and how much memory do the tasks of a run use, and would less be enough?

The advice is given only where it saves at least a tenth, and holds the most that any sample has shown.
"""

from __future__ import annotations

import math
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
    of_attempt,
    samples_from,
    usd_per_hour,
)
from argosy.model.resources import Resources

_STEP_VCPUS, _STEP_MIB = 0.25, 128
_MARGIN = 1.2  # of memory: between two samples a task may have used more
_LEAST_S = 10.0  # one sample of a short task says too little


@dataclass(frozen=True, slots=True)
class MeasuredTask(MeasuredAttempt):
    """vcpus: the mean since the sample before. memory_mib: without files that the kernel only keeps for a while."""

    vcpus: Column
    memory_mib: Column

    @property
    def mean_vcpus(self) -> float | None:
        return self.mean(self.vcpus)

    @property
    def peak_vcpus(self) -> float | None:
        return largest_of(self.vcpus)

    @property
    def peak_mib(self) -> float | None:
        return largest_of(self.memory_mib)

    def to_json(self) -> dict[str, Any]:
        figures = {"meanVcpus": self.mean_vcpus, "peakVcpus": self.peak_vcpus, "peakMemoryMib": self.peak_mib}
        columns = {"at": list(self.at), "vcpus": list(self.vcpus), "memoryMib": list(self.memory_mib)}
        return {"index": self.index, "attempt": self.attempt, **figures, **columns}


def tasks_measured(access: Access, view: Mapping[str, Any]) -> list[MeasuredTask]:
    """Of the latest attempts that were measured, by their tasks. None if S3 refuses."""
    return latest(access, layout.uses_uri(view["output"]), task_from) if view["attempts"] else []


def attempt_measured(access: Access, view: Mapping[str, Any], index: int, attempt: int) -> MeasuredTask | None:
    """None if it was not measured, or S3 refuses."""
    return of_attempt(access, layout.uses_uri(view["output"]), (index, attempt), task_from)


def task_from(key: str, body: bytes) -> MeasuredTask | None:
    """None if a program has written something else there."""
    try:
        task, _, columns = samples_from(key, body, ("vcpus", "memoryMib"))
        return MeasuredTask(*task, *columns)
    except (ValueError, TypeError, KeyError, OverflowError):
        return None


def sentence(uses: Sequence[MeasuredTask], view: Mapping[str, Any]) -> str:
    """`0.92 of 2 vCPUs, 1.4 at most, and at most 310 of 2,048 MiB`, over all of them; "" if nothing is known."""
    mean, peak = mean_of(each.mean_vcpus for each in uses), largest_of(each.peak_vcpus for each in uses)
    peak_mib = largest_of(each.peak_mib for each in uses)
    if mean is None or peak is None or peak_mib is None:
        return ""
    asked = f" of {view['vcpus']:g} vCPU{'s' if view['vcpus'] != 1 else ''}" if view.get("vcpus") else " vCPUs"
    memory = f" of {view['memoryMib']:,}" if view.get("memoryMib") else ""
    return f"{mean:.2g}{asked}, {peak:.2g} at most, and at most {peak_mib:,.0f}{memory} MiB"


def advice(uses: Sequence[MeasuredTask], view: Mapping[str, Any], region: str) -> str:
    """`resources {vcpus: 0.5, memory: 384} would cost $0.02 an hour of a task instead of $0.09 (on demand)`; "" if it
    would save little, too little is known, or the run has GPUs, which are what is paid for."""
    peak, peak_mib = largest_of(each.peak_vcpus for each in uses), largest_of(each.peak_mib for each in uses)
    is_short = max((each.at[-1] for each in uses), default=0.0) < _LEAST_S
    has_gpus = view.get("gpus") or view.get("gpuShareMib")
    if peak is None or peak_mib is None or is_short or has_gpus or not view.get("vcpus") or not view.get("memoryMib"):
        return ""
    vcpus = min(view["vcpus"], max(1, math.ceil(peak / _STEP_VCPUS)) * _STEP_VCPUS)
    memory = min(view["memoryMib"], max(1, math.ceil(peak_mib * _MARGIN / _STEP_MIB)) * _STEP_MIB)
    kinds = [kind for kind in load_catalogue(region).values() if not kind.resources.gpus]
    now, then = (
        usd_per_hour(Resources(round(units * CPU_UNITS_PER_VCPU), mib, 0), kinds)
        for units, mib in ((view["vcpus"], view["memoryMib"]), (vcpus, memory))
    )
    if now is None or then is None or then > WORTH * now:
        return ""
    wanted = f"resources {{vcpus: {vcpus:g}, memory: {memory}}}"
    return f"{wanted} would cost ${then:.3g} an hour of a task instead of ${now:.3g} (on demand)"
