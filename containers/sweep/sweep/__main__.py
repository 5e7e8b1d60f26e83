"""Fit one point of an elastic-net grid: `python -m sweep --alpha 0.5 --lambda 0.01`.

Prints one row, which Argosy takes for the task's result. `python -m sweep best TABLE` says which row of a merged table
is best. Exit codes: 0 done, 64 bad input, 143 stopped by SIGTERM, 1 otherwise.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

EXIT_STOPPED = 128 + signal.SIGTERM


def _stop(_signal: int, _frame: object) -> NoReturn:
    """At once: a stopped task has no result, so there is nothing to clean up."""
    os.write(2, b"sweep: stopped by SIGTERM\n")
    os._exit(EXIT_STOPPED)


# Before the slow imports, and because the first process of a container ignores SIGTERM unless it says otherwise.
signal.signal(signal.SIGTERM, _stop)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a task has one vCPU; more threads only get in each other's way

from sweep import best  # noqa: E402
from sweep.arguments import EXIT_BAD_INPUT, Point, read_point  # noqa: E402


def main() -> int:
    arguments = sys.argv[1:]
    try:
        if arguments[:1] == ["best"]:
            return _best(arguments[1:])
        return _fit(read_point(arguments, os.environ))
    except (best.UnusableTable, OSError) as error:
        print(f"sweep: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT


def _best(tables: list[str]) -> int:
    if len(tables) != 1:
        print("sweep: best takes one table: FILE", file=sys.stderr)
        return EXIT_BAD_INPUT
    for line in best.summary(best.rows_of(Path(tables[0]).read_bytes(), tables[0])):
        print(line)
    return 0


def _fit(point: Point) -> int:
    from sweep.elastic_net import cross_validate  # scikit-learn: most of the program's start

    began = time.monotonic()
    found = cross_validate(point)
    row = {"index": point.index, "alpha": point.alpha, "lambda": point.penalty, **found.row()}
    row["seconds"] = round(time.monotonic() - began, 3)
    print(json.dumps(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
