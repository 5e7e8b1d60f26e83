"""What did each sharer use recently?

A mean over time with a half-life: use one half-life ago counts half as much as use now. One step computes it from the
last value, present use and the time that has passed, so the frequency of steps does not matter. All values are whole
numbers, 2^-20 of a unit, so that every reader gets the same result.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from argosy.model.cluster_history import EVERY_S

Sharer: TypeAlias = tuple[str, str]  # queue, owner ("" if the queue is not shared by owners)
Amounts: TypeAlias = tuple[int, ...]  # of cpu units, MiB and GPUs

RECENT_USE = "RECENT_USE"  # of the partition STATE
UNIT = 1 << 20  # of the whole numbers in which the means are kept
MOST_SHARERS = 1_000  # sharers that are remembered: those with the most use
_DECAY_BITS = 30
NOTHING: Amounts = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class RecentUse:
    """at: epoch seconds of the last step; 0 = nothing is known yet."""

    at: float = 0.0
    whole: Amounts = NOTHING  # the cluster's total at that time
    means: Mapping[Sharer, Amounts] = field(default_factory=dict)  # in 1 / UNIT; sharers without use are left out

    def is_due(self, now: float) -> bool:
        """Whether a step is due. A clock that was set back does not delay it."""
        return not self.at or not 0 <= now - self.at < EVERY_S

    def moved_on(self, used: Mapping[Sharer, Amounts], whole: Amounts, now: float, half_life_s: float) -> RecentUse:
        """used: present use of each, assumed constant since the last step; before the first, it counts as zero."""
        passed_s = max(0.0, now - self.at) if self.at else 0.0
        kept = int((1 << _DECAY_BITS) * 2.0 ** (-passed_s / half_life_s))
        names = self.means.keys() | used.keys()
        found = {name: _mixed(self.means.get(name, NOTHING), used.get(name, NOTHING), kept) for name in sorted(names)}
        most = sorted(found, key=lambda name: tuple(-each for each in found[name]))[:MOST_SHARERS]
        return RecentUse(now, whole, {name: found[name] for name in sorted(most) if any(found[name])})

    def to_bytes(self) -> bytes:
        """The stored form."""
        means = [[*name, *amounts] for name, amounts in sorted(self.means.items())]
        stored = {"at": self.at, "whole": self.whole, "means": means}
        return zlib.compress(json.dumps(stored, separators=(",", ":")).encode(), 6)

    @classmethod
    def from_bytes(cls, body: bytes) -> RecentUse:
        """Raises one of `damage.FAULTS`."""
        stored = json.loads(zlib.decompress(body))
        means = {(str(queue), str(owner)): _three(amounts) for queue, owner, *amounts in stored["means"]}
        return cls(float(stored["at"]), _three(stored["whole"]), means)


def _mixed(before: Amounts, now: Amounts, kept: int) -> Amounts:
    """Rounded down, so that a mean without use reaches zero."""
    fresh = (1 << _DECAY_BITS) - kept
    return tuple((old * kept + new * UNIT * fresh) >> _DECAY_BITS for old, new in zip(before, now, strict=True))


def _three(amounts: list[int]) -> Amounts:
    cpu, memory, gpus = (int(each) for each in amounts)
    return cpu, memory, gpus
