"""A service's tasks: restarts after an attempt ends, and the health and ports that a sighting shows."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.lifecycle.accounts import Account, AttemptEnd, host_was_lost
from argosy.model.arns import name_of
from argosy.model.attempts import StopCause, TaskHealth
from argosy.model.costs import Work
from argosy.model.events import TaskSeen
from argosy.model.runs import Run
from argosy.model.services.environments import CALM_S, Environment
from argosy.model.services.ports import packed
from argosy.model.setbacks import MAX_REASON
from argosy.model.state import State
from argosy.model.tasks import TaskStatus

_HEALTH = {"HEALTHY": TaskHealth.HEALTHY, "UNHEALTHY": TaskHealth.UNHEALTHY}
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 300.0
STEADY_S = 300.0  # after a run this long, pauses start small again: a task that dies every twenty seconds is not steady
MOST_COUNTED = 1_000  # of failures and losses: only the first few matter
STOPPED_FOR_ITS_INSTANCE = (StopCause.INTERRUPTED, StopCause.STUCK)
NOT_WANTED = (StopCause.REPLACED, StopCause.CANCELLED, StopCause.CAPPED)


def settle(state: State, run: Run, end: AttemptEnd, now: float) -> None:
    """The new status of the task. A program that ends is restarted, whatever its exit code: after a loss at once,
    otherwise after a pause that doubles until it has run for a while. An unhealthy task has a successor elsewhere."""
    index = end.index
    env = state.environments.get(run.name)
    if end.cause is StopCause.UNHEALTHY and end.account is Account.USER:
        _count(state, env, run, end, now)
    is_held = env is not None and bool(env.frozen_reason or env.deleting)
    is_done = end.cause in (*NOT_WANTED, StopCause.UNHEALTHY)
    if run.halted or is_done or is_held or _has_nowhere_to_be(state, run, end):
        state.set_task(run, index, status=TaskStatus.CANCELLED, launch=0, reason=run.reason_row(end.reason))
        return
    failures, losses = (int(run.tasks[name][index]) for name in ("user_failures", "losses"))
    if float(run.tasks["seconds"][index]) >= STEADY_S:
        failures = losses = 0
    if _was_lost(state, end):
        losses, pause_s = min(losses + 1, MOST_COUNTED), 0.0
    else:
        failures, pause_s = min(failures + 1, MOST_COUNTED), _pause(failures + 1)
        _count(state, env, run, end, now)
    state.set_task(
        run,
        index,
        status=TaskStatus.PENDING,
        launch=0,
        reason=run.reason_row(end.reason),
        not_before=now + pause_s,
        user_failures=failures,
        losses=losses,
    )


def _has_nowhere_to_be(state: State, run: Run, end: AttemptEnd) -> bool:
    """A daemon's task ends with its instance."""
    instance = state.instances.get(end.instance or "")
    return run.is_daemon and (instance is None or instance.leaves)


def _was_lost(state: State, end: AttemptEnd) -> bool:
    """Whether it ended because its instance ends, or because we stopped it for that, with any exit code: a program may
    answer SIGTERM with 0."""
    was_stopped = end.cause in STOPPED_FOR_ITS_INSTANCE
    return (
        end.account is Account.LOST or was_stopped or host_was_lost(end.seen, state.instances.get(end.instance or ""))
    )


def was_healthy(run: Run, index: int) -> bool:
    """Whether the attempt that ended ran for long enough to count as healthy."""
    return run.terms.service is not None and float(run.tasks["seconds"][index]) >= run.terms.service.healthy_s


def work(run: Run, end: AttemptEnd) -> Work:
    """The use of the attempt's time: useful once it was healthy. An attempt that we stopped because its instance
    ends is repeated, whatever its exit code."""
    if was_healthy(run, end.index) or end.cause in NOT_WANTED:
        return Work.USEFUL
    is_redone = end.account in (Account.LOST, Account.START, Account.BUSY) or end.cause in STOPPED_FOR_ITS_INSTANCE
    return Work.REDONE if is_redone else Work.FAILED


def _pause(failures: int) -> float:
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(failures - 1, 10))


def _count(state: State, env: Environment | None, run: Run, end: AttemptEnd, now: float) -> None:
    """Failures charged to the user open the breaker of a deployment; outside a deployment they mark the environment as
    failing. A busy registry or a lost instance says nothing about a revision (DESIGN D9)."""
    deployment = env.deployment if env is not None else None
    if env is None or deployment is None or end.account is Account.BUSY:
        return
    if env.target is None or env.target.run_id != run.id:
        return
    is_first = now - env.failed_at > CALM_S
    if not deployment.has_ended:
        deployment.failures = 1 if is_first else deployment.failures + 1
    elif not env.frozen_reason and (
        end.cause is StopCause.UNHEALTHY or float(run.tasks["seconds"][end.index]) < STEADY_S
    ):
        env.failures = 1 if is_first and not env.is_failing else min(env.failures + 1, MOST_COUNTED)
    env.failed_at, env.failure = now, end.reason[:MAX_REASON]
    state.changed_environments.add(env.name)


def begin_look(state: State, arns: Sequence[str], now: float) -> None:
    """Note when the health of these tasks was checked, whatever the result. Ended tasks are dropped."""
    if len(state.health_looks) > len(state.attempts.row_of_task_id):
        state.health_looks = {
            task_id: at for task_id, at in state.health_looks.items() if task_id in state.attempts.row_of_task_id
        }
    state.health_looks |= {name_of(arn).encode(): now for arn in arns}


def note_sighting(state: State, row: int, seen: TaskSeen) -> None:
    """Record the health and the ports that a sighting shows for the live attempt in the row.

    As far as is known, ECS neither sends an event when a container's health changes nor raises the version of its task.
    So this ignores the version and applies sightings in the order of the polls."""
    _note_health(state, row, seen)
    if seen.ports:
        run = state.run_by_number(int(state.attempts["run"][row]))
        ports = packed(run.terms.ports, seen.ports) if run is not None else 0
        if ports and ports != state.attempts["host_ports"][row]:
            state.attempts.set(row, host_ports=ports)


def _note_health(state: State, row: int, seen: TaskSeen) -> None:
    """UNKNOWN is ignored: ECS also shows it while the agent is disconnected and the container runs."""
    task_id = name_of(seen.arn).encode()
    if not seen.looked_at or seen.looked_at < state.health_looks.get(task_id, 0.0):
        return
    state.health_looks[task_id] = seen.looked_at
    health = _HEALTH.get(seen.health)
    if health is not None and health != state.attempts["health"][row]:
        state.attempts.set(row, health=health, health_since=seen.looked_at)
