"""A run's progress over time: task counts and costs in up to 240 samples.

A sample is taken when something has changed, at most every `interval_s`. When the series is full, every second sample
is dropped and the interval doubles. A run of minutes is covered in detail and a run of weeks as a whole, in a few
kilobytes each. Times are kept to the millisecond, money to a millionth of a dollar. The stored form is the difference
of each number from the one before it, with bytes of equal significance stored together, which takes a third of the
size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from argosy.model import packing

MOST_SAMPLES = 240
SHORTEST_S = 2.0
SERIES_BYTES = 10_000  # at most, as stored: 240 samples of 16 numbers
_DIGITS = (3, *[0] * 7, *[6] * 8)  # digits after the point, of each member of a sample
_SCALES = 10.0 ** np.array(_DIGITS)


class Sample(NamedTuple):
    """One sample. at: epoch seconds. USD are totals until then, by use as in `Costs`."""

    at: float
    queued: int = 0
    starting: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    instances: int = 0  # instances on which attempts of the run take room
    usd_per_hour: float = 0.0  # of these instances, by the run's share of what is used there
    on_demand: float = 0.0  # cost of the same time on demand
    useful: float = 0.0
    boot: float = 0.0
    idle: float = 0.0
    redone: float = 0.0
    failed_usd: float = 0.0
    displaced: float = 0.0


@dataclass(slots=True)
class Series:
    """The samples of one run, oldest first."""

    samples: list[Sample] = field(default_factory=list)
    interval_s: float = SHORTEST_S
    dirty: bool = False  # whether it changed since it was last stored

    def is_due(self, now: float) -> bool:
        return not self.samples or now - self.samples[-1].at >= self.interval_s

    def add(self, sample: Sample) -> None:
        """A clock that was set back makes no sample earlier than the one before it."""
        if len(self.samples) >= MOST_SAMPLES:
            del self.samples[1::2]
            self.interval_s *= 2
        earliest = self.samples[-1].at if self.samples else 0.0
        values = zip(sample._replace(at=max(sample.at, earliest)), _DIGITS, strict=True)
        self.samples.append(Sample._make(round(value, digits) if digits else value for value, digits in values))
        self.dirty = True

    def pack(self) -> bytes:
        values = np.rint(np.array(self.samples) * _SCALES)
        columns: dict[str, NDArray[Any]] = dict(zip(Sample._fields, _differences(values), strict=True))
        columns["interval_s"] = np.array([self.interval_s])
        return packing.pack(columns, dict.fromkeys(columns, 0), len(self.samples))

    @classmethod
    def unpack(cls, stored: bytes) -> Series:
        """Raises packing.Unreadable."""
        rows, found = packing.unpack(stored)
        columns = []
        for name, digits in zip(Sample._fields, _DIGITS, strict=True):
            sums = _sums(found.get(name, np.empty(0, "u1")), rows)
            columns.append((sums / 10**digits if digits else sums).tolist())
        samples = [Sample(*row) for row in zip(*columns, strict=True)]
        return cls(samples, float(found["interval_s"][0]) if "interval_s" in found else SHORTEST_S)


def _differences(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """For each column of (rows, columns) whole numbers, a row of bytes: the differences of successive numbers, least
    bytes first. Signs are in the lowest bits, so that the high bytes of small numbers are zero."""
    steps = np.diff(values.astype("<i8"), axis=0, prepend=0)
    unsigned = np.ascontiguousarray(((steps << 1) ^ (steps >> 63)).T)
    return unsigned.view("u1").reshape(*unsigned.shape, 8).swapaxes(1, 2).reshape(len(unsigned), -1)


def _sums(stored: NDArray[np.uint8], rows: int) -> NDArray[np.int64]:
    """The inverse of `_differences`. Missing bytes at the end are zeros."""
    data = np.zeros(8 * rows, "u1")
    data[: len(stored)] = stored
    steps = np.ascontiguousarray(data.reshape(8, rows).T).view("<i8").ravel()
    return np.cumsum((steps >> 1) ^ -(steps & 1))
