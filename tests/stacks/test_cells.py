"""A deployment over several Regions, the images stack, and the app that builds them all."""

from __future__ import annotations

import json
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks

import app as entry
from argosy.messages.eventbridge import RULE_PATTERNS
from argosy.settings.settings import load_settings
from stacks.images import ImagesStack
from tests.stacks.templates import Template, text

pytestmark = pytest.mark.stacks


def test_every_further_cell_is_a_stack_of_its_own(wide: dict[str, Template]) -> None:
    assert wide.keys() == {"argosy-dev", "argosy-dev-eu-west-1"}
    zones = [s["AvailabilityZone"] for s in wide["argosy-dev-eu-west-1"].of_type("AWS::EC2::Subnet").values()]
    assert sorted(set(zones)) == ["eu-west-1a", "eu-west-1b", "eu-west-1c"]


def test_a_further_cells_events_travel_to_the_home_bus(wide: dict[str, Template]) -> None:
    rules = wide["argosy-dev-eu-west-1"].of_type("AWS::Events::Rule").values()
    assert {rule["Name"].removeprefix("argosy-dev-") for rule in rules} == {name for name, _ in RULE_PATTERNS}
    for rule in rules:
        (target,) = rule["Targets"]
        assert text(target["Arn"]).endswith(":events:us-east-1:<AccountId>:event-bus/default")


def test_home_lets_the_events_of_all_cells_through(wide: dict[str, Template]) -> None:
    rule = wide["argosy-dev"].named("AWS::Events::Rule", "Name", "argosy-dev-task-state")
    clusters = [text(arn) for arn in rule["EventPattern"]["detail"]["clusterArn"]]
    assert [arn.split(":")[3] for arn in clusters] == ["us-east-1", "eu-west-1"]


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


def test_the_images_stack_publishes_what_each_image_name_stands_for(tmp_path: Path) -> None:
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
    """The fixtures raise on findings; here is that a finding raises."""
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


def test_faulty_settings_are_told_and_nothing_is_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    app = cdk.App(context={"argosy": {"cells": ["mars"], "results": "maybe"}}, outdir=str(tmp_path))
    assert entry.main(app) == 2
    told = capsys.readouterr().err
    assert "cells[0]" in told
    assert "results" in told
    assert not list(tmp_path.iterdir())
