"""What did the TensorFlow demo measure?
Every figure is read from runs, parts and records; none is assumed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from argosy import layout
from argosy.cli import figures
from argosy.cli.runs.report import of_run, table
from argosy.cli.session import Session
from argosy.cli.tables import PlainTable, facts_grid
from argosy.client.benchmarks import comparison

View = Mapping[str, Any]
TRAINED_ON = 900  # images that the model has seen
_SUMMED = ("attempts", "interruptions", "costUsd", "onDemandCostUsd")


@dataclass(frozen=True)
class ClassifiedRows:
    """All rows of the parts, and the true digit of each image by its number."""

    rows: Sequence[View]
    truth: Sequence[int]

    def accuracy(self, first: int = 0) -> float:
        """Share (0..1) of the images from number `first` on with the right label. ValueError if one occurs twice."""
        if len({row["index"] for row in self.rows}) != len(self.rows):
            raise ValueError("an image was classified twice")
        rows = [row for row in self.rows if row["index"] >= first]
        right = sum("top" in row and row["top"][0]["label"] == str(self.truth[row["index"]]) for row in rows)
        return right / len(rows) if rows else 0.0


def rows_of(folder: Path) -> list[dict[str, Any]]:
    lines = (line for part in sorted(folder.glob("**/part-*.jsonl")) for line in part.read_text().splitlines())
    return [json.loads(line) for line in lines]


def part_facts(inside: Session, view: View, manifest: View) -> list[dict[str, float]]:
    """How each part was made, from its metadata: images, errors, resumed, seconds."""
    bucket, _ = layout.split_s3(str(view["output"]))
    keys = [key for entry in manifest["entries"] for key in entry["keys"]]
    found = []
    for key in (
        key for key in keys if Path(key).name.startswith("part-")
    ):  # an attempt's benchmark.json is a result too
        metadata = inside.client("s3").head_object(Bucket=bucket, Key=key)["Metadata"]
        names = ("images", "errors", "resumed", "seconds")
        found.append({name: float(metadata[f"argosy-{name}"]) for name in names})
    return found


def benchmarks(inside: Session, views: Sequence[View]) -> list[dict[str, Any]]:
    """The rows of `argosy report benchmark` for these runs."""
    measured = [each for view in views if view["status"] == "SUCCEEDED" for each in of_run(inside, view["runId"])]
    return comparison(measured)


def summary(
    view: View,
    ended: Sequence[View],
    facts: Sequence[View],
    found: ClassifiedRows,
    measured: Sequence[View],
) -> dict[str, Any]:
    """The content of summary.json; money unrounded in USD, shares 0..1. `ended`: the benchmark runs."""
    fresh = sum(each["images"] - each["resumed"] for each in facts)
    seconds = sum(each["seconds"] for each in facts)
    pinned = [gpu for each in measured for gpu in each["pinnedGpus"]]
    return {
        "run": {key: view[key] for key in ("runId", "status", "tasks", "output")},
        **{key: view[key] for key in _SUMMED},
        "images": len(found.truth),
        "rows": len(found.rows),
        "errors": sum("error" in row for row in found.rows),
        "accuracy": found.accuracy(),
        "accuracyOnUnseen": found.accuracy(TRAINED_ON),
        "rowsFromCheckpoints": int(sum(each["resumed"] for each in facts)),
        "imagesPerSecond": fresh / seconds if seconds else 0.0,
        "usdPerMillionImages": view["costUsd"] / len(found.rows) * 1_000_000 if found.rows else 0.0,
        "benchmarks": list(measured),
        "benchmarkRuns": [{key: each[key] for key in ("runId", "status", "costUsd")} for each in ended],
        "gpusPinnedTwice": len(pinned) - len(set(pinned)),
    }


def closing_table(found: View, results: Path) -> Table:
    """The summary for a person."""
    unseen = f"{100 * found['accuracyOnUnseen']:.1f} % of those that the model had not seen"
    rows = [
        ("accuracy", f"{100 * found['accuracy']:.1f} % of {found['rows']:,} images, {unseen}"),
        ("tasks", f"{found['run']['tasks']['succeeded']} of {found['run']['tasks']['total']} succeeded"),
        ("attempts", f"{found['attempts']}, {found['interruptions']} interrupted"),
        ("checkpoints", f"{found['rowsFromCheckpoints']} rows were taken over by a retry, none was made twice"),
        ("speed", f"{found['imagesPerSecond']:.0f} images/s in each task, once TensorFlow has started"),
        ("cost", f"{figures.cost(found)} for the run, starts and pretended work included"),
        ("per million", f"{figures.money(found['usdPerMillionImages'])} per million images"),
        ("GPUs", _gpu_line(found)),
        ("took", figures.duration(found["seconds"])),
        ("results", f"{results}/"),
    ]
    return facts_grid(rows)


def _gpu_line(found: View) -> str:
    pinned = sum(len(each["pinnedGpus"]) for each in found["benchmarks"])
    again = found["gpusPinnedTwice"]
    reuse = f"{again} of them to several tasks" if again else "none of them to two tasks"
    return f"{figures.counted(pinned, 'emulated GPU')} pinned to {len(found['benchmarks'])} benchmarks, {reuse}"


def benchmark_table(found: View) -> PlainTable:
    return table(found["benchmarks"])
