"""What does the end of an attempt mean for its task, and which account is charged?

The task is done, tried again or given up. There are two budgets (DESIGN D9): the user's attempts, and losses to
infrastructure, which never use up a user attempt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from fnmatch import fnmatchcase

from argosy.model.attempts import StopCause
from argosy.model.events import TaskSeen
from argosy.model.exit_codes import OUT_OF_MEMORY, SAYS_NOTHING, TEMPORARY, explained
from argosy.model.instances import Instance
from argosy.model.policy import Policy
from argosy.model.run_terms import ExitRule
from argosy.model.runs import Failure, Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus

MAX_FAILURES_SHOWN = 10
MAX_BACKOFF_S = 60.0
MOST_COUNTED = 255  # preemptions of a task
# The agent's error names for a container that could not be created (aws.md 9.6).
CANNOT_START = (
    "CannotPull", "CannotCreate", "CannotStart", "ResourceInitializationError",
    "HostConfigError", "DockerClientConfigError", "InvalidVolumeError",
)  # fmt: skip
# A registry's replies to too many pulls at once (reliability.md row 49).
REGISTRY_IS_BUSY = re.compile(r"toomanyrequests|too many requests|rate exceeded|rate limit|\b429\b", re.I)
HOST_CODES = frozenset({"SpotInterruption", "TerminationNotice", "InfrastructureHealth"})  # stop codes of a lost host

GPU_RESET = "GpuReset"  # a stop code of ours (`lifecycle.gpu_resets`)


class Account(Enum):
    """The account that is charged with the end of an attempt."""

    SUCCESS = "success"
    USER = "user"
    LOST = "lost"  # infrastructure: spot, host, agent
    START = "start"  # infrastructure, but rarely temporary: the image, the log group, the container's set-up, S3
    BUSY = "busy"  # the registry throttles pulls: temporary
    CANCELLED = "cancelled"
    PEER = "peer"  # stopped because another member of its gang ended: the gang's end is charged, not this one
    PREEMPTED = "preempted"  # stopped for a run of another queue, which pays


_OURS = {
    StopCause.CANCELLED: Account.CANCELLED,
    StopCause.CAPPED: Account.CANCELLED,
    StopCause.REPLACED: Account.CANCELLED,
    StopCause.PREEMPTED: Account.PREEMPTED,
}  # whatever its exit code


def account_for(  # noqa: PLR0911 - one rule a line
    seen: TaskSeen, cause: StopCause, instance: Instance | None, *, has_runner: bool = False, serves: bool = False
) -> Account:
    """Classify a stopped task (aws.md 9.6). Exit code 0 is a success, except of a server.

    A host that ended after we asked for the stop leaves open how the attempt would have ended: it is not the user's.
    has_runner: the runner has its own exit code for failures of S3, which are not the user's either. serves: a server
    is never done. It may answer SIGTERM from any sender with exit code 0; without such a cause, its exit is a failure.
    """
    if cause is StopCause.GANG:
        return Account.LOST if host_was_lost(seen, instance) else Account.PEER
    if seen.exit_code == 0 and not serves:
        return Account.SUCCESS
    if cause in _OURS:
        return _OURS[cause]
    if cause is StopCause.TIMED_OUT and seen.stop_code not in HOST_CODES:
        return Account.USER
    is_lost = cause in (StopCause.INTERRUPTED, StopCause.STUCK) or seen.stop_code == GPU_RESET
    is_lost = is_lost or host_was_lost(seen, instance)
    if is_lost or (cause is StopCause.UNPULLED and seen.exit_code is not None):
        return Account.LOST
    if any(sign in seen.reason for sign in CANNOT_START):
        return Account.BUSY if REGISTRY_IS_BUSY.search(seen.reason) else Account.START
    if seen.exit_code is None:
        # It never started, or its end was not seen.
        return Account.START if cause is StopCause.UNPULLED else Account.LOST
    if has_runner and seen.exit_code == TEMPORARY:
        return Account.START  # the runner has tried for a minute, so a few more tries are enough
    return Account.USER


def host_was_lost(seen: TaskSeen, instance: Instance | None) -> bool:
    """Whether the attempt ended with its instance, as far as is known. On an instance that is ending, any failure
    counts as that: a program may answer SIGTERM with its own exit code. Running out of memory does not: it has its
    own cause."""
    if seen.stop_code in HOST_CODES or seen.reason.startswith("Host EC2"):
        return True
    return instance is not None and instance.leaves and OUT_OF_MEMORY not in seen.reason


def account_without_result(cause: StopCause, instance: Instance | None) -> Account:
    """Classify an exit code of 0 that left no result. A program may answer SIGTERM with it, so it is the user's only if
    neither Argosy nor the end of its instance may have sent SIGTERM. cause: as in `TaskTable`. A release by us says
    nothing, since the instance was idle by then, unless it was about to end: then it is released as soon as it is
    idle."""
    if cause in (StopCause.CANCELLED, StopCause.CAPPED):
        return Account.CANCELLED
    if cause is StopCause.PREEMPTED:
        return Account.PREEMPTED
    if cause is StopCause.TIMED_OUT:
        return Account.USER
    went = instance is not None and instance.leaves and (_was_to_go(instance) or not instance.released_at)
    return Account.LOST if went or cause is not StopCause.NONE else Account.USER


def _was_to_go(instance: Instance) -> bool:
    """The agent drains its instance when it sees an interruption, which may be before the warning reaches us."""
    return bool(instance.interrupted_at or instance.rebalance_at or instance.draining_since)


def shown_reason(run: Run, seen: TaskSeen, cause: StopCause, instance: Instance | None) -> str:
    """The reason of an end, as shown to users, with what AWS says about the health of its instance."""
    ill = instance.impaired.values() if instance is not None and cause is StopCause.NONE and seen.exit_code else ()
    return "; ".join([_reason_of_end(run, seen, cause), *(f"on an instance of which {each}" for each in ill)])


def _reason_of_end(run: Run, seen: TaskSeen, cause: StopCause) -> str:
    if cause is StopCause.TIMED_OUT:
        return f"the attempt took longer than {run.terms.attempt_timeout_s:.0f} s"
    if seen.reason == SAYS_NOTHING or not (seen.reason or seen.exit_code is None):
        return explained(None, seen.exit_code, has_runner=run.terms.needs_runner)
    return seen.reason or seen.stop_code or "the task stopped"


def is_open(seen: TaskSeen, cause: StopCause, instance: Instance | None, *, serves: bool = False) -> bool:
    """Whether the failure is the user's, unless its instance turns out to be ending."""
    may_go = instance is not None and instance.owned and not instance.leaves and OUT_OF_MEMORY not in seen.reason
    return may_go and cause is StopCause.NONE and account_for(seen, cause, instance, serves=serves) is Account.USER


