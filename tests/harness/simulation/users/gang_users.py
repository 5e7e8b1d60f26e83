"""Runs of a trial whose tasks are gangs, drawn by name, so that no other choice of the seed changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from argosy.spec.gangs import REFUSED
from tests.harness.simulation.faults import Faults
from tests.harness.simulation.plan import TrialPlan
from tests.harness.simulation.world.workload import SimulatedJob
from tests.harness.simulation.world.world import share

TOGETHER = 0.6  # share of their runs
START_WITHIN_S = (60, 120, 600)


def have_gangs(plan: TrialPlan, faults: Faults) -> bool:
    """Whether runs of the plan have gangs. They are refused under caps and small quotas."""
    is_shared = any(map(faults.on, ("queue", "preemption", "quota")))
    return share(plan.seed, "gangs") < plan.gangs and not is_shared


def with_gangs(jobs: Sequence[SimulatedJob], plan: TrialPlan, faults: Faults) -> list[SimulatedJob]:
    """Some of the jobs run their tasks in gangs. No other job waits for theirs task by task."""
    if not have_gangs(plan, faults):
        return list(jobs)
    chosen = {
        job.run_id
        for number, job in enumerate(jobs)
        if share(plan.seed, "together", number) < TOGETHER and _may_have_gangs(job)
    }
    return [_waiting_whole(_ganged(job, plan.seed) if job.run_id in chosen else job, chosen) for job in jobs]


def _may_have_gangs(job: SimulatedJob) -> bool:
    """A member has whole GPUs."""
    gpus = job.spec.get("resources", {}).get("gpus", 0)
    return not (job.serves or job.upload_s or (isinstance(gpus, float) and gpus % 1))


def _ganged(job: SimulatedJob, seed: int) -> SimulatedJob:
    size = 2 + int(2 * share(seed, "size", job.run_id))
    gangs = 1 + int(3 * share(seed, "pieces", job.run_id))
    within_s = START_WITHIN_S[int(len(START_WITHIN_S) * share(seed, "within", job.run_id))]
    spec: dict[str, Any] = dict(job.spec)
    for path in (*REFUSED, "capacity.purchase", "capacity.maxInstances", "placement.maxConcurrentTasks"):
        part, _, field = path.rpartition(".")
        if not part:
            spec.pop(field, None)
        elif field in spec.get(part, {}):
            spec[part] = {name: value for name, value in spec[part].items() if name != field}
    spec |= {"array": {"size": gangs}, "gang": {"size": size, "startWithinSeconds": within_s}}
    return replace(job, spec=spec, tasks=gangs * size)


def _waiting_whole(job: SimulatedJob, chosen: set[str]) -> SimulatedJob:
    if "dependsOn" not in job.spec:
        return job
    waits = [
        {**each, "type": "ALL"} if job.run_id in chosen or each["run"] in chosen else each
        for each in job.spec["dependsOn"]
    ]
    return replace(job, spec={**job.spec, "dependsOn": waits})
