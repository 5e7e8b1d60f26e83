"""The progress and end of a deployment, and the runs that no roll-back needs any more.

Services and daemons share it: a deployment is judged by how many tasks of its revision are healthy, and how many others
are alive.

The controller may have suspended a run of an environment because its own code fails on that run. Then only the
resources of the run's attempts are known. If the suspended run is the target revision, the environment is left
unchanged. If it is another revision, the other runs continue: the suspended run's tasks count as alive but not as
healthy, and none of them is stopped for the others. If the environment is being deleted, the run is closed
(`lifecycle.suspension`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

from argosy.model.actions import ForgetEnvironment, NoteDeployment, NoteRecovered, RetireRun
from argosy.model.moment import Moment
from argosy.model.runs import Run
from argosy.model.services.environments import CALM_S, DeploymentStatus, Environment, ServiceDeployment, most_failures
from argosy.model.state import State

SUSPENDED = "the controller failed to process one of its runs, and retries"
GONE = "its run no longer exists"


@dataclass(frozen=True, slots=True)
class DeploymentCounts:
    """The tasks of an environment, counted."""

    desired: int
    healthy: int  # of the target revision
    outdated: int  # all others that are alive
    waiting: str = ""  # why some have no place
    is_held: bool = False  # a run of another revision is suspended, so its tasks are uncertain


def left_alone(env: Environment) -> Iterator[NoteDeployment]:
    """The reason why a deployment under way makes no progress."""
    latest = env.deployment
    if latest is not None and not latest.has_ended and latest.reason != SUSPENDED:
        waits = DeploymentStatus.WAITING
        yield NoteDeployment(env.name, waits, SUSPENDED, latest.healthy, latest.outdated, is_progress=True)


def progress(
    moment: Moment, env: Environment, target: Run | None, standing: DeploymentCounts
) -> Iterator[NoteDeployment]:
    """The progress of the latest deployment, if that has changed."""
    deployment = env.deployment
    if deployment is None or not _is_watched(env, deployment, target):
        return
    healthy, outdated = standing.healthy, standing.outdated
    note = NoteDeployment(env.name, deployment.status, deployment.reason, healthy, outdated)
    note = replace(
        note, is_progress=healthy > min(deployment.most_healthy, standing.desired) or outdated < deployment.outdated
    )
    failed = _why_failed(moment, env, deployment, target, standing)
    if failed is not None and not _goes_back_later(moment, env):
        note = replace(
            note, status=DeploymentStatus.FAILED, reason=failed, rolls_back_to=_back_to(moment, env, deployment)
        )
    elif healthy >= standing.desired and not (outdated or standing.is_held):
        note = replace(note, status=DeploymentStatus.COMPLETED, reason="")
    else:
        note = _going_on(moment, env, deployment, target, standing, note)
    changed = (deployment.status, deployment.reason, deployment.healthy, deployment.outdated)
    if changed != (note.status, note.reason, note.healthy, note.outdated) or note.status is DeploymentStatus.FAILED:
        yield note


def recovered(moment: Moment, env: Environment, standing: DeploymentCounts) -> Iterator[NoteRecovered]:
    """The note that none of its tasks has failed for a while, and that all desired ones are healthy."""
    is_calm = moment.now >= env.failed_at + CALM_S or not standing.desired
    if env.is_failing and is_calm and standing.healthy >= standing.desired:
        yield NoteRecovered(env.name)


def _is_watched(env: Environment, deployment: ServiceDeployment, target: Run | None) -> bool:
    """Whether it is followed: until it has ended, and afterwards while its run is given up, because a thawed revision
    is then frozen again."""
    return not deployment.has_ended or not (target is not None or env.frozen_reason or env.deleting)


def _going_on(
    moment: Moment,
    env: Environment,
    deployment: ServiceDeployment,
    target: Run | None,
    standing: DeploymentCounts,
    note: NoteDeployment,
) -> NoteDeployment:
    service = target.terms.service if target is not None else None
    if waiting := standing.waiting or SUSPENDED * standing.is_held:
        return replace(note, status=DeploymentStatus.WAITING, reason=waiting, is_progress=True)
    if deployment.status is DeploymentStatus.WAITING:
        return replace(note, status=DeploymentStatus.IN_PROGRESS, reason="", is_progress=True)
    since = moment.now - deployment.progress_at
    if service is not None and not (note.is_progress or env.frozen_reason) and since >= service.progress_s:
        counts = f"{note.healthy} of {standing.desired} are healthy"
        reason = f"no progress for {service.progress_s:.0f} s: {counts}"
        return replace(note, status=DeploymentStatus.STUCK, reason=reason)
    return replace(note, status=DeploymentStatus.IN_PROGRESS, reason="")


def _why_failed(
    moment: Moment, env: Environment, deployment: ServiceDeployment, target: Run | None, standing: DeploymentCounts
) -> str | None:
    revision = env.target
    if target is None:
        halted = moment.state.runs.get(revision.run_id) if revision else None
        return halted.status_reason if halted is not None and halted.status_reason else GONE
    one_more = standing.healthy > min(deployment.most_healthy, standing.desired)  # so failures count from 0 again
    if deployment.failures >= most_failures(standing.desired) and not one_more:
        known = [group for group in target.failure_groups if group.reason > 0]
        why = f": {target.reasons[max(known, key=lambda group: group.last_at).reason]}" if known else ""
        return f"{deployment.failures} of its tasks failed before one more became healthy{why}"
    return None


def _back_to(moment: Moment, env: Environment, failed: ServiceDeployment) -> int:
    """The revision of a roll-back; 0 = none. A roll-back itself is not rolled back."""
    run = moment.state.runs.get(env.target.run_id) if env.target else None
    wishes = run is None or run.terms.service is None or run.terms.service.rolls_back
    back = env.revision(env.completed)
    if failed.is_rollback or not wishes or back is None or back.number == failed.revision:
        return 0
    before = moment.state.runs.get(back.run_id)
    return back.number if before is not None and not before.halted else 0


def _goes_back_later(moment: Moment, env: Environment) -> bool:
    """Whether the run of the earlier revision is suspended and the controller will try it again soon."""
    back = env.revision(env.completed)
    return back is not None and back is not env.target and back.run_id in moment.state.suspended


def retirements(
    env: Environment, runs: Sequence[Run], busy: Set[str], *, is_held: bool = False
) -> Iterator[RetireRun | ForgetEnvironment]:
    """Runs that no roll-back needs. busy: ids of those whose tasks are needed or are ending. An entry left in a
    target group keeps the record. is_held: the environment has other runs, which are suspended."""
    goes = env.deleting or env.left
    if goes and not (runs or env.targets or is_held):
        yield ForgetEnvironment(env.name)
        return
    kept = set() if goes else {env.completed} | ({env.target.number} if env.target else set())
    needed = {each.run_id for each in env.revisions if each.number in kept}
    for run in runs:
        if run.id not in busy | needed and not run.halted:
            why = "its environment was deleted" if goes else f"replaced in environment {env.name}"
            yield RetireRun(run.id, why)


def suspended_runs(state: State, env: Environment) -> list[str]:
    """Their ids."""
    return [run_id for run_id in env.runs() if run_id in state.suspended]


def is_left_alone(state: State, env: Environment) -> bool:
    """Whether no decision about it is possible."""
    found = suspended_runs(state, env)
    return bool(found) and not env.deleting and (env.target is None or env.target.run_id in found)


def placed_rows(state: State, env: Environment) -> Iterator[tuple[str, int]]:
    """Run id and row of each attempt of suspended runs that has a place on an instance."""
    for run_id in suspended_runs(state, env):
        for row in sorted(state.attempts.of_run(state.suspended[run_id].record.number)):
            if not state.attempts["left_at"][row]:
                yield run_id, row
