"""A crowd: fourteen runs of users who share a small cluster under limits that some of their tasks exceed.

Queues with caps, guarantees and owners, priorities, preemption, dependencies, budgets, hourly caps, changes of open
runs, cancellations with dependents and retries. The sharing documents change meanwhile, so that open runs come to
exceed a limit. Nothing of this is a failure from outside: with `kinds=CROWD` alone every run has to end, no run may
wait behind one that cannot start, and everything has to rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.harness.simulation.faults import KINDS, Faults, kinds_of
from tests.harness.simulation.plan import TrialPlan
from tests.harness.simulation.users.submissions import drawn_drafts, drawn_jobs
from tests.harness.simulation.world.workload import SimulatedJob
from tests.harness.simulation.world.world import share

CROWD = kinds_of("queue,preemption,dependency,cancel,retry,tight-budget,tight-hourly-cap,time-limit,deadline")
RUNS, MOST_TASKS = 14, 4
PATIENCE_S = 600.0  # with a limit that no task fits: an hour would make trials long
VCPUS, GPUS = (0.25, 0.5, 1, 1, 2, 4), (0, 0, 0, 1)
SMALLEST: Mapping[str, Any] = {"vcpus": 0.25, "memory": 256, "gpus": 0}  # it fits the default queue of every document


def is_crowd(plan: TrialPlan) -> bool:
    """Whether the seed makes the trial's users a crowd."""
    return share(plan.seed, "crowd") < plan.crowd


def as_crowd(plan: TrialPlan) -> TrialPlan:
    """The plan, with less patience for a crowd."""
    if not is_crowd(plan):
        return plan
    return replace(plan, policy=replace(plan.policy, unaffordable_patience_s=PATIENCE_S))


def faults_of(plan: TrialPlan) -> Faults:
    """The plan's. What a crowd does happens in its trial, whatever else strikes."""
    faults = Faults(plan.seed, plan.kinds, every=plan.every_kind)
    for kind in sorted(CROWD) if is_crowd(plan) else ():
        faults.rates.setdefault(kind, sum(KINDS[kind]) / 2)
    return faults


def jobs_of(plan: TrialPlan, faults: Faults) -> list[SimulatedJob]:
    """The runs that the users of the plan submit."""
    if not is_crowd(plan):
        return drawn_jobs(faults, plan.seed, plan.tasks)
    return drawn_drafts(faults, plan.seed, RUNS, lambda job, number: _resized(job, plan.seed, number), MOST_TASKS)


def _resized(job: SimulatedJob, seed: int, number: int) -> SimulatedJob:
    sizes = {
        "vcpus": VCPUS[int(len(VCPUS) * share(seed, "crowd vcpus", number))],
        "gpus": GPUS[int(len(GPUS) * share(seed, "crowd gpus", number))],
    }
    return replace(job, spec={**job.spec, "resources": {**job.spec["resources"], **sizes}})


def smaller(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What a user offers whose run exceeds a limit: small tasks in the default queue."""
    return {**{name: value for name, value in spec.items() if name != "queue"}, "resources": SMALLEST}
