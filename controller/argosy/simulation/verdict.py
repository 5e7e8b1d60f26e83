"""Is a trial over, and what is left that should not be? The checks at rest, and the figures of a trial."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from argosy.layout import manifest_uri, marker_uri, split_s3
from argosy.model.runs import TERMINAL_RUN, RunStatus
from argosy.model.tasks import TERMINAL, TaskStatus
from argosy.simulation.auditor import Violation
from argosy.simulation.job import Job
from argosy.simulation.mishaps import is_ours

if TYPE_CHECKING:
    from argosy.simulation.trial import Trial

SPEND_SLACK_S = 900.0  # of each instance's life that the controller may not have seen
STORY_LINES = 200


@dataclass(slots=True)
class Verdict:
    """What came of a trial."""

    seed: int
    violations: list[Violation]
    story: list[str]
    seen: Counter[str]
    virtual_s: float
    settled_s: float  # from the end of the faults to rest
    calls: Counter[tuple[str, str]]
    launches: int
    tasks: int
    usd: float
    useful_usd: float  # what the controller's ledgers say that attempts which succeeded used
    controller_usd: float
    instance_hours: float
    makespan_s: float
    ticks: int
    conflicts: int
    write_units: int
    retries: int  # runs that users tried again
    statuses: Counter[str]
    bought: Counter[str]  # instances launched for us, by pool

    @property
    def ok(self) -> bool:
        return not self.violations


class TeardownClient:
    """The EC2 client of the teardown function, whose calls do not fail here. It asks for launch templates too."""

    def __init__(self, world: Any) -> None:
        self._ec2 = world.ec2

    def describe_launch_templates(self, **request: Any) -> dict[str, Any]:
        return {"LaunchTemplates": [{"LaunchTemplateId": "argosy"}]}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ec2, name)


def leftovers(trial: Trial) -> list[Violation]:
    """What is wrong at rest."""
    audit, world = trial.auditor, trial.world
    before = len(audit.violations)
    for instance in world.ec2.ledger.instances.values():
        if instance.alive and is_ours(world, instance):
            audit.found("R14", f"{instance.instance_id} still costs money at rest", instance.instance_id)
    for fleet in world.ec2.ledger.fleets.values():
        if fleet.is_live and fleet.tags.get("argosy:stage") == "main" and fleet.total_target:
            audit.found("R14", f"the target of {fleet.fleet_id} is {fleet.total_target} at rest", fleet.fleet_id)
    if not trial.destroyed:
        for job in trial.jobs.values():
            _check_closed(trial, job)
        _check_spending(trial)
        specs = {job.run_id: job.spec for job in trial.jobs.values()}
        for run_id, sentence in audit.money.overspent(specs, audit.book.records.values()):
            audit.found("I12", sentence, run_id)
    found = audit.violations[before:]
    del audit.violations[before:]
    return found


def _check_closed(trial: Trial, job: Job) -> None:
    audit, record = trial.auditor, trial.auditor.book.records[job.run_id]
    status, table = record.status, audit.book.tables[job.run_id]
    counts = Counter(TaskStatus(row[0]) for row in table)
    if status not in TERMINAL_RUN or any(row[0] not in TERMINAL for row in table):
        audit.found("R4", f"{job.run_id} is {status.value} with {dict(counts)} at rest", job.run_id)
        return
    objects = trial.deployment.services.s3.objects
    manifest = objects.get(split_s3(manifest_uri(job.output)))
    marker = split_s3(marker_uri(job.output, status is RunStatus.SUCCEEDED))
    if manifest is None or marker not in objects:
        audit.found("R4", f"{job.run_id} is closed without manifest or marker", job.run_id)
        return
    if split_s3(marker_uri(job.output, status is not RunStatus.SUCCEEDED)) in objects:
        audit.found(
            "R4", f"{job.run_id} is {status.value}, and the marker of the opposite lies beside its own", job.run_id
        )
    said = json.loads(manifest.body)
    wrong = [
        e["index"] for e, row in zip(said["entries"], table, strict=True) if e["status"] != TaskStatus(row[0]).name
    ]
    if wrong or said["tasks"]["succeeded"] != counts[TaskStatus.SUCCEEDED]:
        audit.found("I4", f"the manifest of {job.run_id} is wrong about tasks {wrong[:5]}", job.run_id)


def _check_spending(trial: Trial) -> None:
    """The controller's own books against the bill: off by no more than what it could not see."""
    billed, booked = trial.billing.usd(), float(trial.auditor.book.root["spent_usd"])
    dearest = max(trial.world.catalogue[name].on_demand_usd_per_hour for name in trial.plan.types)
    unseen_s = SPEND_SLACK_S + (trial.shape.absent_s if trial.absent else 0.0)  # what ends while nobody works
    slack = len(trial.billing.ended) * unseen_s / 3600 * dearest + 0.3 * billed
    if abs(billed - booked) > slack:
        trial.auditor.found("I7", f"{booked:.2f} USD are booked, {billed:.2f} USD are billed")


def why_not_over(trial: Trial) -> str:
    book = trial.auditor.book
    runs = {name: (record.status, record.counts, record.waiting) for name, record in book.records.items()}
    live = [f"{each.key[1:]} on {each.instance} is {each.status}" for each in book.live.values()]
    alive = [each.instance_id for each in trial.world.ec2.ledger.instances.values() if each.alive]
    return f"not over after {trial.plan.limit_s:.0f} s without faults: {runs}; live: {live[:5]}; instances: {alive[:5]}"


def open_names(trial: Trial) -> tuple[str, ...]:
    return tuple(live.instance for live in trial.auditor.book.live.values())[:3]


def of(trial: Trial, settled_s: float) -> Verdict:
    """The figures of a trial that is over."""
    audit, boundary = trial.auditor, trial.boundary
    names = audit.violations[0].names if audit.violations else ()
    records = audit.book.records.values()
    stops = [record.stopped_at - record.submitted_at for record in records if record.stopped_at]
    return Verdict(
        seed=trial.plan.seed,
        violations=audit.violations,
        story=audit.story.about(names, trial.start)[-STORY_LINES:] if names else [],
        seen=trial.faults.seen,
        virtual_s=trial.world.now - trial.start,
        settled_s=settled_s,
        calls=boundary.calls,
        launches=audit.launches,
        tasks=sum(job.tasks for job in trial.jobs.values()),
        usd=trial.billing.usd(),
        useful_usd=sum(costs.useful for record in records for costs in record.costs.values()),
        controller_usd=float(audit.book.root.get("spent_usd", 0.0)),
        instance_hours=trial.billing.hours(),
        makespan_s=max(stops, default=0.0),
        ticks=sum(process.ticks for process in trial.processes),
        conflicts=sum(process.conflicts for process in trial.processes),
        write_units=trial.deployment.services.dynamodb.write_units,
        retries=trial.users.retries,
        statuses=Counter(record.status.value for record in records),
        bought=Counter(
            each.pool.name for each in trial.world.ec2.ledger.instances.values() if is_ours(trial.world, each)
        ),
    )
