"""Targets are registered and deregistered at AWS, and every failure is reported."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.aws.target_groups import TargetGroups
from argosy.model.actions import DeregisterTargets, RegisterTargets
from argosy.model.events import NotCarriedOut
from argosy.model.services.targets import TargetPlace, TargetsDeregistered, TargetsRegistered
from argosy.model.setbacks import Act, Subject
from tests.builders import CELL, NOW
from tests.fakes.aws import DEPLOYMENT, SOON, Clock, ScriptedClient, cell, refusal

PLACES = (TargetPlace("web", "i-0123456789abcdef0", 32768), TargetPlace("web", "i-0123456789abcdef1", 32769))
GONE = refusal("TargetGroupNotFound", "One or more target groups not found")
INVALID = refusal("InvalidTarget", "The following targets are not in a running state")


def groups(**scripts: Any) -> tuple[TargetGroups, ScriptedClient]:
    clock, client = Clock(), ScriptedClient("elbv2", **scripts)
    return TargetGroups(DEPLOYMENT.target_groups, {CELL: replace(cell(clock), elbv2=client)}, clock), client


def test_targets_are_an_instance_and_a_port() -> None:
    target_groups, client = groups(register_targets={}, deregister_targets={})
    assert list(target_groups.change(RegisterTargets("api", PLACES), SOON)) == [TargetsRegistered("api", PLACES)]
    assert list(target_groups.change(DeregisterTargets("api", PLACES), SOON)) == [TargetsDeregistered("api", PLACES)]
    targets = [{"Id": each.instance, "Port": each.port} for each in PLACES]
    request = {"TargetGroupArn": DEPLOYMENT.target_groups["web"], "Targets": targets}
    assert client.calls == [("register_targets", request), ("deregister_targets", request)]


@pytest.mark.parametrize("error", [GONE, INVALID])
def test_what_is_not_there_is_out(error: Exception) -> None:
    target_groups, _ = groups(deregister_targets=error)
    assert list(target_groups.change(DeregisterTargets("api", PLACES), SOON)) == [TargetsDeregistered("api", PLACES)]


def test_one_bad_target_keeps_no_other_out() -> None:
    target_groups, _ = groups(register_targets=[INVALID, INVALID, {}])
    done, failed = target_groups.change(RegisterTargets("api", PLACES), SOON)
    assert done == TargetsRegistered("api", PLACES[1:])
    assert isinstance(failed, NotCarriedOut)
    assert failed.reason.startswith("target group 'web': InvalidTarget")


def test_a_missing_group_is_reported() -> None:
    target_groups, _ = groups(register_targets=GONE)
    (failed,) = target_groups.change(RegisterTargets("api", PLACES), SOON)
    reason = "target group 'web': TargetGroupNotFound: One or more target groups not found"
    assert failed == NotCarriedOut(reason, about=Subject(Act.TARGETS_IN, "api"))


def test_a_call_that_is_throttled_says_nothing_about_the_group() -> None:
    target_groups, _ = groups(deregister_targets=refusal("Throttling", "Rate exceeded"))
    (failed,) = target_groups.change(DeregisterTargets("api", PLACES), SOON)
    assert isinstance(failed, NotCarriedOut)
    assert (failed.passing, failed.about) == (True, Subject(Act.TARGETS_OUT, "api"))


def test_nothing_is_begun_after_the_time_limit_and_a_forbidden_name_is_reported() -> None:
    target_groups, client = groups()
    (late,) = target_groups.change(RegisterTargets("api", PLACES), NOW - 1)
    (unknown,) = target_groups.change(RegisterTargets("api", (TargetPlace("other", "i-1", 1),)), SOON)
    assert client.calls == []
    assert isinstance(late, NotCarriedOut)
    assert late.passing
    assert isinstance(unknown, NotCarriedOut)
    assert unknown.reason == "the setting targetGroups has no 'other'"
