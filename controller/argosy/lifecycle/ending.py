"""What does the end of an attempt mean for its task: done, tried again, or given up, and on whose account?

Two budgets (DESIGN D9): the user's attempts, and losses to infrastructure, which never use up a user attempt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase

from argosy.lifecycle.marks import set_task
from argosy.model.attempts import StopCause
from argosy.model.events import TaskSeen
from argosy.model.instances import Instance
from argosy.model.policy import Policy
from argosy.model.run_terms import ExitRule
from argosy.model.runs import Failure, Run
from argosy.model.state import State
from argosy.model.tasks import NO_EXIT_CODE, TaskStatus

MAX_FAILURES_SHOWN = 10
MAX_BACKOFF_S = 60.0
CANNOT_START = ("CannotPull", "CannotCreate", "CannotStart", "ResourceInitializationError")  # aws.md 9.6
# What a registry says to too many pulls at once (reliability.md row 49).
REGISTRY_IS_BUSY = re.compile(r"toomanyrequests|too many requests|rate exceeded|rate limit|\b429\b", re.I)
HOST_CODES = frozenset({"SpotInterruption", "TerminationNotice", "InfrastructureHealth"})  # stop codes of a lost host


class Account(Enum):
    """Who is charged with the end of an attempt."""

    SUCCESS = "success"
    USER = "user"
    LOST = "lost"  # infrastructure: spot, host, agent
    START = "start"  # infrastructure, but one that rarely heals: the image, the log group, the container's set-up
    BUSY = "busy"  # the registry asks to go slower: it heals by itself
    CANCELLED = "cancelled"


def account_for(seen: TaskSeen, cause: StopCause, instance: Instance | None) -> Account:
    """Classify a stopped task (aws.md 9.6). An exit code of 0 is success whatever else was going on.

    A host that went while we asked for the stop leaves open how the attempt would have ended: not the user's.
    """
    if seen.exit_code == 0:
        return Account.SUCCESS
    if cause in (StopCause.CANCELLED, StopCause.CAPPED):
        return Account.CANCELLED
    if cause is StopCause.TIMED_OUT and seen.stop_code not in HOST_CODES:
        return Account.USER
    if cause in (StopCause.INTERRUPTED, StopCause.STUCK) or host_was_lost(seen, instance):
        return Account.LOST
    if any(sign in seen.reason for sign in CANNOT_START):
        return Account.BUSY if REGISTRY_IS_BUSY.search(seen.reason) else Account.START
    if seen.exit_code is None:
        return Account.LOST  # it never started, or nobody saw how it ended
    return Account.USER


def host_was_lost(seen: TaskSeen, instance: Instance | None) -> bool:
    if seen.stop_code in HOST_CODES:
        return True
    warned = instance is not None and bool(instance.interrupted_at) and seen.exit_code in (None, 137, 143)
    return warned or seen.reason.startswith("Host EC2")


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
class Hearing:
    """What judging the end of an attempt needs at hand."""

    state: State
    run: Run
    now: float
    policy: Policy


def charge_user(at: Hearing, index: int, seen: TaskSeen, reason: str, instance: str | None) -> None:
    """An attempt failed on the user's account: try again if rules and budget allow, else give the task up.

    `seen` is what the rules are held against, `reason` what users are shown.
    """
    run = at.run
    failures = int(run.tasks["user_failures"][index]) + 1
    attempt = int(run.tasks["attempts"][index])
    _show(run, Failure(index, attempt, seen.exit_code, reason, instance, seen.arn or None))
    again = failures < run.terms.attempt_limit and wants_retry(run.terms.exit_rules, seen)
    _again_or_never(at, index, again, _backoff(at.policy, failures), reason, user_failures=failures)


def charge_infrastructure(at: Hearing, index: int, reason: str, limit: int, delay_s: float) -> None:
    """An attempt was lost through no fault of its own."""
    run = at.run
    losses = int(run.tasks["losses"][index]) + 1
    if losses >= limit:
        reason = f"given up after {losses} losses: {reason}"
        _show(run, Failure(index, int(run.tasks["attempts"][index]), None, reason, None))
    _again_or_never(at, index, losses < limit, delay_s, reason, losses=losses)


def _show(run: Run, failure: Failure) -> None:
    run.failures.append(failure)
    del run.failures[:-MAX_FAILURES_SHOWN]


def _again_or_never(at: Hearing, index: int, again: bool, delay_s: float, reason: str, **counts: int) -> None:
    status = TaskStatus.FAILED
    if again:
        status = TaskStatus.CANCELLED if at.run.halted else TaskStatus.PENDING
    values = {"status": status, "not_before": at.now + delay_s, "launch": 0, "reason": at.run.reason_row(reason)}
    set_task(at.state, at.run, index, **values, **counts)


def _backoff(policy: Policy, failures: int) -> float:
    return min(MAX_BACKOFF_S, policy.retry_backoff_s * float(2 ** (failures - 1)))


def stop_if_all_alike(state: State, run: Run, policy: Policy) -> None:
    """Stop a run whose first tasks fail alike, before it spends the rest (DESIGN D9)."""
    counts = run.tasks.counts()
    if run.halted or counts[TaskStatus.FAILED] < policy.alike_failures or counts[TaskStatus.SUCCEEDED]:
        return
    failed = run.tasks["status"] == TaskStatus.FAILED
    reasons = set(run.tasks["reason"][failed].tolist())
    codes = set(run.tasks["exit_code"][failed].tolist())
    if len(reasons) == 1 and len(codes) == 1 and counts[TaskStatus.PENDING]:
        code = codes.pop()
        shown = "" if code == NO_EXIT_CODE else f" (exit code {code})"
        text = run.reasons[reasons.pop()]
        give_up(state, run, f"stopped early: the first {counts[TaskStatus.FAILED]} tasks failed alike{shown}: {text}")


def give_up(state: State, run: Run, reason: str) -> None:
    """No task of the run is started any more; what runs may end. O(1), whatever the number of tasks."""
    run.tasks.halted = True
    run.status_reason = run.status_reason or reason
    state.changed_runs.add(run.id)
