"""A deployment over several Regions, the images stack, and the app that builds them all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks

import app as entry
from argosy.messages.eventbridge import RULE_PATTERNS
from argosy.messages.urgent import URGENT_KINDS
from argosy.settings.settings import load_settings
from stacks.images import ImagesStack
from tests.stacks.templates import Template, text

pytestmark = pytest.mark.stacks


def test_every_further_cell_is_its_own_stack(wide: dict[str, Template]) -> None:
    assert wide.keys() == {"argosy-dev", "argosy-dev-eu-west-1"}
    zones = [s["AvailabilityZone"] for s in wide["argosy-dev-eu-west-1"].of_type("AWS::EC2::Subnet").values()]
    assert sorted(set(zones)) == ["eu-west-1a", "eu-west-1b", "eu-west-1c"]


def forwarding(wide: dict[str, Template]) -> list[dict[str, Any]]:
    """The rules of the further cell, but for its watchdog's schedule."""
    rules = wide["argosy-dev-eu-west-1"].of_type("AWS::Events::Rule").values()
    return [rule for rule in rules if "EventPattern" in rule]


def test_a_further_cells_events_travel_to_the_deployments_own_bus(wide: dict[str, Template]) -> None:
    rules, home = forwarding(wide), wide["argosy-dev"]
    assert {rule["Name"].removeprefix("argosy-dev-") for rule in rules} == {name for name, _ in RULE_PATTERNS}
    bus = "arn:<Partition>:events:us-east-1:<AccountId>:event-bus/argosy-dev"
    for rule in rules:
        (target,) = rule["Targets"]
        assert text(target["Arn"]) == bus
        role = target["RoleArn"]["Fn::GetAtt"][0]
        (right,) = wide["argosy-dev-eu-west-1"].role_statements(role)
        assert (right.actions, right.resources) == (["events:PutEvents"], [bus])
    assert home.one("AWS::Events::EventBus")["Name"] == "argosy-dev"


def test_of_ecs_only_our_clusters_events_are_forwarded(wide: dict[str, Template]) -> None:
    for rule in forwarding(wide):
        if rule["EventPattern"]["source"] == ["aws.ecs"]:
            (cluster,) = rule["EventPattern"]["detail"]["clusterArn"]
            assert text(cluster) == "arn:<Partition>:ecs:eu-west-1:<AccountId>:cluster/argosy-dev"


def test_home_takes_everything_from_its_own_bus_and_only_its_clusters_events_from_the_default_one(
    wide: dict[str, Template],
) -> None:
    home = wide["argosy-dev"]
    rules = home.of_type("AWS::Events::Rule").values()
    (own, *calls) = sorted((rule for rule in rules if "EventBusName" in rule), key=lambda rule: str(rule["Name"]))
    assert {each["EventPattern"]["detail-type"][0] for each in calls} == {kind.detail_type for kind in URGENT_KINDS}
    assert all(each["EventPattern"]["account"] == [{"Ref": "AWS::AccountId"}] for each in calls)
    assert all(each["Targets"][0]["Arn"]["Fn::GetAtt"][0].startswith("Controller") for each in calls)
    assert own["EventPattern"]["account"] == [{"Ref": "AWS::AccountId"}]
    assert set(own["EventPattern"]["source"]) == {pattern["source"][0] for _, pattern in RULE_PATTERNS}
    task_state = home.named("AWS::Events::Rule", "Name", "argosy-dev-task-state")
    (cluster,) = task_state["EventPattern"]["detail"]["clusterArn"]
    assert text(cluster).split(":")[3] == "us-east-1"
    assert [t["Arn"] for t in own["Targets"]] == [t["Arn"] for t in task_state["Targets"]]


def test_a_deployment_of_one_cell_has_no_event_bus(home: Template) -> None:
    assert not home.of_type("AWS::Events::EventBus")


def test_what_goes_wrong_in_a_further_cell_sets_an_alarm_there(wide: dict[str, Template]) -> None:
    cell = wide["argosy-dev-eu-west-1"]
    alarms = {alarm["AlarmName"]: alarm for alarm in cell.of_type("AWS::CloudWatch::Alarm").values()}
    assert set(alarms) == {"argosy-dev-Undelivered", "argosy-dev-WatchdogErrors", "argosy-dev-WatchdogActed"}
    (topic,) = cell.of_type("AWS::SNS::Topic")
    assert all(alarm["AlarmActions"] == [{"Ref": topic}] for alarm in alarms.values())
    queue = alarms["argosy-dev-Undelivered"]["Dimensions"][0]["Value"]["Fn::GetAtt"][0]
    assert cell.resources[queue]["Properties"]["QueueName"] == "argosy-dev-undelivered"


def test_every_cell_has_a_watchdog_that_may_act_in_that_cell(wide: dict[str, Template]) -> None:
    """Home's wherever there ever was a cell, a further cell's in its own Region."""
    for name, reach in (("argosy-dev", "*"), ("argosy-dev-eu-west-1", "eu-west-1")):
        stack = wide[name]
        function = stack.named("AWS::Lambda::Function", "FunctionName", "argosy-dev-watchdog")
        entry = "handler" if name == "argosy-dev" else "cell_handler"
        assert function["Handler"] == f"argosy.aws.watchdog.{entry}"
        rule = stack.named("AWS::Events::Rule", "Name", "argosy-dev-watchdog")
        assert (rule["State"], rule["ScheduleExpression"]) == ("ENABLED", "rate(15 minutes)")
        rights = stack.role_statements(stack.function_role("argosy-dev-watchdog"))
        acts = [
            r for s in rights for r in s.resources if {"ec2:ModifyFleet", "ec2:TerminateInstances"} & set(s.actions)
        ]
        assert {arn.split(":")[3] for arn in acts} == {reach}
        (table,) = {r for s in rights for r in s.resources if "dynamodb:Query" in s.actions}
        assert table.endswith(":us-east-1:<AccountId>:table/argosy-dev-state")
        wakes = [r for s in rights for r in s.resources if "events:EnableRule" in s.actions]
        assert len(wakes) == (name == "argosy-dev")


