"""Runs of a trial whose programs save checkpoints, drawn by name, so that no other choice of the seed changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.harness.simulation.plan import TrialPlan
from tests.harness.simulation.users.submissions import own_program
from tests.harness.simulation.world.workload import SimulatedJob
from tests.harness.simulation.world.world import share

SAVING = 0.7  # share of their runs
EVERY_S = (10, 15, 25)  # less than any attempt may take
UPLOADS_S = (0.5, 5.0, 40.0)  # with the last one, stopped tasks are killed before their checkpoint is complete


def save_checkpoints(plan: TrialPlan) -> bool:
    """Whether programs of the plan save checkpoints."""
    return share(plan.seed, "checkpoints are saved") < plan.checkpoints


def with_checkpoints(jobs: Sequence[SimulatedJob], plan: TrialPlan) -> list[SimulatedJob]:
    """Some of the jobs have programs that save their work and resume."""
    if not save_checkpoints(plan):
        return list(jobs)
    return [
        _saving(job, plan.seed, number) if share(plan.seed, "saves", number) < SAVING else job
        for number, job in enumerate(jobs)
    ]


def _saving(job: SimulatedJob, seed: int, number: int) -> SimulatedJob:
    every_s = EVERY_S[int(len(EVERY_S) * share(seed, "every", number))]
    spec = {**job.spec, "checkpoint": {"everySeconds": every_s}}
    if "run" not in spec:
        spec |= own_program(spec["container"].get("environment", {}), "stdout" if job.expects_result else "none")
    return replace(job, spec=spec, upload_s=UPLOADS_S[int(len(UPLOADS_S) * share(seed, "upload", number))])
