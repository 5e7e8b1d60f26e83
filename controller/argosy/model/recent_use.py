"""What did each sharer use lately, as a mean in which what is long ago counts less and less?

A mean over time with a half-life: what was used one half-life ago counts half as much as what is used now. It is moved
on by one step from the last value, what is used now and the time that has passed, so that it does not matter how often
that happens. All of it is in whole numbers, 2^-20 of a unit, so that whoever reads it finds the same.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from argosy.model.cluster_course import EVERY_S

Sharer: TypeAlias = tuple[str, str]  # queue, owner ("" where the queue is not shared by owners)
Amounts: TypeAlias = tuple[int, ...]  # of cpu units, MiB and GPUs

RECENT_USE = "RECENT_USE"  # of the partition STATE
UNIT = 1 << 20  # of the whole numbers in which the means are kept
MOST_SHARERS = 1_000  # that are remembered; those that used most
_DECAY_BITS = 30
NOTHING: Amounts = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class RecentUse:
    """at: epoch seconds, when it was last moved on; 0 = nothing is known yet."""

    at: float = 0.0
    whole: Amounts = NOTHING  # what there was of it then, in the cluster
    means: Mapping[Sharer, Amounts] = field(default_factory=dict)  # in 1 / UNIT; who used nothing is not in it

    def is_due(self, now: float) -> bool:
        """Whether it is time to move it on. A clock that went back does not stop it."""
        return not self.at or not 0 <= now - self.at < EVERY_S

    def moved_on(self, used: Mapping[Sharer, Amounts], whole: Amounts, now: float, half_life_s: float) -> RecentUse:
        """used: what each uses now, and so, as far as anybody knows, has used since the last time. Of the time before
        the first one nothing is known: nobody used anything."""
        passed_s = max(0.0, now - self.at) if self.at else 0.0
        kept = int((1 << _DECAY_BITS) * 2.0 ** (-passed_s / half_life_s))
        names = self.means.keys() | used.keys()
        found = {name: _mixed(self.means.get(name, NOTHING), used.get(name, NOTHING), kept) for name in sorted(names)}
        most = sorted(found, key=lambda name: tuple(-each for each in found[name]))[:MOST_SHARERS]
        return RecentUse(now, whole, {name: found[name] for name in sorted(most) if any(found[name])})

    def to_bytes(self) -> bytes:
        """As it is stored."""
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
    """Rounded down, so that what is used no more is nothing one day."""
    fresh = (1 << _DECAY_BITS) - kept
    return tuple((old * kept + new * UNIT * fresh) >> _DECAY_BITS for old, new in zip(before, now, strict=True))


def _three(amounts: list[int]) -> Amounts:
    cpu, memory, gpus = (int(each) for each in amounts)
    return cpu, memory, gpus
