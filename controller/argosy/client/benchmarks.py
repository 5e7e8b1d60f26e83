"""What did a benchmark measure, and how do benchmarks compare?

The source is the JSON record of our own program, or another program's log. A log must end as those of tf_cnn_benchmarks
do, `total images/sec: N`. Comments may add what its lines lack: `# instance: p3.16xlarge`, `# gpus: 4`, `# batch: 128
per GPU`, `# images: 51200`, `# seconds: 88.90`.

They are compared by speed, scaling, the whole task with its start, and US dollars per million images. Scaling is
relative to the measurement with the fewest GPUs among those with the same batch per GPU and the same network. Different
batches are different work and are not compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from argosy.model.instance_types import InstanceType

RECORD = "argosy-benchmark/1"  # what our program calls its records
_CLOSING = re.compile(r"^total images/sec:\s*([0-9.]+)\s*$", re.MULTILINE)
_COMMENT = re.compile(r"^#\s*(instance|gpus|batch|images|seconds|model):\s*(\S+)", re.MULTILINE | re.IGNORECASE)
_PER_DEVICE = re.compile(r"^\s*([0-9]+) per device", re.MULTILINE)
_GLOBAL = re.compile(r"^Batch size:\s*([0-9]+) global", re.MULTILINE)
_BATCHES = re.compile(r"^Num batches:\s*([0-9]+)", re.MULTILINE)
_MODEL = re.compile(r"^Model:\s*(\S+)", re.MULTILINE)
_DEVICE = re.compile(r"/gpu:[0-9]+", re.IGNORECASE)
_ELAPSED = re.compile(r"(?:^real\s+(\d+)m([0-9.]+)s|(\d+):([0-9.]+)elapsed)", re.MULTILINE)  # bash's time, GNU's


class NoRecord(ValueError):
    """The text has no measurement; the message says why."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One benchmark. Times in seconds; `gpus` is the number of devices used. unit: images, or tokens of a text.

    total_s: the whole task, without baseline_s, the time on one GPU for comparison with the others.
    share_usd_per_hour: of the part of the instance that the task held. usd: the cost of the task from start to end.
    None means "unknown" everywhere. setting: the values that must be equal for a comparison, besides the batch per GPU.
    """

    source: str
    gpus: int
    batch_per_gpu: int
    units_per_second: float
    setting: tuple[tuple[str, str], ...]
    unit: str = "images"
    units: int | None = None
    total_s: float | None = None
    baseline_s: float = 0.0
    start_up_s: float | None = None
    deviation: float | None = None
    efficiency: float | None = None
    instance_type: str | None = None
    devices: str = ""
    pinned: tuple[str, ...] = ()
    share_usd_per_hour: float | None = None
    usd: float | None = None


def read(text: str, source: str) -> Measurement:
    """From a log or a part. Raises NoRecord."""
    for line in reversed(text.splitlines()):
        if line.startswith("{") and (record := _record(line)) is not None:
            return from_record(record, source, dict(_comments(text)).get("instance"))
    return _from_log(text, source)


def _record(line: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and found.get("record") == RECORD else None


def from_record(record: Mapping[str, Any], source: str, instance_type: str | None = None) -> Measurement:
    """Raises NoRecord for an incomplete record."""
    try:
        names, unit = sorted(set(record["gpuNames"])), str(record.get("unit", "images"))
        return Measurement(
            source=source,
            gpus=int(record["gpus"]),
            batch_per_gpu=int(record["batchPerGpu"]),
            units_per_second=float(record[f"{unit}PerSecond"]),
            setting=tuple((record.get("setting") or _setting_of_tensorflow(record)).items()),
            unit=unit,
            units=int(record[unit]),
            total_s=float(record["totalSeconds"]),
            baseline_s=float(record.get("baselineSeconds", 0.0)),
            start_up_s=float(record["startUpSeconds"]),
            deviation=float(record["deviation"]),
            efficiency=record.get("scalingEfficiency"),
            instance_type=instance_type,
            devices=", ".join(names),
            pinned=tuple(record["pinnedGpus"]),
        )
    except (KeyError, TypeError, ValueError) as fault:
        raise NoRecord(f"its record is damaged: {type(fault).__name__}: {fault}") from fault


def _setting_of_tensorflow(record: Mapping[str, Any]) -> dict[str, str]:
    """Its records have the values one by one."""
    return {
        "model": str(record["model"]),
        "image size": str(record["imageSize"]),
        "precision": str(record["precision"]),
        "XLA": "on" if record["xla"] else "off",
        "emulated": "yes" if record["emulated"] else "no",
    }


def _comments(text: str) -> list[tuple[str, str]]:
    return [(name.lower(), value) for name, value in _COMMENT.findall(text)]


def _from_log(text: str, source: str) -> Measurement:
    closing = _CLOSING.search(text)
    if closing is None:
        raise NoRecord("it has no line `total images/sec: N`")
    said = dict(_comments(text))
    gpus = _number(said.get("gpus")) or len(set(_DEVICE.findall(text)))
    batch = _number(said.get("batch")) or _first(_PER_DEVICE, text) or (_first(_GLOBAL, text) or 0) // max(gpus, 1)
    missing = [what for what, value in (("the number of GPUs", gpus), ("the batch per GPU", batch)) if not value]
    if missing:
        raise NoRecord(f"it lacks {' and '.join(missing)}: add `# gpus: N` or `# batch: N`")
    batches = _first(_BATCHES, text)
    model = said.get("model") or (found[1] if (found := _MODEL.search(text)) else "?")
    return Measurement(
        source=source,
        gpus=gpus,
        batch_per_gpu=batch,
        units_per_second=float(closing[1]),
        setting=(("model", model),),
        units=_number(said.get("images")) or (batches * batch * gpus if batches else None),
        total_s=_seconds(said.get("seconds"), text),
        instance_type=said.get("instance"),
    )


def _first(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    return int(found[1]) if found else None


def _number(text: str | None) -> int | None:
    digits = (text or "").replace(",", "")
    return int(digits) if digits.isdecimal() else None


def _seconds(comment: str | None, text: str) -> float | None:
    if comment:
        try:
            return float(comment)
        except ValueError:
            return None
    if (found := _ELAPSED.search(text)) is None:
        return None
    minutes, seconds = (found[1], found[2]) if found[1] else (found[3], found[4])
    return int(minutes) * 60 + float(seconds)


MILLION = 1_000_000


def is_comparable(one: Measurement, other: Measurement) -> bool:
    """Whether both did the same work, regardless of the number of GPUs."""
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
    """One row for each, in the same order. Rates in units per second, money in USD, shares 0..1, None = unknown."""
    return [_row(each, _reference(each, measurements)) for each in measurements]


def _reference(measured: Measurement, every: Sequence[Measurement]) -> Measurement:
    return min((each for each in every if is_comparable(each, measured)), key=lambda each: each.gpus)


def _row(measured: Measurement, reference: Measurement) -> dict[str, Any]:
    is_compared = reference is not measured
    times = measured.units_per_second / reference.units_per_second
    per_hour, whole = measured.units_per_second * 3600, None
    unit, capital = measured.unit, measured.unit.capitalize()
    if measured.units and measured.total_s:
        whole = measured.units / measured.total_s
    return {
        "source": measured.source,
        "gpus": measured.gpus,
        "devices": measured.devices or None,
        "pinnedGpus": list(measured.pinned),
        "instanceType": measured.instance_type,
        "batchPerGpu": measured.batch_per_gpu,
        "setting": dict(measured.setting),
        "unit": unit,
        f"{unit}PerSecond": measured.units_per_second,
        "deviation": measured.deviation,
        "comparedWith": reference.source if is_compared else None,
        "scaling": times if is_compared else None,
        "shareOfLinear": times * reference.gpus / measured.gpus if is_compared else None,
        "scalingEfficiency": measured.efficiency,
        f"wholeTask{capital}PerSecond": whole,
        "startUpSeconds": measured.start_up_s,
        f"usdPerMillion{capital}": _per_million(measured.share_usd_per_hour, per_hour),
        f"wholeTaskUsdPerMillion{capital}": _per_million(measured.usd, measured.units),
    }


def _per_million(usd: float | None, units: float | None) -> float | None:
    return usd / units * MILLION if usd is not None and units else None
