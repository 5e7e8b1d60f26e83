"""How did a run come along: how many of its tasks were where, and what had it cost, at up to 240 moments?

A sample is taken when something has changed, at most every `interval_s`. When there is no room, every second sample
goes and the interval doubles: so a run of minutes is seen closely, one of weeks still whole, and both take a few
kilobytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from argosy.model import packing

MOST_SAMPLES = 240
SHORTEST_S = 2.0
SERIES_BYTES = 16_000  # at most, as stored: 240 samples of 15 numbers, half of which never compress


class Sample(NamedTuple):
    """One moment. at: epoch seconds. USD are all that was spent until then, by what it was spent on as in `Costs`."""

    at: float
    queued: int = 0
    starting: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    instances: int = 0  # on which attempts of the run have their place
    usd_per_hour: float = 0.0  # of these instances, by the run's share of what is used there
    on_demand: float = 0.0  # what the same time costs on demand
    useful: float = 0.0
    boot: float = 0.0
    idle: float = 0.0
    redone: float = 0.0
    failed_usd: float = 0.0


@dataclass(slots=True)
class Series:
    """The samples of one run, oldest first."""

    samples: list[Sample] = field(default_factory=list)
    interval_s: float = SHORTEST_S
    dirty: bool = False  # since it was last stored

    def is_due(self, now: float) -> bool:
        return not self.samples or now - self.samples[-1].at >= self.interval_s

    def add(self, sample: Sample) -> None:
        """A clock that went back makes no sample earlier than the one before it."""
        if len(self.samples) >= MOST_SAMPLES:
            del self.samples[1::2]
            self.interval_s *= 2
        earliest = self.samples[-1].at if self.samples else 0.0
        self.samples.append(sample._replace(at=max(sample.at, earliest)))
        self.dirty = True

    def pack(self) -> bytes:
        values = zip(*self.samples, strict=True)
        columns = {name: np.array(column, "f8") for name, column in zip(Sample._fields, values, strict=True)}
        columns["interval_s"] = np.array([self.interval_s])
        return packing.pack(columns, dict.fromkeys(columns, 0.0), len(self.samples))

    @classmethod
    def unpack(cls, stored: bytes) -> Series:
        """Raises packing.Unreadable."""
        rows, found = packing.unpack(stored)
        columns = []
        for name in Sample._fields:
            column = np.zeros(rows)
            column[: len(found.get(name, ()))] = found.get(name, ())
            columns.append(column.tolist())
        samples = [Sample(at, *map(int, row[:7]), *row[7:]) for at, *row in zip(*columns, strict=True)]
        return cls(samples, float(found["interval_s"][0]) if "interval_s" in found else SHORTEST_S)
