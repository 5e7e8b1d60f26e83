"""Recorded spot availability, read from a folder into arrays for `bench deadline`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.client.errors import InvalidInput

_MAX_POINTS: Final = 5_000_000  # of one file


def read_traces(folder: Path) -> Iterator[tuple[str, NDArray[np.int64], float]]:
    """(folder below `folder`, available instances at each point, seconds between points) of every JSON file.

    InvalidInput names every bad file, before the first trace is returned.
    """
    paths = sorted(folder.glob("**/*.json")) if folder.is_dir() else []
    if not paths:
        raise InvalidInput(f"{folder} is not a folder with JSON files.")
    traces, faults = [], []
    for path in paths:
        try:
            traces.append((str(path.parent.relative_to(folder)), *_trace(path)))
        except (OSError, ValueError, KeyError, TypeError) as fault:
            faults.append(f"{path}: {fault}")
    if faults:
        raise InvalidInput("These files are not traces of availability:", details=faults)
    yield from traces


def _trace(path: Path) -> tuple[NDArray[np.int64], float]:
    document = json.loads(path.read_text(encoding="utf-8"))
    gap_s, points = float(document["metadata"]["gap_seconds"]), document["data"]
    if not isinstance(points, list) or not 1 <= len(points) <= _MAX_POINTS or gap_s <= 0:
        raise ValueError("needs metadata.gap_seconds above 0 and a list of data")
    if not all(type(each) is int and each >= 0 for each in points):
        raise ValueError("data are whole numbers from 0 up")
    return np.array(points, dtype=np.int64), gap_s
