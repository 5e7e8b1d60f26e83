"""A crowd: fourteen runs of users who share a small cluster under limits that some of their tasks exceed.

Queues with caps, guarantees and owners, priorities, preemption, dependencies, budgets, hourly caps, placement, changes
of open runs, cancellations with dependents, retries of chosen tasks and with larger ones, a service that is scaled,
updated and rolled back, and a schedule that is changed, paused and resumed. Some clusters are so small that room has to
be taken, some programs take so long that limits over an hour matter, and some commits are soon full. The sharing
documents change meanwhile, and drop queues, so that open runs come to exceed a limit. Nothing of this is a failure from
outside: with `kinds=CROWD` alone every run has to end, no run may wait behind one that cannot start, and everything has
to rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.harness.simulation.controllers.deployment import SimulatedDeployment
from tests.harness.simulation.faults import KINDS, Faults, kinds_of
from tests.harness.simulation.plan import TrialPlan
from tests.harness.simulation.users.service import NUMBER
from tests.harness.simulation.users.shared_queues import NAMES, AskLater, SharedQueues, terms_of
from tests.harness.simulation.users.submissions import drawn_drafts, drawn_jobs
from tests.harness.simulation.world.workload import SimulatedJob
from tests.harness.simulation.world.world import share

CROWD = kinds_of("queue,preemption,dependency,cancel,retry,tight-budget,tight-hourly-cap,time-limit,deadline,service")
RUNS, MOST_TASKS = 14, 4
PATIENCE_S = 600.0  # with a limit that no task fits: an hour would make trials long
FEWEST_INSTANCES = 2
SCHEDULED, MEMBERS = 0.6, 0.5  # share of crowds with a schedule; in which users come through entrances of queues
PRESSED, LONGER = 0.3, 3.0  # share of crowds on the fewest instances; how much longer their programs take
PRESSED_S = 30.0  # between two submissions of theirs
RARE = kinds_of("tight-budget,tight-hourly-cap,time-limit,deadline,cancel,dependency")  # with these
FULL = 0.3  # share of crowds whose commits are soon full
VCPUS, GPUS = (0.25, 0.5, 1, 1, 2, 4), (0, 0, 0, 1)
PLACED = 0.4  # share of runs that say where their tasks go
STRATEGIES: tuple[list[str], ...] = (
    ["spread:attribute:ecs.availability-zone", "binpack:memory"],
    ["spread:instanceId"],
    ["random"],
    ["binpack:cpu"],
    [],
)
CONSTRAINTS: tuple[list[str], ...] = (
    [],
    [],
    ["distinctInstance"],
    ["attribute:ecs.availability-zone exists", "runningTasksCount < 3"],
)
SOFT: tuple[list[dict[str, Any]], ...] = (
    [],
    [{"expression": "attribute:ecs.availability-zone == us-east-1b", "weight": 3}],
)
SMALLEST: Mapping[str, Any] = {"vcpus": 0.25, "memory": 256, "gpus": 0}  # it fits the default queue of every document


def is_crowd(plan: TrialPlan) -> bool:
    """Whether the seed makes the trial's users a crowd."""
    return share(plan.seed, "crowd") < plan.crowd


def is_pressed(plan: TrialPlan) -> bool:
    """Whether the crowd shares so few instances, for so long, that room has to be taken."""
    return is_crowd(plan) and share(plan.seed, "crowd pressed") < PRESSED


def as_crowd(plan: TrialPlan) -> TrialPlan:
    """The plan, with less patience, fewer instances and a schedule for a crowd."""
    if not is_crowd(plan):
        return plan
    policy = replace(plan.policy, unaffordable_patience_s=PATIENCE_S)
    if share(plan.seed, "crowd commits") < FULL:
        policy = replace(policy, max_dirty_documents=10, max_settling_documents=14)
        policy = replace(policy, full_commit_documents=42, max_promised_documents=10)
    more = 1 if is_pressed(plan) else max(0, plan.instances - FEWEST_INSTANCES) + 1
    instances = min(plan.instances, FEWEST_INSTANCES + int(more * share(plan.seed, "crowd instances")))
    schedules, members = max(plan.schedules, SCHEDULED), max(plan.members, MEMBERS)
    return replace(plan, policy=policy, instances=instances, schedules=schedules, members=members)


