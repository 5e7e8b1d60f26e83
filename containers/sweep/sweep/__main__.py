"""Fit one point of an elastic-net grid: `python -m sweep --alpha 0.5 --lambda 0.01 --output s3://bucket/part.jsonl`.

Writes one row by one conditional PUT. `python -m sweep best TABLE` says which row of a merged table is best. Exit
codes: 0 done (also when the row was there already), 64 bad input, 75 S3 is in trouble for the moment or the disk is
full, 143 stopped by SIGTERM, 1 otherwise.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import NoReturn

EXIT_TEMPORARY = 75  # sysexits.h EX_TEMPFAIL
EXIT_STOPPED = 128 + signal.SIGTERM


def _stop(_signal: int, _frame: object) -> NoReturn:
    """At once: a row is written as a whole or not at all, so that there is nothing to tidy."""
    os.write(2, b"sweep: stopped by SIGTERM\n")
    os._exit(EXIT_STOPPED)


# Before the slow imports, and because the first process of a container ignores SIGTERM unless it says otherwise.
signal.signal(signal.SIGTERM, _stop)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a task has one vCPU; more threads only get in each other's way

import argosy_storage as storage  # noqa: E402

from sweep import best  # noqa: E402
from sweep.arguments import EXIT_BAD_INPUT, Point, read_point  # noqa: E402


def main() -> int:
    arguments = sys.argv[1:]
    try:
        if arguments[:1] == ["best"]:
            return _best(arguments[1:])
        return _fit(read_point(arguments, os.environ))
    except storage.Temporary as error:
        return _fail(EXIT_TEMPORARY, error)
    except (best.UnusableTable, storage.Refused) as error:
        return _fail(EXIT_BAD_INPUT, error)


def _fail(code: int, error: Exception) -> int:
    print(f"sweep: {error}", file=sys.stderr)
    return code


def _best(tables: list[str]) -> int:
    if len(tables) != 1:
        print("sweep: best takes one table: FILE or s3://BUCKET/KEY", file=sys.stderr)
        return EXIT_BAD_INPUT
    for line in best.summary(best.rows_of(storage.read(tables[0]), tables[0])):
        print(line)
    return 0


def _fit(point: Point) -> int:
    from sweep.elastic_net import cross_validate  # scikit-learn: most of the program's start

    began = time.monotonic()
    found = cross_validate(point)
    row = {"index": point.index, "alpha": point.alpha, "lambda": point.penalty, **found.row()}
    row["seconds"] = round(time.monotonic() - began, 3)
    text = json.dumps(row) + "\n"
    written = storage.write_once(
        point.output, text.encode(), {"argosy-attempt": str(point.attempt), "argosy-rows": "1"}
    )
    print(text.rstrip(), "written to" if written else "was already at", point.output, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
