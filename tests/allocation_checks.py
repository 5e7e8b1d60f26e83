"""An independent judge of allocations: does a plan hold the tasks that it claims, and what would the cheapest plan have
cost?

Plain Python on the files and on the written plan, slow and obvious; it shares no code with the allocator.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import highspy
import numpy as np
import pytest

from argosy.market.allocation.allocate import Allocation
from argosy.market.allocation.problem import Problem

Size = tuple[int, int, int]


def faults_of_plan(
    plan: Mapping[str, Any],
    pools: Sequence[Mapping[str, str]],
    backlog: Sequence[Mapping[str, str]],
    report: Mapping[str, Any],
) -> list[str]:
    """The faults of `plan`, as written by `--plan`, given the records of both files and the JSON report."""
    faults: list[str] = []
    by_name = {(pool["region"], pool["availabilityZone"], pool["instanceType"]): pool for pool in pools}
    needs = {row["shapeId"]: (int(row["cpu"]), int(row["memory"]), int(row["gpus"])) for row in backlog}
    placed: Counter[str] = Counter()
    usd, instances = 0.0, 0
    for entry in plan["pools"]:
        pool = by_name[entry["region"], entry["availabilityZone"], entry["instanceType"]]
        for pattern in entry["patterns"]:
            faults += _faults_of_pattern(pattern, pool, needs)
            placed.update({shape: count * pattern["instances"] for shape, count in pattern["counts"].items()})
        bought = sum(pattern["instances"] for pattern in entry["patterns"])
        if bought > int(pool["maxInstances"]):
            faults.append(f"{pool}: {bought} instances")
        usd += bought * float(pool["priceUsdPerHour"])
        instances += bought
    for row in backlog:
        shape = row["shapeId"]
        if placed[shape] + report["unplaced"].get(shape, 0) != int(row["count"]):
            faults.append(f"{shape}: {placed[shape]} placed of {row['count']}")
    if abs(usd - report["usdPerHour"]) > 1e-6 * max(usd, 1):
        faults.append(f"the price adds up to {usd}, not {report['usdPerHour']}")
    if instances != report["instances"] or len(plan["pools"]) != report["pools"]:
        faults.append("instances or pools are counted wrongly")
    return faults


def _faults_of_pattern(pattern: Mapping[str, Any], pool: Mapping[str, str], needs: Mapping[str, Size]) -> list[str]:
    held = pattern["counts"]
    if pattern["instances"] <= 0 or not held or min(held.values()) <= 0:
        return [f"{pool}: an empty pattern or row"]
    if sum(held.values()) > int(pool.get("maxTasks") or 1 << 40):
        return [f"{pool}: {held} are more tasks than its most"]
    columns = enumerate(("cpu", "memory", "gpus"))
    used = {column: sum(count * needs[shape][axis] for shape, count in held.items()) for axis, column in columns}
    return [
        f"{pool}: {held} does not fit its {column}" for column, needed in used.items() if needed > int(pool[column])
    ]


def all_patterns(
    size: Size, needs: Sequence[Size], counts: Sequence[int], most_tasks: int = 1 << 40
) -> Iterator[tuple[int, ...]]:
    """Every filling of an instance with at most `counts` of each shape, and at most `most_tasks` in all."""
    ranges = [range(count + 1) for count in counts]
    for pattern in itertools.product(*ranges):
        if sum(pattern) <= most_tasks and all(
            sum(n * need[axis] for n, need in zip(pattern, needs, strict=True)) <= size[axis] for axis in range(3)
        ):
            yield pattern


def cheapest_usd(
    sizes: Sequence[Size],
    prices: Sequence[float],
    depths: Sequence[int],
    needs: Sequence[Size],
    counts: Sequence[int],
    most_tasks: Sequence[int] | None = None,
    takes: Callable[[int, tuple[int, ...]], bool] = lambda _pool, _pattern: True,
) -> float:
    """The exact optimum: a whole-number programme over every pattern of every pool that it `takes`. AssertionError if
    there is none."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", 0.0)
    none = np.array([], dtype=np.int32)
    for count in counts:
        solver.addRow(float(count), highspy.kHighsInf, 0, none, none.astype(float))
    for depth in depths:
        solver.addRow(-highspy.kHighsInf, float(depth), 0, none, none.astype(float))
    columns = 0
    for pool, size in enumerate(sizes):
        fitting = all_patterns(size, needs, counts, most_tasks[pool] if most_tasks else 1 << 40)
        for pattern in (each for each in fitting if takes(pool, each)):
            rows = [*[s for s, n in enumerate(pattern) if n], len(counts) + pool]
            amounts = [*[float(n) for n in pattern if n], 1.0]
            at = np.array(rows, dtype=np.int32)
            solver.addCol(prices[pool], 0.0, float(depths[pool]), len(rows), at, np.array(amounts))
            solver.changeColIntegrality(columns, highspy.HighsVarType.kInteger)
            columns += 1
    solver.run()
    assert solver.modelStatusToString(solver.getModelStatus()) == "Optimal"
    return float(solver.getObjectiveValue())


def best_worth(size: Size, needs: Sequence[Size], values: Sequence[float]) -> float:
    """A lower bound of the most valuable filling of an instance, by branch and bound to a ten-millionth."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", 1e-7)
    none = np.array([], dtype=np.int32)
    for amount in size:
        solver.addRow(-highspy.kHighsInf, float(amount), 0, none, none.astype(float))
    fitting = [s for s, need in enumerate(needs) if all(n <= amount for n, amount in zip(need, size, strict=True))]
    for column, s in enumerate(fitting):
        rows = np.flatnonzero(needs[s]).astype(np.int32)
        solver.addCol(-values[s], 0.0, highspy.kHighsInf, len(rows), rows, np.array(needs[s], dtype=float)[rows])
        solver.changeColIntegrality(column, highspy.HighsVarType.kInteger)
    if not fitting:
        return 0.0
    solver.run()
    return -float(solver.getObjectiveValue())


def assert_whole(problem: Problem, found: Allocation) -> None:
    offered, wanted = problem.offered, problem.backlog
    placed = np.zeros(len(wanted.count), dtype=np.int64)
    for lot in found.lots:
        assert lot.times > 0
        assert len(lot.count)
        assert (lot.count > 0).all()
        assert (lot.count @ wanted.need[lot.shape] <= offered.capacity[lot.pool]).all()
        assert offered.most_tasks is None or lot.count.sum() <= offered.most_tasks[lot.pool]
        np.add.at(placed, lot.shape, lot.count * lot.times)
    assert (placed + found.left_out == wanted.count).all()
    assert (np.bincount(found.pool, weights=found.times, minlength=len(offered.depth)) <= offered.depth).all()
    assert found.usd_per_hour == pytest.approx(float(found.times @ offered.price[found.pool]))
