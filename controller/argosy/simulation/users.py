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
from argosy.simulation.faults import Faults
from argosy.simulation.workload import SimulatedJob

MOST_RETRIES = 2  # of a run


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

    def cancel_later(self, faults: Faults, faulty_s: float) -> None:
        """Each loses patience with some runs, before anything has started, in the middle or when all is over."""
        for run_id in self._jobs:
            if faults.strikes("cancel"):
                after_s = 10.0 + faulty_s * self._world.share("cancel", run_id)
                self._world.later(after_s, partial(self._deployment.cancel, run_id))

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
