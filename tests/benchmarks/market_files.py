"""Files for `argosy bench allocate`: pools drawn from a seed, and a backlog in which every task has its own size.

    python -m tests.benchmarks.market_files FOLDER --sizes 5000 --pools 1500 --gpu-share 0.03 --seed 0

writes FOLDER/pools.csv and FOLDER/backlog.csv: the market and the tasks that tests/benchmarks/test_allocation.py plans.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from argosy.market.allocation.problem import PoolTable, TaskShapes
from tests.generated_markets import distinct_sizes, market
from tests.harness.bench.allocation_files import BACKLOG_COLUMNS, POOL_COLUMNS


def write(folder: Path, offered: PoolTable, wanted: TaskShapes) -> None:
    """Pools and shapes are named after their rows: `a-7` is the zone of pool 7, `t-3` a type, `s-12` a shape."""
    columns = zip(offered.capacity.tolist(), offered.price.tolist(), offered.depth.tolist(), strict=True)
    kinds = offered.kind.tolist()
    pools = [
        ["r-1", f"a-{row}", f"t-{kinds[row]}", *capacity, price, depth]
        for row, (capacity, price, depth) in enumerate(columns)
    ]
    shapes = zip(wanted.need.tolist(), wanted.count.tolist(), strict=True)
    backlog = [[f"s-{row}", *need, count] for row, (need, count) in enumerate(shapes)]
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "pools.csv", POOL_COLUMNS, pools)
    _write(folder / "backlog.csv", BACKLOG_COLUMNS, backlog)


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([columns, *rows])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write pools.csv and backlog.csv for argosy bench allocate.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", type=int, default=5_000, help="number of tasks; each has a different size")
    parser.add_argument("--pools", type=int, default=1_500)
    parser.add_argument("--gpu-share", type=float, default=0.0, help="of the tasks")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    write(asked.folder, market(asked.pools, asked.seed), distinct_sizes(asked.sizes, asked.seed, asked.gpu_share))


if __name__ == "__main__":
    main()
