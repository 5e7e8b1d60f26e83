"""ScaleCluster: a request to the controller, shown as soon as it is folded in."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model import inbox
from tests.builders import NOW, POLICY
from tests.fakes.api import Desk, error_of, running


def asked(desk: Desk) -> list[inbox.Request]:
    return [inbox.from_bytes(body) for body in desk.store.read_partition(inbox.INBOX).values()]


def test_a_wish_goes_to_the_controller_and_is_shown_once_it_is_known(desk: Desk) -> None:
    running(desk)
    reply = desk.body("ScaleCluster", instances=3, instanceTypes=["p3.8xlarge", "p3.8xlarge"], until=NOW + 60)
    assert asked(desk) == [inbox.ScaleRequest(desk.time, 3, ("p3.8xlarge",), NOW + 60)]
    assert (reply["floor"]["instances"], reply["floor"]["instanceTypes"]) == (3, ["p3.8xlarge"])
    assert desk.body("DescribeCluster")["floor"] is None
    desk.fold_in()
    shown = desk.body("DescribeCluster")["floor"]
    assert shown == {**reply["floor"], "waiting": None}
    desk.body("ScaleCluster", instances=0)
    desk.fold_in()
    assert desk.body("DescribeCluster")["floor"] is None


def test_two_simultaneous_requests_both_succeed(desk: Desk) -> None:
    desk.body("ScaleCluster", instances=3)
    desk.body("ScaleCluster", instances=4)
    assert [each.instances for each in asked(desk) if isinstance(each, inbox.ScaleRequest)] == [3, 4]


def test_too_many_simultaneous_requests_are_asked_to_try_again(desk: Desk) -> None:
    for _ in range(10):
        desk.body("ScaleCluster", instances=3)
    assert error_of(desk.ask("ScaleCluster", instances=3))["code"] == "ThrottlingException"


@pytest.mark.parametrize(
    ("fields", "path", "sentence"),
    [
        ({"instances": -1}, "instances", "must be at least 0"),
        ({"instances": POLICY.max_instances + 1}, "instances", "must be at most maxInstances of the deployment"),
        (
            {"instances": 1, "instanceTypes": ["p3.8xlarge", "x9.huge"]}, "instanceTypes[1]",
            "this deployment has no fleet of x9.huge; it has: p3.8xlarge",
        ),
        ({"instances": 1, "until": NOW - 1}, "until", "is in the past: give a later time, or instances: 0"),
        (
            {"instances": 1, "until": 1_800_000_000_000}, "until",
            "1800000000000 s after 1970 is too late: the latest time is 2028-01-16T08:00:00Z (1831622400), 366 days",
        ),
        ({"instances": 1, "until": 1e30}, "until", "1e+30 s after 1970 is too late: the latest time is "),
        ({}, "instances", "required"),
    ],
)  # fmt: skip
def test_what_could_never_be_kept_is_refused_and_nothing_is_changed(
    desk: Desk, fields: dict[str, Any], path: str, sentence: str
) -> None:
    running(desk)
    error = error_of(desk.ask("ScaleCluster", **fields))
    (fault,) = error["fieldList"]
    assert fault["path"] == path
    assert sentence in fault["message"]
    assert not asked(desk)


def test_a_time_beyond_the_calendar_that_an_earlier_version_stored_breaks_no_view(desk: Desk) -> None:
    running(desk)
    key = inbox.inbox_key(NOW, "cluster#scale#0")
    desk.store.create({(inbox.INBOX, key): inbox.to_bytes(inbox.ScaleRequest(NOW, 1, (), 1.8e12))})
    desk.fold_in()
    assert desk.body("DescribeCluster")["floor"]["until"] == "9999-12-31T00:00:00.000Z"
    assert any(each["type"].startswith("cluster") for each in desk.body("ListChanges")["changes"])