def is_result_open(cause: StopCause, instance: Instance | None) -> bool:
    """Whether an exit code of 0 that left no result is the user's, unless its instance turns out to be ending."""
    return cause is StopCause.NONE and instance is not None and instance.owned and not instance.leaves


def wants_retry(rules: tuple[ExitRule, ...], seen: TaskSeen) -> bool:
    """AWS Batch's rule: the first rule whose patterns all match decides; when none matches, retry."""
    for rule in rules:
        patterns = (
            (rule.on_exit_code, "" if seen.exit_code is None else str(seen.exit_code)),
            (rule.on_reason, seen.container_reason),
            (rule.on_status_reason, seen.status_reason),
        )
        if all(pattern is None or fnmatchcase(value, pattern) for pattern, value in patterns):
            return rule.action == "RETRY"
    return True


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """How the latest attempt of a task ended."""

    index: int
    account: Account
    cause: StopCause
    reason: str  # as shown to users
    seen: TaskSeen  # what the rules of `evaluateOnExit` match
    instance: str | None = None


def charge_user(state: State, run: Run, end: AttemptEnd, now: float, policy: Policy) -> None:
    """Charge a failed attempt to the user. Try again if rules and budget allow it, otherwise give the task up."""
    failures = int(run.tasks["user_failures"][end.index]) + 1
    attempt, seen = int(run.tasks["attempts"][end.index]), end.seen
    _show(run, Failure(end.index, attempt, seen.exit_code, end.reason, end.instance, seen.arn or None))
    again = failures < run.terms.attempt_limit and wants_retry(run.terms.exit_rules, seen)
    status, not_before = _next_status(run, again), now + _backoff(policy, failures)
    _again_or_never(state, run, end, status, not_before=not_before, user_failures=failures)


def charge_infrastructure(state: State, run: Run, end: AttemptEnd, limit: int, not_before: float) -> None:
    """Record an attempt that the infrastructure lost. limit: the number of losses at which the task is given up."""
    losses = int(run.tasks["losses"][end.index]) + 1
    if losses >= limit:
        end = replace(end, reason=f"given up after {losses} losses: {end.reason}")
        _show(run, Failure(end.index, int(run.tasks["attempts"][end.index]), None, end.reason, None))
    _again_or_never(state, run, end, _next_status(run, losses < limit), not_before=not_before, losses=losses)


def charge_nobody(state: State, run: Run, end: AttemptEnd, now: float) -> None:
    """Record an attempt stopped for another queue's run: its task waits again, with all its tries."""
    run.preemptions += 1
    preempted = min(MOST_COUNTED, int(run.tasks["preempted"][end.index]) + 1)
    _again_or_never(state, run, end, _next_status(run, True), not_before=now, preempted=preempted)


def _show(run: Run, failure: Failure) -> None:
    run.failures.append(failure)
    del run.failures[:-MAX_FAILURES_SHOWN]


def _next_status(run: Run, again: bool) -> TaskStatus:
    if not again:
        return TaskStatus.FAILED
    return TaskStatus.CANCELLED if run.halted else TaskStatus.PENDING


def _again_or_never(state: State, run: Run, end: AttemptEnd, status: TaskStatus, **values: float) -> None:
    state.set_task(run, end.index, status=status, launch=0, reason=run.reason_row(end.reason), **values)


def _backoff(policy: Policy, failures: int) -> float:
    return min(MAX_BACKOFF_S, policy.retry_backoff_s * float(2 ** (failures - 1)))


def end_attempt(state: State, row: int, now: float) -> None:
    """Free the row, however the attempt ended."""
    instance, has_left = state.instance_of(row), bool(state.attempts["left_at"][row])
    state.attempts.remove(row)
    state.open_ends.failures.pop(row, None)
    if not has_left:
        note_idle(state, instance, now)


def note_idle(state: State, instance: Instance | None, now: float) -> None:
    """An attempt has left the instance, which is idle from now on unless it has another one. Daemons' attempts do not
    count: a daemon that crashes repeatedly would keep an idle instance forever."""
    if instance is not None and instance.alive and not instance.idle_since and not state.has_work(instance.id):
        instance.idle_since = now
        state.changed_instances.add(instance.id)
