"""The verdict on a trial: its violations, the story of the first of them, and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.harness.simulation.audit.auditor import Auditor
from tests.harness.simulation.audit.facts import Violation
from tests.harness.simulation.controllers.controllers import SimulatedController
from tests.harness.simulation.world.deployed_fleets import Bill
from tests.harness.simulation.world.regions import Regions
from tests.harness.simulation.world.workload import SimulatedJob

STORY_LINES = 200


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence once a trial is over."""

    seed: int
    regions: Regions
    jobs: Mapping[str, SimulatedJob]
    auditor: Auditor
    bill: Bill
    controllers: Sequence[SimulatedController]
    """All that there were."""
    faults_seen: Counter[str]
    calls: Counter[tuple[str, str]]
    started_at: float
    faults_ended_at: float
    write_units: int
    retries: int
    followers_deaths: int


@dataclass(slots=True)
class Verdict:
    """The violations and the figures of one trial."""

    seed: int
    violations: list[Violation]
    story: list[str]
    """The story of what the first violation names."""
    seen: Counter[str]
    virtual_s: float
    settled_s: float  # from the end of the faults to rest
    calls: Counter[tuple[str, str]]
    launches: int
    tasks: int
    usd: float
    useful_usd: float  # usage of successful attempts, according to the controller's ledgers
    controller_usd: float
    instance_hours: float
    makespan_s: float
    ticks: int
    conflicts: int
    write_units: int
    retries: int
    """Runs that users retried."""
    lines: int
    """Of the journal."""
    followers_deaths: int
    statuses: Counter[str]
    deployments: Counter[str]  # of services, by how they ended
    bought: Counter[str]  # instances launched for us, by pool

    @property
    def ok(self) -> bool:
        return not self.violations


def judged(evidence: Evidence) -> Verdict:
    """The verdict on a trial that is over."""
    audit, bill, now = evidence.auditor, evidence.bill, evidence.regions.now
    names = audit.violations[0].names if audit.violations else ()
    records = audit.stored.records.values()
    makespans = [each.stopped_at - each.submitted_at for each in records if each.stopped_at and each.submitted_at]
    ours = [each for each in evidence.regions.instances() if evidence.regions.is_ours(each)]
    return Verdict(
        seed=evidence.seed,
        violations=audit.violations,
        story=audit.trail.about(names, evidence.started_at)[-STORY_LINES:] if names else [],
        seen=evidence.faults_seen,
        virtual_s=now - evidence.started_at,
        settled_s=now - evidence.faults_ended_at,
        calls=evidence.calls,
        launches=audit.launches,
        tasks=sum(job.tasks for job in evidence.jobs.values()),
        usd=bill.usd(),
        useful_usd=sum(costs.useful for record in records for costs in record.costs.values()),
        controller_usd=float(audit.stored.root.get("spent_usd", 0.0)),
        instance_hours=bill.hours(),
        makespan_s=max(makespans, default=0.0),
        ticks=sum(controller.ticks for controller in evidence.controllers),
        conflicts=sum(controller.conflicts for controller in evidence.controllers),
        write_units=evidence.write_units,
        retries=evidence.retries,
        lines=len(audit.journal.sequence),
        followers_deaths=evidence.followers_deaths,
        statuses=Counter(record.status.value for record in records),
        deployments=+audit.environments.deployments,
        bought=Counter(each.pool.name for each in ours),
    )
