"""A fleet moves to the newest version of its launch template with its next target, and nothing else waits for this."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.aws.fleet_templates import FleetTemplates
from tests.fakes.aws import Clock, ScriptedClient, cell, refusal, timed_out

TARGET = {"TargetCapacitySpecification": {"TotalTargetCapacity": 3}}


def fleet(number: int, version: str = "1", **more: Any) -> dict[str, Any]:
    override = {"InstanceType": "c5.large", "SubnetId": "subnet-1", "Priority": 1.0}
    spec = {"LaunchTemplateId": "lt-1", "LaunchTemplateName": "argosy-c5", "Version": version}
    config = {"LaunchTemplateSpecification": spec, "Overrides": [override]}
    return {"FleetId": f"fleet-{number}", "LaunchTemplateConfigs": [config], **more}


def newest(version: int) -> dict[str, Any]:
    template = {"LaunchTemplateId": "lt-1", "LaunchTemplateName": "argosy-c5", "LatestVersionNumber": version}
    return {"LaunchTemplates": [template]}


def noted(
    *fleets: dict[str, Any], clock: Clock | None = None, **scripts: Any
) -> tuple[FleetTemplates, Any, ScriptedClient]:
    ec2 = ScriptedClient("ec2", **{"modify_fleet": {"Return": True}, **scripts})
    clock = clock or Clock()
    home, templates = cell(clock, ec2=ec2), FleetTemplates("argosy:stage", "main", clock)
    templates.note(home, fleets)
    return templates, home, ec2


def test_a_fleet_behind_is_moved_with_its_next_target_and_keeps_its_pool() -> None:
    templates, home, ec2 = noted(fleet(1), fleet(2, "3"), describe_launch_templates=newest(3))
    assert [templates.is_behind(name) for name in ("fleet-1", "fleet-2", "fleet-9")] == [True, False, False]
    for name in ("fleet-1", "fleet-1", "fleet-2"):
        templates.modify_fleet(home, {"FleetId": name, **TARGET})
    moved, *others = ec2.requests("modify_fleet")
    assert moved["LaunchTemplateConfigs"] == [
        {
            "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1", "Version": "3"},
            "Overrides": [{"InstanceType": "c5.large", "SubnetId": "subnet-1"}],
        }
    ]
    assert moved["TargetCapacitySpecification"] == {"TotalTargetCapacity": 3}
    assert others == [{"FleetId": "fleet-1", **TARGET}, {"FleetId": "fleet-2", **TARGET}]
    asked = ec2.requests("describe_launch_templates")
    assert asked == [{"Filters": [{"Name": "tag:argosy:stage", "Values": ["main"]}]}]


def test_a_version_that_ec2_refuses_keeps_no_target_back_and_is_asked_for_again_after_growing_pauses() -> None:
    def refusing(**request: Any) -> dict[str, Any]:
        if "LaunchTemplateConfigs" in request:
            raise refusal("InvalidParameterCombination", "not for this fleet")
        return {"Return": True}

    clock = Clock()
    templates, home, ec2 = noted(fleet(1), clock=clock, describe_launch_templates=newest(2), modify_fleet=refusing)
    templates.modify_fleet(home, {"FleetId": "fleet-1", **TARGET})
    assert ["LaunchTemplateConfigs" in each for each in ec2.requests("modify_fleet")] == [True, False]
    for pause_s in (60, 240, 900, 900):
        templates.note(home, [fleet(1)])
        assert "not for this fleet" in (templates.stays_behind("fleet-1") or "")
        assert not templates.is_behind("fleet-1")
        clock.at += pause_s - 1
        templates.note(home, [fleet(1)])
        assert not templates.is_behind("fleet-1")
        clock.at += 1
        templates.note(home, [fleet(1)])
        assert templates.is_behind("fleet-1")
        templates.modify_fleet(home, {"FleetId": "fleet-1", **TARGET})
    ec2.scripts["describe_launch_templates"] = newest(3)
    templates.note(home, [fleet(1)])
    assert templates.is_behind("fleet-1")
    assert templates.stays_behind("fleet-1") == ""
    templates.note(home, [fleet(1, "3")])
    assert templates.stays_behind("fleet-1") is None


@pytest.mark.parametrize("error", [refusal("RequestLimitExceeded", status=503), timed_out()])
def test_a_move_that_met_a_bad_time_is_tried_again(error: Exception) -> None:
    templates, home, _ = noted(fleet(1), describe_launch_templates=newest(2), modify_fleet=error)
    with pytest.raises(type(error)):
        templates.modify_fleet(home, {"FleetId": "fleet-1", **TARGET})
    assert templates.is_behind("fleet-1")


def test_without_the_templates_fleets_stay_where_they_are() -> None:
    templates, home, ec2 = noted(fleet(1), describe_launch_templates=refusal("UnauthorizedOperation"))
    assert not templates.is_behind("fleet-1")
    assert templates.stays_behind("fleet-1") == ""
    ec2.scripts["describe_launch_templates"] = {"LaunchTemplates": []}
    templates.note(home, [fleet(1), fleet(2, LaunchTemplateConfigs=[])])
    assert not templates.is_behind("fleet-1")


def test_fleets_without_templates_cost_no_call() -> None:
    _, _, ec2 = noted({"FleetId": "fleet-1"})
    assert ec2.calls == []
