"""DrainInstance: a request to the controller, shown as soon as it is folded in."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model import inbox
from argosy.model.host_care import DrainRequest
from tests.builders import NOW
from tests.fakes.api import Desk, error_of, running

HERE = "i-0000000000000000a"


def asked(desk: Desk) -> list[inbox.Request]:
    return [inbox.from_bytes(body) for body in desk.store.read_partition(inbox.INBOX).values()]


def why(desk: Desk) -> str | None:
    shown = {each["instanceId"]: each for each in desk.body("DescribeCluster")["instances"]}
    said: str | None = shown[HERE]["noWorkBecause"]
    return said


def test_a_drain_goes_to_the_controller_and_is_shown_until_it_is_ended(desk: Desk) -> None:
    running(desk)
    woken = desk.wake.calls
    reply = desk.body("DrainInstance", instanceId=HERE, until=NOW + 7200)
    assert asked(desk) == [DrainRequest(desk.time, HERE, NOW + 7200)]
    assert desk.wake.calls == woken + 1
    assert reply["drainUntil"].startswith("2027-01-15T10:00:00")
    assert why(desk) is None
    desk.fold_in()
    assert why(desk) == "drained by a user until 2027-01-15 10:00:00 UTC"
    desk.body("DrainInstance", instanceId=HERE)
    desk.fold_in()
    assert why(desk) is None


@pytest.mark.parametrize(
    ("fields", "path", "sentence"),
    [
        ({"instanceId": "i-0"}, "instanceId", "no instance of this deployment has this id: give an instance that is"),
        ({"instanceId": HERE, "until": NOW - 1}, "until", "in the future and at most 7 days ahead"),
        ({"instanceId": HERE, "until": 1000 * NOW}, "until", "in the future and at most 7 days ahead"),
    ],
)
def test_what_cannot_be_drained_is_refused_and_nothing_is_changed(
    desk: Desk, fields: dict[str, Any], path: str, sentence: str
) -> None:
    running(desk)
    error = error_of(desk.ask("DrainInstance", **fields))
    assert (error["fieldList"][0]["path"], sentence in error["fieldList"][0]["message"]) == (path, True), error
    assert not asked(desk)