def test_the_guard_is_asked_before_anything_learns_of_other_cells(wide: dict[str, Template]) -> None:
    home = wide["argosy-dev"]
    assert home.resources["Cells"]["Properties"]["Cells"] == ["us-east-1", "eu-west-1"]
    assert "StateTable" in home.reaches("Cells")
    learns = [
        id for id, resource in home.resources.items() if "eu-west-1" in str(resource.get("Properties", {}))
        and resource["Type"] in ("AWS::Lambda::Function", "AWS::SSM::Parameter")
    ]  # fmt: skip
    assert len(learns) == 4  # api, controller, watchdog, and the parameter that the command reads
    assert all("Cells" in home.reaches(id) for id in learns)


def test_a_further_cells_teardown_neither_stops_the_tick_nor_reaches_other_regions(wide: dict[str, Template]) -> None:
    cell = wide["argosy-dev-eu-west-1"]
    rights = cell.role_statements(cell.function_role("argosy-dev-teardown-wait"))
    assert not [s for s in rights if "events:DisableRule" in s.actions]
    acts = [r for s in rights for r in s.resources if {"ec2:ModifyFleet", "ec2:TerminateInstances"} & set(s.actions)]
    assert {arn.split(":")[3] for arn in acts} == {"eu-west-1"}


def test_the_watchdog_and_the_controllers_rights_cover_all_cells(wide: dict[str, Template]) -> None:
    home = wide["argosy-dev"]
    variables = home.named("AWS::Lambda::Function", "FunctionName", "argosy-dev-watchdog")["Environment"]["Variables"]
    assert variables["ARGOSY_CELLS"] == "us-east-1,eu-west-1"
    rights = home.role_statements(home.function_role("argosy-dev-controller"))
    for action in ("ecs:RunTask", "ec2:ModifyFleet", "ec2:TerminateInstances"):
        regions = {r.split(":")[3] for s in rights if action in s.actions for r in s.resources}
        assert regions == {"us-east-1", "eu-west-1"}, action


def test_a_further_cell_is_destroyed_before_home(wide: dict[str, Template]) -> None:
    manifest = json.loads((wide["argosy-dev"].folder / "manifest.json").read_text())
    assert "argosy-dev" in manifest["artifacts"]["argosy-dev-eu-west-1"]["dependencies"]


def test_a_stage_shares_no_name_with_another(home: Template, wide: dict[str, Template]) -> None:
    names = {"FunctionName", "TableName", "QueueName", "RoleName", "LogGroupName", "ClusterName", "DashboardName"}

    def taken(template: Template) -> set[str]:
        found = [r.get("Properties", {}) for r in template.resources.values()]
        return {text(p[key]) for p in found for key in names & p.keys() if not isinstance(p[key], dict)}

    assert taken(home)
    assert not taken(home) & taken(wide["argosy-dev"])


def test_the_images_stack_publishes_the_image_behind_each_name(tmp_path: Path) -> None:
    for name in ("digits", "other"):
        (tmp_path / "containers" / name).mkdir(parents=True)
        (tmp_path / "containers" / name / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "containers" / "no-image").mkdir()
    app = cdk.App(outdir=str(tmp_path / "out"))
    ImagesStack(app, "argosy-images", settings=load_settings({"images": True}), folder=tmp_path / "containers")
    app.synth()
    template = Template(json.loads((tmp_path / "out" / "argosy-images.template.json").read_text()), tmp_path)
    parameters = template.of_type("AWS::SSM::Parameter").values()
    assert {p["Name"] for p in parameters} == {"/argosy/images/digits", "/argosy/images/other"}
    assert all("ecr" in str(p["Value"]) for p in parameters)


def test_cdk_nag_does_look(tmp_path: Path) -> None:
    """The fixtures raise on findings; this test shows that a finding raises."""
    app = cdk.App(outdir=str(tmp_path))
    s3.Bucket(cdk.Stack(app, "Careless"), "Bucket")
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()
    assert "AwsSolutions-S1" in (tmp_path / "validation-report.json").read_text()


def test_what_the_command_line_gives_goes_before_cdk_json() -> None:
    app = cdk.App(context={"argosy": {"stage": "main", "results": "destroy"}, "stage": "dev", "lingerSeconds": "60"})
    settings = entry.settings_of(app)
    assert (settings.stage, settings.results, settings.linger_s) == ("dev", "destroy", 60)


def test_faulty_settings_are_reported_and_nothing_is_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    app = cdk.App(context={"argosy": {"cells": ["mars"], "results": "maybe"}}, outdir=str(tmp_path))
    assert entry.main(app) == 2
    told = capsys.readouterr().err
    assert "cells[0]" in told
    assert "results" in told
    assert not list(tmp_path.iterdir())
