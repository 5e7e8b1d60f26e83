"""Checkpoints of simulated programs: what each attempt found, and what it left.

Records are named, chosen and removed as the runners do it (`argosy.runner.checkpoints`). Their content is the work done
so far.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from argosy.layout import split_s3
from argosy.model.attempts import AttemptKey
from argosy.runner.checkpoints import KEPT
from argosy.runner.order import CheckpointOrder
from tests.harness.simulation.world.s3 import S3Model


class SavedWork(NamedTuple):
    """A checkpoint: whose it is, its number, the seconds of work in it, and when it was complete (epoch seconds)."""

    attempt: int = 0
    number: int = 0
    work_s: float = 0.0
    at: float = 0.0


NOTHING = SavedWork()


@dataclass(eq=False, slots=True)
class SavingAttempt:
    """An attempt whose program saves its work. log: every attempt that began, in order. Times in epoch seconds."""

    key: AttemptKey
    order: CheckpointOrder
    upload_s: float
    s3: S3Model
    log: list[SavingAttempt]
    began_at: float = 0.0
    ended_at: float = math.inf
    """Until then its program works."""
    succeeded_at: float = math.inf
    """Then it removed all checkpoints but those of later attempts."""
    resumed: SavedWork = NOTHING
    saved: list[SavedWork] = field(default_factory=list)

    def begin(self, now: float) -> float:
        """Restore the newest checkpoint of the highest attempt. Returns the seconds of work in it."""
        self.began_at, self.resumed = now, max(self._stored(), default=NOTHING)
        self.log.append(self)
        return self.resumed.work_s

    def work_s(self, now: float) -> float:
        """Seconds of work done by then, restored ones included."""
        return self.resumed.work_s + min(now, self.ended_at) - self.began_at

    def stop_working(self, now: float) -> None:
        """The program has ended."""
        self.ended_at = min(self.ended_at, now)

    def save(self, work_s: float, now: float) -> None:
        """A checkpoint is complete. The task's older ones go, except those of later attempts."""
        one = SavedWork(self.order.attempt, len(self.saved) + 1, work_s, now)
        self.saved.append(one)
        bucket, folder = split_s3(self.order.uri)
        body = json.dumps({"work": work_s, "at": now}).encode()
        self.s3.put_object(Bucket=bucket, Key=f"{folder}{one.attempt}/{one.number:06d}.json", Body=body)
        own = sorted(each for each in self._stored() if each.attempt <= one.attempt)
        self._remove(own[:-KEPT])

    def succeed(self, now: float) -> None:
        """Its task is done."""
        self.succeeded_at = now
        self._remove(each for each in self._stored() if each.attempt <= self.order.attempt)

    def _stored(self) -> Iterator[SavedWork]:
        bucket, folder = split_s3(self.order.uri)
        for (place, key), found in list(self.s3.objects.items()):
            if place == bucket and key.startswith(folder):
                attempt, _, name = key.removeprefix(folder).partition("/")
                told = json.loads(found.body)
                yield SavedWork(int(attempt), int(name.removesuffix(".json")), told["work"], told["at"])

    def _remove(self, those: Iterator[SavedWork] | list[SavedWork]) -> None:
        bucket, folder = split_s3(self.order.uri)
        for each in list(those):
            self.s3.delete_object(Bucket=bucket, Key=f"{folder}{each.attempt}/{each.number:06d}.json")
