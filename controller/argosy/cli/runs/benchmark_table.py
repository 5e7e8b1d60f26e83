"""How do benchmarks compare? Speed, scaling, the whole task with its start, and US dollars per million images.

Scaling is against the measurement with the fewest GPUs among those with the same batch per GPU and the same network:
images per second with other batches are other work, and are not compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.table import Table
from rich.text import Text

from argosy.cli import figures
from argosy.cli.runs.benchmark_records import Measurement
from argosy.cli.runs.run_views import plain_table
from argosy.model.instance_types import InstanceType

MILLION = 1_000_000


def alike(one: Measurement, other: Measurement) -> bool:
    return one.batch_per_gpu == other.batch_per_gpu and one.setting == other.setting


def priced(measured: Measurement, catalogue: Mapping[str, InstanceType]) -> Measurement:
    """With the on-demand price of the GPUs' share of the instance, unless what the run paid is known already."""
    kind = catalogue.get(measured.instance_type or "")
    is_known = measured.usd is not None or measured.share_usd_per_hour is not None
    if is_known or kind is None or not kind.gpus:
        return measured
    share = kind.on_demand_usd_per_hour * measured.gpus / kind.gpus
    whole = None if measured.total_s is None else share * measured.total_s / 3600
    return replace(measured, share_usd_per_hour=share, usd=whole)


def comparison(measurements: Sequence[Measurement]) -> list[dict[str, Any]]:
    """One row each, in the order given; rates in images per second, money in USD, shares 0..1, None = not known."""
    return [_row(each, _reference(each, measurements)) for each in measurements]


def _reference(measured: Measurement, every: Sequence[Measurement]) -> Measurement:
    return min((each for each in every if alike(each, measured)), key=lambda each: each.gpus)


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


def notes(measurements: Sequence[Measurement]) -> list[str]:
    """A sentence for each two kinds of measurement that are not compared, saying what differs."""
    kinds: list[list[Measurement]] = []
    for each in measurements:
        kind = next((known for known in kinds if alike(known[0], each)), None)
        kinds.append([each]) if kind is None else kind.append(each)
    return [
        f"not compared: {_names(first)} with {_names(second)}: {_difference(first[0], second[0])}"
        for number, first in enumerate(kinds)
        for second in kinds[number + 1 :]
    ]


def _names(kind: Sequence[Measurement]) -> str:
    return ", ".join(f"{each.source} ({figures.counted(each.gpus, 'GPU')})" for each in kind)


def _difference(one: Measurement, other: Measurement) -> str:
    parts = []
    if one.batch_per_gpu != other.batch_per_gpu:
        parts.append(f"unlike batches per GPU, {one.batch_per_gpu} and {other.batch_per_gpu} images")
    mine, theirs = dict(one.setting), dict(other.setting)
    for name in dict.fromkeys([*mine, *theirs]):
        if mine.get(name) != theirs.get(name):
            parts += [f"{name} {mine.get(name, 'not said')} and {theirs.get(name, 'not said')}"]
    return "; ".join(parts)


def table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """For a person; `base` is what the others of its kind are compared with."""
    columns = (">GPUS", ">BATCH/GPU", ">IMAGES/S", ">+/-", ">SCALING", ">LINEAR", ">WHOLE TASK", ">$/M", ">$/M WHOLE")
    grid = plain_table(*columns, "MEASURED BY")
    bases = {row["comparedWith"] for row in rows}
    for row in rows:
        grid.add_row(
            str(row["gpus"]),
            str(row["batchPerGpu"]),
            f"{row['imagesPerSecond']:.2f}",
            _shown(row["deviation"], "{:.1f}"),
            _shown(row["scaling"], "{:.2f} x", "base" if row["source"] in bases else "-"),
            _shown(row["shareOfLinear"], "{:.0%}"),
            _shown(row["wholeTaskImagesPerSecond"], "{:.1f}"),
            _money(row["usdPerMillionImages"]),
            _money(row["wholeTaskUsdPerMillionImages"]),
            Text(_who(row)),
        )
    return grid


def _who(row: Mapping[str, Any]) -> str:
    emulated = row["setting"].get("emulated") == "yes" and row["pinnedGpus"]
    parts = [row["source"], row["instanceType"], row["devices"]]
    parts += [f"{figures.counted(len(row['pinnedGpus']), 'GPU')} pinned, CPUs in their place"] if emulated else []
    return ", ".join(str(part) for part in parts if part)


def _shown(value: float | None, pattern: str, without: str = "-") -> str:
    return without if value is None else pattern.format(value)


def _money(usd: float | None) -> str:
    return "-" if usd is None else figures.money(usd)
