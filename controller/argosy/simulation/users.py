"""What do users ask for during a trial? They submit, lose patience, and try again what did not succeed.

Their requests go through the api's own code: it refuses some, and puts the others into the inbox.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from zlib import crc32

from argosy.api import reading, retrying
from argosy.api.caps import market_of
from argosy.model.inbox import RetryRequest
from argosy.model.moment import Moment
from argosy.model.run_record import RunRecord
from argosy.simulation.audit.stored_state import StoredState
from argosy.simulation.deployment import SimulatedDeployment
from argosy.simulation.workload import SimulatedJob

INSISTENT = 0.35  # share of the trials in which users try runs again
MOST_RETRIES = 2  # of a run


def insistent(seed: int) -> bool:
    """Whether users try runs again. Not drawn in order, so that the other trials stay what they were."""
    return crc32(f"retry/{seed}".encode()) / 2**32 < INSISTENT


class Users:
    """Those of one trial. `retry`: whether they try runs again."""

    def __init__(
        self, deployment: SimulatedDeployment, jobs: Mapping[str, SimulatedJob], stored: StoredState, *, retry: bool
    ) -> None:
        self._world, self._deployment, self._jobs, self._stored = deployment.world, deployment, jobs, stored
        self._retry = retry
        self.retries = 0

    def submit(self, faulty_s: float) -> None:
        """All runs, one soon after the other unless a job says when."""
        for number, job in enumerate(self._jobs.values()):
            after_s = number * min(60.0, faulty_s / 4)
            self._world.later(job.submitted_after_s or after_s, partial(self._submit, job))

    def cancel_later(self, seconds: float) -> None:
        """The first run."""
        self._world.later(seconds, lambda: self._deployment.cancel(next(iter(self._jobs))))

    def try_again(self) -> bool:
        """Whether they asked for more of a run that has ended without every result."""
        asked = [self._try_again(record) for record in self._stored.records.values()] if self._retry else ()
        return any(asked)

    def _submit(self, job: SimulatedJob) -> None:
        self._deployment.submit(job.request(self._world.now))

    def _try_again(self, record: RunRecord) -> bool:
        if not record.has_ended or record.retries >= MOST_RETRIES:
            return False
        said = reading.run(self._deployment.store, record.id)
        cancelled = crc32(f"cancelled/{record.id}/{record.retries}".encode()) % 2 == 0
        budget = record.cost_usd + record.budget_usd if record.budget_usd and record.capped_at and cancelled else None
        wish = RetryRequest(record.id, self._world.now, failed=True, cancelled=cancelled, budget_usd=budget)
        if said is None or not said.has_ended:
            return False
        try:
            created = retrying.put(self._deployment.store, said, wish, f"{wish.requested_at}", self._market)
        except retrying.NotRetried:  # what a user would be told: there is nothing to try again, or no money for it
            return False
        self.retries += created
        return created

    def _market(self) -> Moment:
        state, _ = reading.cluster(self._deployment.store)
        return market_of(state, (), self._world.now, self._deployment.policy)
