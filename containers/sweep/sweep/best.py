"""Which point of a finished sweep is best? The lowest deviance, and the sparsest fit within one standard error of it.

These are cv.glmnet's lambda.min and lambda.1se, taken over the whole grid.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

Row = dict[str, Any]
_NUMBERS = ("alpha", "lambda", "deviance", "error", "nonzero")


class UnusableTable(ValueError):
    """What was given is no table of a sweep."""


def rows_of(data: bytes, name: str) -> list[Row]:
    """The rows of a merged file, JSON lines or CSV. Raises UnusableTable."""
    try:
        text = data.decode()
        found = _json_rows(text) if text.lstrip().startswith("{") else list(csv.DictReader(io.StringIO(text)))
        rows = [{key: float(row[key]) for key in _NUMBERS} for row in found]
    except (ValueError, KeyError, TypeError) as fault:
        raise UnusableTable(f"{name} is no table of a sweep: {type(fault).__name__} {fault}") from fault
    if not rows or not all(math.isfinite(row["deviance"]) for row in rows):
        raise UnusableTable(f"{name} is no table of a sweep: {'a deviance is no number' if rows else 'it has no rows'}")
    return rows


def _json_rows(text: str) -> list[Row]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def lowest(rows: Sequence[Row]) -> Row:
    return min(rows, key=lambda row: (row["deviance"], row["nonzero"], -row["lambda"]))


def sparsest(rows: Sequence[Row]) -> Row:
    """The sparsest within one standard error of the lowest; among equally sparse ones, the lower deviance."""
    best = lowest(rows)
    close = [row for row in rows if row["deviance"] <= best["deviance"] + best["error"]]
    return min(close, key=lambda row: (row["nonzero"], row["deviance"]))


def summary(rows: Sequence[Row]) -> Iterator[str]:
    yield f"{len(rows)} points"
    yield f"lowest deviance:           {_told(lowest(rows))}"
    yield f"sparsest within one error: {_told(sparsest(rows))}"


def _told(row: Row) -> str:
    return (
        f"alpha {row['alpha']:g}, lambda {row['lambda']:g}: deviance {row['deviance']:.4f} +- {row['error']:.4f},"
        f" {row['nonzero']:.0f} coefficients"
    )
