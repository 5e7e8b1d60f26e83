"""Runs of a trial whose tasks share GPUs, and the choice of a GPU that ECS makes for each.

Both are drawn by name, so that no other choice of the seed changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from argosy.emulator.ecs.records import PhysicalGpu
from tests.harness.simulation.plan import TrialPlan
from tests.harness.simulation.world.workload import SimulatedJob
from tests.harness.simulation.world.world import World, share

SHARES_MIB = (2_000, 3_000, 5_000, 7_500, 9_000)  # of a T4 with 15,360


def with_gpu_shares(jobs: Sequence[SimulatedJob], plan: TrialPlan) -> list[SimulatedJob]:
    """Some of the jobs share GPUs instead of what they asked for."""
    return [
        _sharing(job, plan.seed, number) if share(plan.seed, "shares a GPU", number) < plan.gpu_shares else job
        for number, job in enumerate(jobs)
    ]


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
