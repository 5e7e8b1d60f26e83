"""Runs of a trial whose tasks share GPUs, and the choice of a GPU that ECS makes for each.

Both are drawn by name, so that no other choice of the seed changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from argosy.emulator.ecs.records import PhysicalGpu
from tests.harness.simulation.plan import TYPES, TrialPlan
from tests.harness.simulation.world.workload import SimulatedJob
from tests.harness.simulation.world.world import World, share

TYPES_TO_SHARE = (  # the GPUs of p3.2xlarge cannot be shared
    ("c5.xlarge", "g4dn.xlarge"),
    ("c5.xlarge", "g4dn.12xlarge"),
    ("c5.xlarge", "p3.2xlarge", "g4dn.12xlarge"),
)
SHARING = 0.6  # share of their runs
ACROSS_OWNERS = 0.3  # share of trials in which several owners may share a GPU
PART, PART_TYPE = 0.25, "g6f.2xlarge"  # of an L4, which is the whole GPU of its instance
WITH_PARTS, ASK_FOR_PARTS = 0.25, 0.3  # shares of those trials, and of their runs
SHARES_MIB = (3_000, 5_000, 7_500, 9_000, 12_000)  # of a T4 with 15,360


def share_gpus(plan: TrialPlan) -> bool:
    """Whether users of the plan share GPUs."""
    return share(plan.seed, "GPUs are shared") < plan.gpu_shares


def with_gpus_to_share(plan: TrialPlan) -> TrialPlan:
    """The plan, with instances of one or several GPUs."""
    if not share_gpus(plan) or plan.types != TYPES:
        return plan
    policy = replace(plan.policy, gpu_share_across_owners=share(plan.seed, "GPUs of owners") < ACROSS_OWNERS)
    types = TYPES_TO_SHARE[int(len(TYPES_TO_SHARE) * share(plan.seed, "GPU types"))]
    return replace(plan, types=(*types, PART_TYPE) if _has_parts(plan) else types, policy=policy)


def _has_parts(plan: TrialPlan) -> bool:
    return share(plan.seed, "parts of GPUs") < WITH_PARTS


def with_gpu_shares(jobs: Sequence[SimulatedJob], plan: TrialPlan) -> list[SimulatedJob]:
    """Some of the jobs share GPUs instead of what they asked for."""
    if not share_gpus(plan):
        return list(jobs)
    found = [
        _sharing(job, plan.seed, number) if share(plan.seed, "shares a GPU", number) < SHARING else job
        for number, job in enumerate(jobs)
    ]
    if PART_TYPE not in plan.types:
        return found
    return [
        _with_part(job) if share(plan.seed, "part of a GPU", number) < ASK_FOR_PARTS else job
        for number, job in enumerate(found)
    ]


def _with_part(job: SimulatedJob) -> SimulatedJob:
    if "resources" not in job.spec:
        return job
    kept = {name: value for name, value in job.spec["resources"].items() if name != "gpuShare"}
    return replace(job, spec={**job.spec, "resources": {**kept, "vcpus": 0.5, "gpus": PART}})


def _sharing(job: SimulatedJob, seed: int, number: int) -> SimulatedJob:
    if "resources" not in job.spec:
        return job
    mib = SHARES_MIB[int(len(SHARES_MIB) * share(seed, "share of a GPU", number))]
    resources = {**job.spec["resources"], "vcpus": 0.5, "gpus": 0, "gpuShare": {"memoryMib": mib}}
    return replace(job, spec={**job.spec, "resources": resources})


def choose_by_chance(world: World, seed: int) -> None:
    """AWS does not say which of several GPUs with room ECS takes."""
    choices = iter(range(1 << 40))

    def pick(gpus: Sequence[PhysicalGpu]) -> PhysicalGpu:
        return gpus[int(len(gpus) * share(seed, "GPU", next(choices)))]

    world.ecs.ledger.pick_gpu = pick
