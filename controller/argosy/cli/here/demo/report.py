"""The measurements of the demo. Every figure is read from the runs' views, manifests and parts; none is assumed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from argosy.cli import figures
from argosy.cli.tables import facts_grid

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


def summary(
    runs: Sequence[View], manifests: Sequence[View], cluster: View, rows: Sequence[View], taken: Sequence[str]
) -> dict[str, Any]:
    """The contents of out/demo/summary.json; money unrounded, shares 0..1. The first run is the one with the images.

    taken: ids of the instances that were interrupted.
    """
    entries = [entry for manifest in manifests for entry in manifest["entries"]]
    gpu_entries = [entry for run, m in zip(runs, manifests, strict=True) if run["gpus"] for entry in m["entries"]]
    return {
        "runs": [{key: run[key] for key in ("runId", "status", "tasks", *_SUMMED, "output")} for run in runs],
        "tasks": {key: sum(run["tasks"][key] for run in runs) for key in runs[0]["tasks"]},
        **{key: sum(run[key] for run in runs) for key in _SUMMED},
        "images": len(rows),
        "accuracy": accuracy(rows),
        "instances": len({entry["instance"] for entry in entries if entry["instance"]} | set(taken)),
        "instancesInterrupted": len(taken),
        "instancesBought": dict(Counter(sorted(each["instanceType"] for each in cluster["instances"]))),
        "peakUtilisation": dict(cluster["peakUtilisation"]),
        "spentOn": {key: sum(run["cost"]["byWaste"][key] for run in runs) for key in runs[0]["cost"]["byWaste"]},
        "clusterCostUsd": cluster["spentUsd"],
        "clusterOnDemandCostUsd": cluster["onDemandUsd"],
        "gpuTasks": [{key: entry[key] for key in ("index", "instance", "gpuIds")} for entry in gpu_entries],
    }


def plan_held(forecast: View, view: View) -> dict[str, Any]:
    """The forecast of a run next to its final cost, and whether that is within its range."""
    cost = forecast["costUsd"]
    return {
        "runId": view["runId"],
        "costUsd": dict(cost),
        "actualCostUsd": view["costUsd"],
        "held": cost["low"] <= view["costUsd"] <= cost["high"],
    }


def gpu_line(tasks: Sequence[View]) -> str:
    """`8 tasks on 2 instances used 8 GPUs, none of them twice`."""
    hosts = {each["instance"] for each in tasks}
    gpus = Counter(gpu for each in tasks for gpu in each["gpuIds"])
    again = sum(count > 1 for count in gpus.values())
    reuse = f"{again} of them by several tasks" if again else "none of them by more than one task"
    on = f"{figures.counted(len(tasks), 'task')} on {figures.counted(len(hosts), 'instance')}"
    return f"{on} used {figures.counted(len(gpus), 'GPU')}, {reuse}"


def closing_table(found: View, results: Path) -> Table:
    """The summary for a person."""
    tasks = found["tasks"]
    rows = [
        ("accuracy", f"{100 * found['accuracy']:.1f} % of {found['images']:,} images"),
        ("tasks", f"{tasks['succeeded']:,} of {tasks['total']:,} succeeded, {tasks['failed']:,} failed"),
        ("attempts", f"{found['attempts']:,}, {found['interruptions']:,} interrupted"),
        ("instances", _instances(found)),
        ("GPUs", gpu_line(found["gpuTasks"])),
        ("peak use", _peak(found["peakUtilisation"]) or "not measured"),
        ("cost", f"{figures.cost(found)} for the runs, at simulated spot prices"),
        ("spent on", _spent_on(found["spentOn"], found["costUsd"])),
        ("bill", f"{_bill(found)} for the cluster, idle time included"),
        *([("forecast", _forecast(found["plan"]))] if "plan" in found else []),
        ("took", figures.duration(found["seconds"])),
        ("results", f"{results}/"),
    ]
    return facts_grid(rows)


def _forecast(plan: View) -> str:
    """`$0.00107 (0.00058 to 0.00226) for the first run, which cost $0.00113: held`."""
    cost = plan["costUsd"]
    said = f"{figures.money(cost['expected'])}, between {figures.money(cost['low'])} and {figures.money(cost['high'])}"
    verdict = "held" if plan["held"] else "missed"
    return f"{said} for the first run, which cost {figures.money(plan['actualCostUsd'])}: {verdict}"


def _instances(found: View) -> str:
    bought = ", ".join(f"{count} x {name}" for name, count in found["instancesBought"].items())
    return f"{found['instances']} used, {found['instancesInterrupted']} of them interrupted; bought {bought}"


def _peak(peak: View) -> str:
    names = {"cpu": "CPU", "memory": "memory", "gpus": "GPU"}
    return ", ".join(f"{name} {100 * peak[key]:.0f} %" for key, name in names.items() if peak.get(key) is not None)


def _spent_on(parts: View, total: float) -> str:
    """`useful 31 %, boot 2 %, idle 67 %`: the money of all runs by its use."""
    kinds = ((key.removesuffix("Usd"), usd) for key, usd in parts.items())
    return ", ".join(f"{kind} {figures.share(usd, total)}" for kind, usd in kinds if usd) or "nothing"


def _bill(found: View) -> str:
    return figures.cost({"costUsd": found["clusterCostUsd"], "onDemandCostUsd": found["clusterOnDemandCostUsd"]})
