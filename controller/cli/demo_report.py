"""What did the demo measure? Every figure is read from the runs' views, manifests and parts; none is assumed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from controller.cli import figures

View = Mapping[str, Any]
_SUMMED = ("attempts", "interruptions", "costUsd", "onDemandCostUsd")


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """The rows of all part files below `folder`."""
    lines = (line for part in sorted(folder.glob("**/part-*.jsonl")) for line in part.read_text().splitlines())
    return [json.loads(line) for line in lines]


def accuracy(rows: Sequence[View]) -> float:
    """Share (0..1) of images whose predicted digit is the true one. Raises ValueError when an image appears twice."""
    if len({row["index"] for row in rows}) != len(rows):
        raise ValueError("an image was classified twice")
    return sum(row["label"] == row["predicted"] for row in rows) / len(rows) if rows else 0.0


def summary(runs: Sequence[View], manifests: Sequence[View], cluster: View, rows: Sequence[View], took_s: float) -> Any:
    """What out/demo/summary.json holds; money unrounded, shares 0..1. The first run is the one with the images."""
    entries = [entry for manifest in manifests for entry in manifest["entries"]]
    gpu_entries = [entry for run, m in zip(runs, manifests, strict=True) if run["gpus"] for entry in m["entries"]]
    return {
        "runs": [{key: run[key] for key in ("runId", "status", "tasks", *_SUMMED, "output")} for run in runs],
        "tasks": {key: sum(run["tasks"][key] for run in runs) for key in runs[0]["tasks"]},
        **{key: sum(run[key] for run in runs) for key in _SUMMED},
        "images": len(rows),
        "accuracy": accuracy(rows),
        "instances": len(used_instances(cluster, entries)),
        "instanceTypes": instance_types(cluster),
        "peakUtilisation": dict(cluster["peakUtilisation"]),
        "clusterSpentUsd": cluster["spentUsd"],
        "clusterOnDemandUsd": cluster["onDemandUsd"],
        "gpuTasks": [{key: entry[key] for key in ("index", "instance", "gpuIds")} for entry in gpu_entries],
        "seconds": took_s,
    }


def used_instances(cluster: View, entries: Iterable[View]) -> set[str]:
    """Ids of all instances that were ever there or produced a result."""
    return {each["instanceId"] for each in cluster["instances"]} | {e["instance"] for e in entries if e["instance"]}


def instance_types(cluster: View) -> dict[str, int]:
    counts: dict[str, int] = {}
    for each in cluster["instances"]:
        counts[each["instanceType"]] = counts.get(each["instanceType"], 0) + 1
    return dict(sorted(counts.items()))


def closing_table(found: View, results: Path) -> Table:
    tasks, peak = found["tasks"], found["peakUtilisation"]
    used = ", ".join(
        f"{name} {100 * peak[key]:.0f} %"
        for key, name in (("cpu", "CPU"), ("memory", "memory"), ("gpus", "GPU"))
        if peak.get(key) is not None
    )
    types = ", ".join(f"{count} x {name}" for name, count in found["instanceTypes"].items())
    gpus = "; ".join(f"task {each['index']}: {','.join(each['gpuIds'])}" for each in found["gpuTasks"])
    less = figures.saved(found["costUsd"], found["onDemandCostUsd"])
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in (
        ("accuracy", f"{100 * found['accuracy']:.1f} % of {found['images']:,} images"),
        ("tasks", f"{tasks['succeeded']:,} of {tasks['total']:,} succeeded, {tasks['failed']:,} failed"),
        ("attempts", f"{found['attempts']:,}, {figures.counted(found['interruptions'], 'interruption')}"),
        ("instances", f"{found['instances']} used: {types}"),
        ("GPUs", gpus),
        ("peak use", used or "not measured"),
        ("cost", f"{figures.money(found['costUsd'])} at spot prices (emulated)"),
        ("on-demand", f"{figures.money(found['onDemandCostUsd'])}{', spot is ' + less if less else ''}"),
        ("took", figures.duration(found["seconds"])),
        ("results", f"{results}/"),
    ):
        grid.add_row(name, value)
    return grid
