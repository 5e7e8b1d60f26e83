"""Waiting for the end of a run: short outages are survived, refusals and time limits are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from argosy.client.api import ApiError
from argosy.client.waiting import FAILURES_LIMIT, OUTAGE_INTERVAL_S, RunPoller, WaitTimedOut

DOWN = EndpointConnectionError(endpoint_url="https://lambda")
GONE = ApiError(404, {"code": "ResourceNotFoundException", "message": "no such run"})


class Answers:
    """An api that answers with each of `replies`, the last one forever; its clock moves while the poller sleeps."""

    def __init__(self, *replies: Mapping[str, Any] | Exception) -> None:
        self.replies = list(replies)
        self.now = 1000.0
        self.warnings: list[str] = []

    def describe(self, run_id: str) -> Mapping[str, Any]:
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return {"runId": run_id, **reply}

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def statuses(self, timeout_s: float | None = None) -> list[str]:
        poller = RunPoller(self.describe, lambda: self.now, self.sleep, 5.0, self.warnings.append)
        return [view["status"] for view in poller.views("r-1", timeout_s)]


RUNNING, ENDED = {"status": "RUNNING"}, {"status": "SUCCEEDED"}


def test_every_look_is_given_until_the_run_has_ended() -> None:
    api = Answers(RUNNING, RUNNING, ENDED)
    assert api.statuses() == ["RUNNING", "RUNNING", "SUCCEEDED"]
    assert api.now == 1010.0


def test_an_outage_is_waited_out_with_one_warning() -> None:
    api = Answers(RUNNING, DOWN, DOWN, ENDED)
    assert api.statuses() == ["RUNNING", "SUCCEEDED"]
    assert api.now == 1005.0 + 2 * OUTAGE_INTERVAL_S
    assert api.warnings == ["Nothing answers at https://lambda. Trying again."]


def test_a_first_call_that_fails_is_not_repeated() -> None:
    with pytest.raises(EndpointConnectionError):
        Answers(DOWN, ENDED).statuses()


def test_a_refusal_is_not_waited_out() -> None:
    api = Answers(RUNNING, GONE, ENDED)
    with pytest.raises(ApiError):
        api.statuses()
    assert api.now == 1005.0


def test_a_long_outage_ends_the_waiting() -> None:
    api = Answers(RUNNING, DOWN)
    with pytest.raises(EndpointConnectionError):
        api.statuses()
    assert api.now == 1005.0 + FAILURES_LIMIT * OUTAGE_INTERVAL_S


def test_the_time_limit_carries_what_was_seen_last() -> None:
    api = Answers(RUNNING)
    with pytest.raises(WaitTimedOut, match="r-1 was still RUNNING after 12 s") as late:
        api.statuses(timeout_s=12.0)
    assert (late.value.view["status"], late.value.waited_s, api.now) == ("RUNNING", 12.0, 1012.0)
