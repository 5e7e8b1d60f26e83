"""Benchmarks compared by speed, scaling, the whole task with its start, and US dollars per million images.

Scaling is relative to the measurement with the fewest GPUs among those with the same batch per GPU and the same
network. Different batches are different work and are not compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from argosy.client.benchmarks.records import Measurement
from argosy.model.instance_types import InstanceType

MILLION = 1_000_000


def is_comparable(one: Measurement, other: Measurement) -> bool:
    """Whether both did the same work, on however many GPUs."""
    return one.batch_per_gpu == other.batch_per_gpu and one.setting == other.setting


def priced(measured: Measurement, catalogue: Mapping[str, InstanceType]) -> Measurement:
    """With the on-demand price of the GPUs' share of the instance, unless the run's own cost is known."""
    kind = catalogue.get(measured.instance_type or "")
    is_known = measured.usd is not None or measured.share_usd_per_hour is not None
    if is_known or kind is None or not kind.gpus:
        return measured
    share = kind.on_demand_usd_per_hour * measured.gpus / kind.gpus
    whole = None if measured.total_s is None else share * measured.total_s / 3600
    return replace(measured, share_usd_per_hour=share, usd=whole)


def paid(measured: Measurement, seconds: float, usd: float, usd_per_hour: float | None) -> Measurement:
    """With the price that a run paid for the task: `usd` for all its `seconds`, without the part spent on the one-GPU
    baseline.

    usd_per_hour: of the task's share of its instance while it worked; None if unknown.
    """
    if not seconds:
        return replace(measured, usd=usd, share_usd_per_hour=usd_per_hour)
    own = max(seconds - measured.baseline_s, 0.0)
    return replace(measured, usd=usd * own / seconds, share_usd_per_hour=usd_per_hour, total_s=own or measured.total_s)


def comparable_groups(measurements: Sequence[Measurement]) -> list[list[Measurement]]:
    """Measurements of the same work together, in the order in which they first appear."""
    groups: list[list[Measurement]] = []
    for each in measurements:
        group = next((known for known in groups if is_comparable(known[0], each)), None)
        groups.append([each]) if group is None else group.append(each)
    return groups


def comparison(measurements: Sequence[Measurement]) -> list[dict[str, Any]]:
    """One row for each, in the same order. Rates in images per second, money in USD, shares 0..1, None = unknown."""
    return [_row(each, _reference(each, measurements)) for each in measurements]


def _reference(measured: Measurement, every: Sequence[Measurement]) -> Measurement:
    return min((each for each in every if is_comparable(each, measured)), key=lambda each: each.gpus)


def _row(measured: Measurement, reference: Measurement) -> dict[str, Any]:
    is_compared = reference is not measured
    times = measured.images_per_second / reference.images_per_second
    per_hour, whole = measured.images_per_second * 3600, None
    if measured.images and measured.total_s:
        whole = measured.images / measured.total_s
    return {
        "source": measured.source,
        "gpus": measured.gpus,
        "devices": measured.devices or None,
        "pinnedGpus": list(measured.pinned),
        "instanceType": measured.instance_type,
        "batchPerGpu": measured.batch_per_gpu,
        "setting": dict(measured.setting),
        "imagesPerSecond": measured.images_per_second,
        "deviation": measured.deviation,
        "comparedWith": reference.source if is_compared else None,
        "scaling": times if is_compared else None,
        "shareOfLinear": times * reference.gpus / measured.gpus if is_compared else None,
        "scalingEfficiency": measured.efficiency,
        "wholeTaskImagesPerSecond": whole,
        "startUpSeconds": measured.start_up_s,
        "usdPerMillionImages": _per_million(measured.share_usd_per_hour, per_hour),
        "wholeTaskUsdPerMillionImages": _per_million(measured.usd, measured.images),
    }


def _per_million(usd: float | None, images: float | None) -> float | None:
    return usd / images * MILLION if usd is not None and images else None
