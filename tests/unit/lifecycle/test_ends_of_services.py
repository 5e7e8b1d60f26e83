"""What does exit code 0 mean for a task that should never end?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.lifecycle.accounts import Account, account_for, is_open
from argosy.model.attempts import StopCause
from argosy.model.events import TaskSeen
from argosy.model.instances import InstanceStatus
from tests.builders import instance_id, state_with_instance

ENDED = TaskSeen(arn="", version=1, last_status="STOPPED", exit_code=0, stop_code="EssentialContainerExited")


@pytest.mark.parametrize(
    ("cause", "account"),
    [
        (StopCause.NONE, Account.USER),
        (StopCause.REPLACED, Account.CANCELLED),
        (StopCause.CANCELLED, Account.CANCELLED),
        (StopCause.INTERRUPTED, Account.LOST),
        (StopCause.STUCK, Account.LOST),
        (StopCause.UNHEALTHY, Account.USER),
    ],
)
def test_a_server_that_exits_with_0_has_failed_unless_it_was_stopped(cause: StopCause, account: Account) -> None:
    assert account_for(ENDED, cause, None, serves=True) is account
    assert account_for(ENDED, cause, None) is Account.SUCCESS


def test_a_server_that_ends_with_its_instance_is_lost_and_before_that_is_known_its_end_stays_open() -> None:
    instance = state_with_instance().instances[instance_id(1)]
    assert is_open(ENDED, StopCause.NONE, instance, serves=True)
    assert not is_open(ENDED, StopCause.NONE, instance)
    going = replace(instance, status=InstanceStatus.RELEASING)
    assert account_for(ENDED, StopCause.NONE, going, serves=True) is Account.LOST
