"""What does the end of an attempt mean for its task: done, tried again or given up, and who is charged with it?

Two budgets (DESIGN D9): the user's attempts, and losses to infrastructure, which never use up a user attempt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from fnmatch import fnmatchcase

from argosy.lifecycle.marks import set_task
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
# Names of the agent's errors about a container that could not be made (aws.md 9.6).
CANNOT_START = (
    "CannotPull", "CannotCreate", "CannotStart", "ResourceInitializationError",
    "HostConfigError", "DockerClientConfigError", "InvalidVolumeError",
)  # fmt: skip
# What a registry says to too many pulls at once (reliability.md row 49).
REGISTRY_IS_BUSY = re.compile(r"toomanyrequests|too many requests|rate exceeded|rate limit|\b429\b", re.I)
HOST_CODES = frozenset({"SpotInterruption", "TerminationNotice", "InfrastructureHealth"})  # stop codes of a lost host


class Account(Enum):
    """Who is charged with the end of an attempt."""

    SUCCESS = "success"
    USER = "user"
    LOST = "lost"  # infrastructure: spot, host, agent
    START = "start"  # infrastructure, but one that rarely heals: the image, the log group, the container's set-up, S3
    BUSY = "busy"  # the registry asks to go slower: it heals by itself
    CANCELLED = "cancelled"
    PREEMPTED = "preempted"  # stopped for a run of another queue, which pays


_OURS = {
    StopCause.CANCELLED: Account.CANCELLED,
    StopCause.CAPPED: Account.CANCELLED,
    StopCause.REPLACED: Account.CANCELLED,
    StopCause.PREEMPTED: Account.PREEMPTED,
}  # whatever the task answered


def account_for(
    seen: TaskSeen, cause: StopCause, instance: Instance | None, *, has_runner: bool = False, serves: bool = False
) -> Account:
    """Classify a stopped task (aws.md 9.6). An exit code of 0 is success whatever else was going on.

    A host that went while we asked for the stop leaves open how the attempt would have ended: not the user's.
    has_runner: the runner ends with an exit code of its own when S3 fails it, which is not the user's either. serves:
    a server is never done; it may answer SIGTERM with exit code 0, whoever sent that, and else it has failed.
    """
    if seen.exit_code == 0 and not serves:
        return Account.SUCCESS
    if cause in _OURS:
        return _OURS[cause]
    if cause is StopCause.TIMED_OUT and seen.stop_code not in HOST_CODES:
        return Account.USER
    if cause in (StopCause.INTERRUPTED, StopCause.STUCK) or host_was_lost(seen, instance):
        return Account.LOST
    if any(sign in seen.reason for sign in CANNOT_START):
        return Account.BUSY if REGISTRY_IS_BUSY.search(seen.reason) else Account.START
    if seen.exit_code is None:
        return Account.LOST  # it never started, or its end was not seen
    if has_runner and seen.exit_code == TEMPORARY:
        return Account.START  # it has tried for a minute, so that a few more tries are enough
    return Account.USER


def host_was_lost(seen: TaskSeen, instance: Instance | None) -> bool:
    """Whether the attempt ended with its instance, as far as is known. On one that goes, any failure counts as that: a
    program may answer SIGTERM with an exit code of its own. Memory runs out without any help."""
    if seen.stop_code in HOST_CODES or seen.reason.startswith("Host EC2"):
        return True
    return instance is not None and instance.leaves and OUT_OF_MEMORY not in seen.reason


def account_without_result(cause: StopCause, instance: Instance | None) -> Account:
    """Classify an exit code of 0 that left no result. A program may answer SIGTERM with it, so it is the user's only if
    neither we nor the end of its instance may have sent that. cause: as `TaskTable` keeps it. That we released it says
    nothing, since it was idle by then; unless it was about to go anyhow, when it is released as soon as it is idle."""
    if cause in (StopCause.CANCELLED, StopCause.CAPPED):
        return Account.CANCELLED
    if cause is StopCause.PREEMPTED:
        return Account.PREEMPTED
    if cause is StopCause.TIMED_OUT:
        return Account.USER
    went = instance is not None and instance.leaves and (_was_to_go(instance) or not instance.released_at)
    return Account.LOST if went or cause is not StopCause.NONE else Account.USER


def _was_to_go(instance: Instance) -> bool:
    """Its agent drains it when it sees an interruption, which may be before we hear of one."""
    return bool(instance.interrupted_at or instance.rebalance_at or instance.draining_since)


def shown_reason(run: Run, seen: TaskSeen, cause: StopCause) -> str:
    """What users are told of an end."""
    if cause is StopCause.TIMED_OUT:
        return f"the attempt took longer than {run.terms.attempt_timeout_s:.0f} s"
    if seen.reason == SAYS_NOTHING or not (seen.reason or seen.exit_code is None):
        return explained(None, seen.exit_code, has_runner=run.terms.needs_runner)
    return seen.reason or seen.stop_code or "the task stopped"


def is_open(seen: TaskSeen, cause: StopCause, instance: Instance | None, *, serves: bool = False) -> bool:
    """Whether the failure would be the user's, unless its instance turns out to be going down."""
    may_go = instance is not None and instance.owned and not instance.leaves and OUT_OF_MEMORY not in seen.reason
    return may_go and cause is StopCause.NONE and account_for(seen, cause, instance, serves=serves) is Account.USER


def is_result_open(cause: StopCause, instance: Instance | None) -> bool:
    """Whether an exit code of 0 that left no result would be the user's, unless its instance turns out to be going
    down."""
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
    reason: str  # as users are shown it
    seen: TaskSeen  # what the rules of `evaluateOnExit` look at
    instance: str | None = None


def charge_user(state: State, run: Run, end: AttemptEnd, now: float, policy: Policy) -> None:
    """An attempt failed on the user's account. Try again if rules and budget allow it, else give the task up."""
    failures = int(run.tasks["user_failures"][end.index]) + 1
    attempt, seen = int(run.tasks["attempts"][end.index]), end.seen
    _show(run, Failure(end.index, attempt, seen.exit_code, end.reason, end.instance, seen.arn or None))
    again = failures < run.terms.attempt_limit and wants_retry(run.terms.exit_rules, seen)
    status, not_before = _next_status(run, again), now + _backoff(policy, failures)
    _again_or_never(state, run, end, status, not_before=not_before, user_failures=failures)


def charge_infrastructure(state: State, run: Run, end: AttemptEnd, limit: int, not_before: float) -> None:
    """An attempt was lost through no fault of its own. limit: the number of losses at which the task is given up."""
    losses = int(run.tasks["losses"][end.index]) + 1
    if losses >= limit:
        end = replace(end, reason=f"given up after {losses} losses: {end.reason}")
        _show(run, Failure(end.index, int(run.tasks["attempts"][end.index]), None, end.reason, None))
    _again_or_never(state, run, end, _next_status(run, losses < limit), not_before=not_before, losses=losses)


def charge_nobody(state: State, run: Run, end: AttemptEnd, now: float) -> None:
    """An attempt was stopped for another queue's run: its task waits again, with all its tries."""
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
    set_task(state, run, end.index, status=status, launch=0, reason=run.reason_row(end.reason), **values)


def _backoff(policy: Policy, failures: int) -> float:
    return min(MAX_BACKOFF_S, policy.retry_backoff_s * float(2 ** (failures - 1)))
