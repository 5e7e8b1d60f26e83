"""What do users ask for during a trial? They submit, lose patience, and try again what did not succeed.

Their requests take the api's way: what it refuses is not asked for, and what it leaves is an item in the inbox.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from zlib import crc32

from argosy.api import reading, retrying
from argosy.model.inbox import RetryRequest
from argosy.model.run_record import RunRecord
from argosy.simulation.deployment import SimulatedDeployment
from argosy.simulation.job import Job
from argosy.simulation.ledger_book import Book
from argosy.simulation.world import World

INSISTENT = 0.35  # share of the trials in which somebody tries runs again
MOST_RETRIES = 2  # of a run


class Users:
    """Those of one trial. Chance of its own, so that trials in which nobody tries again are what they were."""

    def __init__(
        self, seed: int, world: World, deployment: SimulatedDeployment, jobs: Mapping[str, Job], book: Book
    ) -> None:
        self._world, self._deployment, self._jobs, self._book = world, deployment, jobs, book
        self.insist = crc32(f"retry/{seed}".encode()) / 2**32 < INSISTENT
        self.retries = 0

    def submit(self, faulty_s: float) -> None:
        """All runs, one soon after the other."""
        for number, job in enumerate(self._jobs.values()):
            self._world.later(number * min(60.0, faulty_s / 4), partial(self._submit, job))

    def cancel_later(self, seconds: float) -> None:
        """The first run."""
        self._world.later(seconds, lambda: self._deployment.cancel(next(iter(self._jobs))))

    def try_again(self) -> bool:
        """Whether somebody asks for it, of a run that has ended without every result."""
        asked = [self._try_again(record) for record in self._book.records.values()] if self.insist else ()
        return any(asked)

    def _submit(self, job: Job) -> None:
        self._deployment.submit(job.request(self._world.now))

    def _try_again(self, record: RunRecord) -> bool:
        if not record.has_ended or record.retries >= MOST_RETRIES:
            return False
        said = reading.run(self._deployment.store, record.id)
        cancelled = crc32(f"cancelled/{record.id}/{record.retries}".encode()) % 2 == 0
        wish = RetryRequest(record.id, self._world.now, failed=True, cancelled=cancelled)
        if said is None or not said.has_ended:
            return False
        try:
            created = retrying.put(self._deployment.store, said, wish, f"{wish.requested_at}")
        except retrying.NotRetried:  # as the user is told: there is nothing to try again
            return False
        self.retries += created
        return created
