"""What would Argosy buy for a recorded backlog (`bench allocate`)?
The report also says how far the cost is from the cheapest possible.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli.outside_text import say
from argosy.cli.problems import CliError
from argosy.cli.session import Session

if TYPE_CHECKING:
    from argosy.market.allocation.allocate import Allocation
    from argosy.market.allocation.effort import Clock
    from argosy.market.allocation.problem import Problem
    from tests.harness.bench.allocation_files import PoolName


@dataclass(frozen=True)
class AllocationInput:
    """The backlog, the pools, and the time to search."""

    pools: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="CSV: region,availabilityZone,instanceType,cpu,memory,gpus,priceUsdPerHour,maxInstances; "
            "also maxTasks, the most tasks on one instance, and gpuMib, of one GPU for shares; an interruptionRate is "
            "checked, not priced.",
        ),
    ]
    backlog: Annotated[
        Path, typer.Option(metavar="FILE", help="CSV: shapeId,cpu,memory,gpus,count; also gpuShareMib, of one GPU")
    ]
    max_share: Annotated[
        float | None,
        typer.Option(metavar="F", help="Largest share of the bought cpu of one instance type, above 0, up to 1."),
    ] = None
    seconds: Annotated[
        float, typer.Option(metavar="N", min=0, max=3_600, help="Search for about this long at most.")
    ] = 10.0
    cpu_time: Annotated[
        bool, typer.Option("--cpu-time", help="Count processor time, which a busy machine stretches less.")
    ] = False
    plan: Annotated[
        Path | None, typer.Option(metavar="OUT.json", help="Write which tasks run on how many instances of each pool.")
    ] = None
    warm: Annotated[
        bool,
        typer.Option("--warm", help="Plan again as the next tick would: same patterns, demand +-10 %, prices +-3 %."),
    ] = False


def allocate(session: Session, options: AllocationInput) -> None:
    """Buy the cheapest instances for a backlog from the pools of a file, and measure it."""
    from argosy.market.allocation.allocate import allocate as allocated
    from argosy.market.allocation.effort import THOROUGH
    from argosy.market.allocation.problem import Problem as Asked
    from tests.harness.bench.allocation_files import read_backlog, read_pools

    if options.max_share is not None and not 0 < options.max_share <= 1:
        raise CliError(
            f"--max-share {options.max_share:g} is not a share above 0, up to 1.", next_step="e.g. --max-share 0.25"
        )
    names, offered = read_pools(options.pools)
    shapes, wanted = read_backlog(options.backlog)
    problem = Asked(offered, wanted, options.max_share)
    clock = time.process_time if options.cpu_time else time.perf_counter
    started = clock()
    found = allocated(problem, THOROUGH.within(options.seconds, clock))
    report = _report(found, shapes, clock() - started)
    if options.warm:
        report |= _again(problem, found, options.seconds, clock)
    if options.plan is not None:
        _write(options.plan, {"pools": _pools(found, names, shapes)})
    for line in _remarks(problem, found, shapes):
        say(line, err=True)
    if session.wants_json:
        session.print_json(report)
    else:
        say("\n".join(f"{name:22} {value}" for name, value in report.items()))


def _again(problem: Problem, found: Allocation, seconds: float, clock: Clock) -> dict[str, Any]:
    """The figures of a second plan that starts from the patterns of the first. The changes are the same in each run."""
    import numpy as np

    from argosy.market.allocation.allocate import allocate as allocated
    from argosy.market.allocation.effort import THOROUGH
    from argosy.market.allocation.problem import Problem as Changed

    rng = np.random.default_rng(0)
    offered = replace(
        problem.offered, price=problem.offered.price * rng.uniform(0.97, 1.03, len(problem.offered.price))
    )
    count = (problem.backlog.count * rng.uniform(0.9, 1.1, len(problem.backlog.count))).astype(np.int64)
    changed = Changed(offered, replace(problem.backlog, count=count), problem.max_share)
    started = clock()
    next_one = allocated(changed, THOROUGH.within(seconds, clock), kept=found.kept)
    took = clock() - started
    gap = round(100 * next_one.gap, 4) if next_one.gap < float("inf") else None
    return {"warmSeconds": round(took, 4), "warmGapPct": gap, "patternsKept": len(found.kept)}


def _report(found: Allocation, shapes: Sequence[str], seconds: float) -> dict[str, Any]:
    left_out = zip(shapes, found.left_out.tolist(), strict=True)
    return {
        "usdPerHour": round(found.usd_per_hour, 6),
        "lowerBoundUsdPerHour": max(0.0, round(found.lower_bound_usd_per_hour - 5e-7, 6)),
        "gapPct": round(100 * found.gap, 4) if found.gap < float("inf") else None,
        "seconds": round(seconds, 4),
        "instances": found.instances,
        "pools": len(set(found.pool.tolist())),
        "method": found.method,
        "unplaced": {shape: count for shape, count in left_out if count},
    }


def _remarks(problem: Any, found: Allocation, shapes: Sequence[str]) -> list[str]:
    """Which shapes are left out, with the reason."""
    lines = []
    for number, shape in enumerate(shapes):
        if problem.unplaceable[number]:
            lines.append(f"no pool can hold a task of shape {shape}: {_sized(problem, number)}. The rest is planned.")
        elif found.left_out[number]:
            limit = "their pools are sold out" + (" or at their share" if problem.max_share is not None else "")
            lines.append(f"{found.left_out[number]} tasks of shape {shape} have no place: {limit}.")
    return lines


def _sized(problem: Any, number: int) -> str:
    cpu, memory, gpus = problem.backlog.need[number].tolist()
    return f"{cpu} cpu units, {memory} MiB, {gpus} GPUs"


def _pools(found: Allocation, names: Sequence[PoolName], shapes: Sequence[str]) -> list[dict[str, Any]]:
    """One entry per pool with purchases, in the order of the file."""
    entries: dict[int, dict[str, Any]] = {}
    for lot in found.lots:
        name = names[lot.pool]
        at = {"region": name.region, "availabilityZone": name.zone, "instanceType": name.instance_type, "patterns": []}
        held = zip(lot.shape.tolist(), lot.count.tolist(), strict=True)
        counts = {shapes[shape]: count for shape, count in held}
        entries.setdefault(lot.pool, at)["patterns"].append({"counts": counts, "instances": lot.times})
    return list(entries.values())


def _write(path: Path, plan: dict[str, Any]) -> None:
    try:
        path.write_text(json.dumps(plan, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise CliError(f"{path}: {error.strerror or error}.") from None
