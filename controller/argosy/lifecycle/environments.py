"""How do requests and decisions change an environment?"""

from __future__ import annotations

import numpy as np

from argosy.model.actions import NoteDeployment, SetSlots
from argosy.model.inbox import EnvironmentRequest, SubmitRequest
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run
from argosy.model.services.environments import (
    MOST_DEPLOYMENTS,
    MOST_REVISIONS,
    DeploymentStatus,
    Environment,
    Revision,
    ServiceDeployment,
)
from argosy.model.state import State
from argosy.model.tasks import TaskStatus


def ask(state: State, request: EnvironmentRequest) -> None:
    """Fold a request in. A repeated request, or one about nothing that exists, changes nothing. Neither does one about
    an unreadable environment, which it would overwrite."""
    if f"environment {request.name}" not in state.losses.kept:
        _fold_in(state, request)


def _fold_in(state: State, request: EnvironmentRequest) -> None:
    env = state.environments.get(request.name)
    if request.change == "create":
        _create(state, env, request)
    elif env is None or env.deleting or (env.left and request.change != "delete"):
        _note_lost(state, env, request)
        return
    elif request.change == "update":
        _revise(state, env, Revision(request.revision, request.requested_at))
    elif request.change == "deploy":
        _deploy(state, env, request)
    elif request.change == "scale" and request.desired is not None and not env.is_daemon:
        env.desired = request.desired
    elif request.change == "freeze":
        _freeze(env, request.reason)
    elif request.change == "thaw":
        _thaw(env, request.requested_at)
    elif request.change == "stop":
        _stop(env, request)
    elif request.change == "delete":
        _delete(env, request)
    state.changed_environments.add(request.name)


def _create(state: State, env: Environment | None, request: EnvironmentRequest) -> None:
    """Take over the cost and tasks that a deleted environment of the same name has left, until the first deployment
    adopts or replaces the tasks."""
    if env is not None and not env.left:
        _note_lost(state, env, request)
        return
    new = Environment.new(
        request.name,
        Revision(request.revision, request.requested_at),
        request.desired or 0,
        is_daemon=request.is_daemon,
    )
    if env is not None:
        known = state.runs.keys() | state.suspended.keys()
        new.revisions[:0] = [each for each in env.revisions if each.run_id in known]
        new.past_usd, new.replaced, new.targets = env.past_usd, env.replaced, env.targets
    state.environments[request.name] = new


def _note_lost(state: State, env: Environment | None, request: EnvironmentRequest) -> None:
    """The api has stored a revision for an environment that is being deleted, or is deleted: the number is used up, and
    does not indicate a new environment."""
    if request.change not in ("create", "update"):
        return
    if env is not None:
        _revise(state, env, Revision(request.revision, request.requested_at))
        state.changed_environments.add(env.name)
    else:
        state.gone_environments[request.name] = max(request.revision, state.gone_environments.get(request.name, 0))


def _delete(env: Environment, request: EnvironmentRequest) -> None:
    why = "the environment was deleted"
    _end_deployment(env, DeploymentStatus.STOPPED, request.requested_at, why)
    env.left, env.deleting = request.leaves_tasks, not request.leaves_tasks
    env.frozen_reason, env.frozen_by_user = f"{why}, and its tasks were kept" if env.left else "", False


def _revise(state: State, env: Environment, revision: Revision) -> Revision:
    """Returns the one of that number. Drop the oldest revisions, unless they should run or their runs still exist:
    their tasks would belong to no revision."""
    earlier = env.revision(revision.number)
    if earlier is not None:
        return earlier
    env.revisions.append(revision)
    env.revisions.sort(key=lambda each: each.number)
    known = state.runs.keys() | state.suspended.keys()
    kept = (env.target, revision)
    done = [each for each in env.revisions if each.run_id not in known and each not in kept]
    for oldest in done[: max(0, len(env.revisions) - MOST_REVISIONS)]:
        env.revisions.remove(oldest)
    return revision


def _freeze(env: Environment, why: str) -> None:
    env.frozen_reason = why or env.frozen_reason or "frozen by a user"
    env.frozen_by_user = True


def _freeze_by_itself(env: Environment, why: str) -> None:
    """Set the controller's own freeze; "" ends it. A freeze set by a user keeps its reason."""
    if not env.frozen_by_user:
        env.frozen_reason = why


def _thaw(env: Environment, now: float) -> None:
    """Retry a failed or stopped deployment as a new one. The progress clock of a deployment under way
    restarts now."""
    was_frozen, env.frozen_reason, env.frozen_by_user = env.frozen_reason, "", False
    deployment, target = env.deployment, env.target
    if deployment is None or target is None or not was_frozen:
        return
    if deployment.status in (DeploymentStatus.FAILED, DeploymentStatus.STOPPED):
        begin_deployment(env, target, now, reason="thawed")
    elif not deployment.has_ended:
        deployment.progress_at = now


def _stop(env: Environment, request: EnvironmentRequest) -> None:
    """Its tasks stay as they are."""
    if env.deployment is not None and not env.deployment.has_ended:
        _end_deployment(env, DeploymentStatus.STOPPED, request.requested_at, request.reason)
        _freeze_by_itself(env, f"deployment {env.deployment.number} was stopped")


def _end_deployment(env: Environment, status: DeploymentStatus, now: float, reason: str) -> None:
    deployment = env.deployment
    if deployment is not None and not deployment.has_ended:
        deployment.status, deployment.reason, deployment.ended_at = status, reason, now


