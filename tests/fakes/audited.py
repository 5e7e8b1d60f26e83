"""Two runs on an audited cluster, on which only the controller's own code fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from argosy.engine.own_faults import OwnFailure
from argosy.model.inbox import INBOX, RetryRequest, retry_key, to_bytes
from argosy.model.run_record import RunRecord
from tests.fakes.trials import SMALL_JOB
from tests.harness.simulation.audit.facts import TrialResults, Violation
from tests.harness.simulation.plan import TrialPlan
from tests.harness.simulation.trial import Trial
from tests.harness.simulation.world.workload import SimulatedJob

VICTIM, OTHER = "victim-261121-062733-aaaa", "other-261121-062734-bbbb"
VICTIMS_TASKS = 3
TICK_S = 15.0
CANCEL_AGAIN_S = 60.0
ANSWERED_S = 300.0


def _job(run_id: str, tasks: int, **more: Any) -> SimulatedJob:
    spec = {**SMALL_JOB.spec, "name": run_id.partition("-")[0], "array": {"size": tasks}}
    spec |= {"retryStrategy": {"attempts": 6}, "capacity": {"budgetUsd": 5.0}}
    return replace(SMALL_JOB, run_id=run_id, spec=spec, tasks=tasks, longest_s=60.0, **more)


PLAN = TrialPlan(
    1,
    frozenset(),
    jobs=(
        _job(VICTIM, VICTIMS_TASKS, submitted_after_s=1.0, failing=0.4),
        _job(OTHER, 2, submitted_after_s=3.0),
    ),
    controllers=1,
    types=("c5.xlarge",),
    rate_limits=False,
)


class AuditedRuns:
    """Both are submitted at the start."""

    def __init__(self, advised: bool = False, retried: bool = False) -> None:
        """advised: EC2 recommends to leave the first instance as soon as it is there. retried: the victim's user
        cancels it once, and retries it with another budget."""
        self.advised, self.retried = advised, retried
        self._cancelled, self._tried_at = False, 0.0
        self.trial = Trial(PLAN)
        for job in self.trial.jobs.values():
            self.trial.world.later(job.submitted_after_s, partial(self._submit, job))
        self.at_rest = False
        self.troubles: list[OwnFailure] = []
        self.first_instance = ""
        self._cancelled_at = float("-inf")

    def _submit(self, job: SimulatedJob) -> None:
        """Without the api, which invents run ids."""
        self.trial.deployment.submit(job.request(self.trial.world.now))

    def record(self, run_id: str) -> RunRecord | None:
        return self.trial.auditor.stored.records.get(run_id)

    def has_succeeded(self, run_id: str) -> bool:
        record = self.record(run_id)
        return record is not None and record.status == "SUCCEEDED"

    def tick(self) -> None:
        """Raises the errors of a tick."""
        if self.retried:
            self._ask()
        world, (controller,) = self.trial.world, self.trial.controllers
        report = controller.engine.tick()
        self.troubles += report.troubles
        self.at_rest = report.at_rest
        world.run_for(TICK_S)
        self.trial.auditor.time_passed()
        alive = [each.instance_id for each in world.ec2.ledger.instances.values() if each.alive]
        if alive and not self.first_instance:
            self.first_instance = min(alive)
            if self.advised:
                world.ec2.recommend_rebalance(self.first_instance)

    def _ask(self) -> None:
        """Like a user who watches the victim."""
        record, trial = self.record(VICTIM), self.trial
        if not self._cancelled and record is not None and record.status == "RUNNING":
            trial.deployment.cancel(VICTIM)
            self._cancelled = True
        elif self._cancelled and record is not None and record.status == "CANCELLED":
            request = RetryRequest(VICTIM, trial.world.now, cancelled=True, budget_usd=6.0)
            key = retry_key(trial.world.now, VICTIM, "asked")
            trial.deployment.store.create({(INBOX, key): to_bytes(request)})
            self.retried, self._tried_at = False, trial.world.now

    def has_answered(self) -> bool:
        """Whether the controller has had time for the requests of the victim's user, or they came too late."""
        return self.has_succeeded(VICTIM) if self.retried else self.trial.world.now >= self._tried_at + ANSWERED_S

    def run_until(self, done: Callable[[], bool], limit_s: float) -> None:
        world = self.trial.world
        until = world.now + limit_s
        while not done():
            self.tick()
            assert world.now < until, [self.record(OTHER), self.record(VICTIM), self.troubles[-1:]]

    def rest_or_cancel(self) -> bool:
        """Whether everything is at rest. While the victim is suspended its user cancels it."""
        record, now = self.record(VICTIM), self.trial.world.now
        if record is not None and record.suspended_at and now >= self._cancelled_at + CANCEL_AGAIN_S:
            self.trial.deployment.cancel(VICTIM)
            self._cancelled_at = now
        return self.at_rest

    def judged_at_rest(self) -> list[Violation]:
        """The auditor's findings, without those about the results of a victim that was refused or given up, which has
        none."""
        auditor, trial = self.trial.auditor, self.trial
        record = self.record(VICTIM)
        if record is None:  # not even its request could be read
            del trial.jobs[VICTIM]
        auditor.at_rest(TrialResults(trial.services.s3.objects, trial.bill, 0.0))
        given_up = record is None or record.status in ("FAILED", "CANCELLED")
        late = {"seen", "idle"}  # an end that cannot be read holds its instance until a pull would be too long
        found = [each for each in auditor.violations if each.invariant not in late]
        return [each for each in found if not (given_up and self._is_of_results(each))]

    @staticmethod
    def _is_of_results(violation: Violation) -> bool:
        return violation.invariant in ("R4", "I4") and VICTIM in (*violation.names, *violation.sentence.split())
