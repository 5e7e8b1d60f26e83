"""How fast and how well are recorded tasks placed on recorded instances (`bench place`)?"""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli.outside_text import say
from argosy.cli.problems import CliError
from argosy.cli.session import Session

if TYPE_CHECKING:
    from argosy.placement.demand import Queue
    from argosy.placement.place import Assignment
    from argosy.placement.supply import Supply


@dataclass(frozen=True)
class PlacementInput:
    """The tasks, the instances, the strategy, and the file for the result."""

    instances: Annotated[
        Path, typer.Option(metavar="FILE", help="CSV: instanceId,instanceType,availabilityZone,cpu,memory,gpus")
    ]
    tasks: Annotated[Path, typer.Option(metavar="FILE", help="CSV, first in first out: taskId,cpu,memory,gpus,count")]
    strategy: Annotated[
        str | None,
        typer.Option(metavar="CHAIN", help="e.g. best-fit or spread:attribute:ecs.availability-zone,binpack:memory"),
    ] = None
    constraint: Annotated[
        list[str] | None,
        typer.Option(metavar="EXPR", help="A placement expression, or distinctInstance; may be repeated."),
    ] = None
    assignments: Annotated[
        Path | None, typer.Option(metavar="OUT.csv", help="Write taskId,instanceId,count of what was placed.")
    ] = None
    repeat: Annotated[int, typer.Option(min=1, max=1_000, help="Place this many times; the median counts.")] = 3


def place(session: Session, options: PlacementInput) -> None:
    """Place the tasks of one file on the instances of another, and measure it."""
    from argosy.placement.place import place_queue
    from argosy.placement.query import check_constraints, check_strategy
    from tests.harness.bench.placement_files import chain_of, read_instances, read_tasks

    chain = None if options.strategy is None else chain_of(options.strategy)
    constraints = tuple(options.constraint or ())
    if faults := check_strategy(chain or ()) + check_constraints(constraints):
        raise CliError(faults[0], details=faults[1:])
    supply = read_instances(options.instances)
    ids, queue = read_tasks(options.tasks, chain, constraints)
    seconds = []
    for _ in range(options.repeat):
        started = time.perf_counter()
        plan = place_queue(queue, supply)
        seconds.append(time.perf_counter() - started)
    if options.assignments is not None:
        _write(options.assignments, ids, supply, plan)
    report = _report(queue, supply, plan, seconds)
    if session.wants_json:
        session.print_json(report)
    else:
        say("\n".join(f"{name:20} {value}" for name, value in report.items()))


def _report(queue: Queue, supply: Supply, plan: Assignment, seconds: Sequence[float]) -> dict[str, Any]:
    import numpy as np

    median = statistics.median(seconds)
    needs = np.array([kind.need for kind in queue.kinds], dtype=np.int64).reshape(-1, 3)
    used = plan.count @ needs[queue.kind[plan.batch]]
    total = supply.total.sum(axis=1)
    cpu, memory, gpu = (round(100 * int(u) / int(t), 4) if t else 0.0 for u, t in zip(used, total, strict=True))
    return {
        "placed": plan.placed,
        "unplaced": int(plan.unplaced.sum()),
        "instancesUsed": len(np.unique(plan.row)),
        "secondsMedian": median,
        "tasksPerSecond": round(plan.placed / median, 1),
        "cpuAllocatedPct": cpu,
        "memoryAllocatedPct": memory,
        "gpuAllocatedPct": gpu,
        "peakRssMib": round(_peak_rss_mib(), 1),
    }


def _peak_rss_mib() -> float:
    """Linux counts KiB, macOS bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def _write(path: Path, ids: Sequence[str], supply: Supply, plan: Assignment) -> None:
    import csv

    columns = zip(plan.batch.tolist(), plan.row.tolist(), plan.count.tolist(), strict=True)
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["taskId", "instanceId", "count"])
            writer.writerows((ids[batch], supply.ids[row], count) for batch, row, count in columns)
    except OSError as error:
        raise CliError(f"{path}: {error.strerror or error}.") from None