def faults_of(plan: TrialPlan) -> Faults:
    """The plan's. What a crowd does happens in its trial, whatever else strikes."""
    faults = Faults(plan.seed, plan.kinds, every=plan.every_kind)
    for kind in sorted(CROWD) if is_crowd(plan) else ():
        faults.rates.setdefault(kind, sum(KINDS[kind]) / 2)
        if is_pressed(plan) and kind in RARE:
            faults.rates[kind] /= 3
    return faults


def queues_of(plan: TrialPlan, deployment: SimulatedDeployment, faults: Faults, ask_later: AskLater) -> SharedQueues:
    """The queues of the plan's users. ask_later: of `Users`."""
    queues = SharedQueues(deployment, faults, ask_later, are_tight=is_crowd(plan))
    if is_pressed(plan):
        queues.is_pressed, queues.capped, queues.remembers = True, 0.03, 0.1
    return queues


def jobs_of(plan: TrialPlan, faults: Faults) -> list[SimulatedJob]:
    """The runs that the users of the plan submit."""
    if not is_crowd(plan):
        return drawn_jobs(faults, plan.seed, plan.tasks)

    def shaped(job: SimulatedJob, number: int) -> SimulatedJob:
        its = _resized(job, plan.seed, number)
        return _pressed(its, plan.seed, number) if is_pressed(plan) else its

    return drawn_drafts(faults, plan.seed, RUNS, shaped, (2 if is_pressed(plan) else 1) * MOST_TASKS)


def _resized(job: SimulatedJob, seed: int, number: int) -> SimulatedJob:
    sizes = {
        "vcpus": VCPUS[int(len(VCPUS) * share(seed, "crowd vcpus", number))],
        "gpus": GPUS[int(len(GPUS) * share(seed, "crowd gpus", number))],
    }
    spec = {**job.spec, "resources": {**job.spec["resources"], **sizes}}
    if share(seed, "crowd placed", number) < PLACED:
        strategy = STRATEGIES[int(len(STRATEGIES) * share(seed, "crowd strategy", number))]
        constraints = CONSTRAINTS[int(len(CONSTRAINTS) * share(seed, "crowd constraints", number))]
        soft = SOFT[int(len(SOFT) * share(seed, "crowd soft", number))]
        spec["placement"] = {"strategy": strategy, "constraints": constraints, "softConstraints": soft}
    return replace(job, spec=spec)


def _pressed(job: SimulatedJob, seed: int, number: int) -> SimulatedJob:
    """Programs take longer, and once the others have taken all places most runs are of the queue that may take room."""
    drawn = share(seed, "crowd pressed", number)
    queue = "prod" if number >= RUNS // 2 and drawn < 0.6 else NAMES[int(len(NAMES) * drawn)]
    spec = {name: value for name, value in job.spec.items() if name != "preemptible"} | {"queue": queue}
    its = replace(job, spec=spec, submitted_after_s=1.0 + PRESSED_S * number)
    return replace(its, shortest_s=LONGER * job.shortest_s, longest_s=LONGER * job.longest_s)


def terms_of_service(plan: TrialPlan) -> dict[str, Any]:
    """The queue and the owner of a crowd's service."""
    named = terms_of(plan.seed, NUMBER) if is_crowd(plan) else {}
    return {name: named[name] for name in ("queue", "owner") if name in named}


def smaller(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What a user offers whose run exceeds a limit: small tasks in the default queue."""
    return {**{name: value for name, value in spec.items() if name != "queue"}, "resources": SMALLEST}