def _deploy(state: State, env: Environment, request: EnvironmentRequest) -> None:
    submit = request.submit
    service = None if submit is None else submit.terms.service
    if submit is None or service is None or any(each.token == request.token for each in env.deployments):
        return
    revision = _revise(state, env, Revision(request.revision, request.requested_at))
    wanted = env.spec_desired if env.is_daemon else service.desired
    if wanted != env.spec_desired:
        env.desired = env.spec_desired = wanted
    if revision.run_id not in state.suspended:  # otherwise it is used once its run is no longer suspended
        _give_run(state, env, revision, submit)
    begin_deployment(env, revision, request.requested_at, token=request.token)


def _give_run(state: State, env: Environment, revision: Revision, submit: SubmitRequest) -> None:
    """Start a new run, unless the revision has one that continues. The rest of a run that was given up is stopped: a
    service's tasks would never end."""
    run = state.runs.get(revision.run_id)
    if run is not None and not run.halted:
        return
    if run is not None:
        run.cancelled = True
        env.replaced.append(run.id)
        state.changed_runs.add(run.id)
    if not _adopts(state, env, revision, submit):
        revision.run_id = state.take_in(submit, max(1, env.desired), TaskStatus.CANCELLED).id


def _adopts(state: State, env: Environment, revision: Revision, submit: SubmitRequest) -> bool:
    """Whether another revision has the same tasks: then this revision takes over its run and restarts none of them. The
    rest of the new spec applies to later decisions."""
    for other in env.revisions:
        run = state.runs.get(other.run_id)
        if run is None or run.halted or not _is_alike(run, submit):
            continue
        revision.run_id, other.run_id = run.id, ""
        env.completed = revision.number if env.completed == other.number else env.completed
        run.change_spec({**submit.spec, "array": run.spec["array"]}, submit.terms)  # tasks receive the array's size
        run.proven_owner = submit.proven_owner
        state.new_runs.add(run.id)  # its spec is stored again
        state.changed_runs.add(run.id)
        return True
    return False


def _is_alike(run: Run, submit: SubmitRequest) -> bool:
    """Whether its tasks are the same as the request's."""
    mine, theirs = run.terms.service, submit.terms.service
    is_same = mine is not None and theirs is not None and mine.content == theirs.content
    return is_same and run.image == submit.image


def begin_deployment(
    env: Environment, revision: Revision, now: float, *, token: str = "", is_rollback: bool = False, reason: str = ""
) -> None:
    number = env.deployment.number + 1 if env.deployment else 1
    _end_deployment(env, DeploymentStatus.SUPERSEDED, now, f"by deployment {number}")
    env.deployments.append(
        ServiceDeployment(number, revision.number, now, token, reason=reason, progress_at=now, is_rollback=is_rollback)
    )
    del env.deployments[: max(0, len(env.deployments) - MOST_DEPLOYMENTS)]
    _freeze_by_itself(env, "")  # a deployment of an environment that a user has frozen waits for the thaw
    env.failures = 0


def set_slots(state: State, action: SetSlots) -> None:
    """Rows are added and never removed: (run, index, attempt, launch) names one launch forever."""
    run = state.runs[action.run_id]
    if action.rows > run.task_count:
        run.tasks.grow_to(action.rows)
        run.task_count = action.rows
    for indexes, status in ((action.wanted, TaskStatus.PENDING), (action.parked, TaskStatus.CANCELLED)):
        if indexes:
            run.tasks.set_many(np.array(indexes), status=status, not_before=0.0, reason=0)
    run.waiting = run.waiting if run.may_wait else ""
    state.changed_runs.add(run.id)


def note_deployment(state: State, action: NoteDeployment, now: float) -> None:
    """Note the progress of the latest deployment."""
    env = state.environments[action.name]
    deployment = env.deployments[-1]
    if action.healthy > min(deployment.most_healthy, env.desired):
        deployment.failures = 0
    deployment.most_healthy = max(deployment.most_healthy, action.healthy)
    deployment.healthy, deployment.outdated = action.healthy, action.outdated
    deployment.status, deployment.reason = action.status, action.reason
    if action.is_progress:
        deployment.progress_at = now
    if deployment.has_ended:
        deployment.ended_at = now
    if action.status is DeploymentStatus.COMPLETED:
        env.completed = deployment.revision
    if action.status is DeploymentStatus.FAILED:
        _after_failure(env, deployment, action.rolls_back_to, now)
    state.changed_environments.add(env.name)


def note_recovered(state: State, name: str) -> None:
    state.environments[name].failures = 0
    state.changed_environments.add(name)


def _after_failure(env: Environment, failed: ServiceDeployment, back_to: int, now: float) -> None:
    """Return to the revision that ran before. If there is none, or it fails too, everything stays as it is."""
    revision = env.revision(back_to) if back_to else None
    if revision is not None:
        reason = f"deployment {failed.number} failed: {failed.reason}"
        begin_deployment(env, revision, now, is_rollback=True, reason=reason)
    else:
        _freeze_by_itself(env, f"deployment {failed.number} failed: {failed.reason}")


def note_closed(state: State, run: Run | RunRecord) -> None:
    """A run is closed and its cost is final: the environment no longer needs the run."""
    env = state.environments.get(run.name)
    if env is not None and run.id in env.all_runs():
        env.past_usd += run.cost_usd
        env.replaced = [each for each in env.replaced if each != run.id]
        state.changed_environments.add(env.name)


def forget(state: State, name: str) -> None:
    """The environment was deleted, and none of its tasks run any more."""
    state.gone_environments[name] = state.environments.pop(name).latest.number
    state.changed_environments.add(name)
