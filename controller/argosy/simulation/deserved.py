"""Does a task fail only for a reason, and is nothing tried for ever? Two checks of the auditor's (I8, liveness)."""

from __future__ import annotations

from argosy.model.policy import Policy
from argosy.model.run_record import RunRecord
from argosy.model.tasks import TaskStatus

MOST_LAUNCHES = 25  # of one attempt: every refusal and every doubt takes one, and pauses grow to minutes


def failure(record: RunRecord, row: tuple[int, ...], limit: int, policy: Policy) -> str:
    """What is wrong with a task's end, "" = nothing. Nobody fails who has attempts left, unless the whole run was
    given up. row: status, user_failures, losses, committed; limit: user attempts that the spec allows."""
    status, user_failures, losses, _ = row
    least_losses = min(policy.max_losses, policy.max_start_failures)  # why each was lost the store does not say
    if status != TaskStatus.FAILED or record.halted or user_failures >= limit or losses >= least_losses:
        return ""
    return f"failed after {user_failures} user attempts of {limit} and {losses} losses"


def launches(launch: int) -> str:
    """What is wrong with a launch number, "" = nothing."""
    return f"was launched {launch} times in vain" if launch > MOST_LAUNCHES else ""
