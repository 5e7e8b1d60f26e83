"""Every type of the catalogue can be named in the settings, and its instances start from an image that runs on it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam

from argosy.catalogue.lookup import load_catalogue
from argosy.settings.settings import Settings, SettingsError, load_settings
from stacks.launch import LaunchTemplates

pytestmark = pytest.mark.stacks
BASE = "/aws/service/ecs/optimized-ami/amazon-linux-2023/"
PINNED = "ami-0123456789abcdef0"  # for ARM with GPUs, which AWS has no image for
RUNNER: Any = SimpleNamespace(of={name: SimpleNamespace(arguments="of-tests") for name in ("x86_64", "arm64")})
NAMES = {
    "cpu": [name for name, kind in load_catalogue().items() if not kind.gpus],
    "gpu": [name for name, kind in load_catalogue().items() if kind.gpus],
}


def settings_with(**types: list[str]) -> Settings:
    return load_settings(
        {
            "instanceTypes": {"cpu": [], "gpu": [], **types},
            "zones": {"us-east-1": ["us-east-1a"]},
            "amis": {"us-east-1": {"gpuArm64": PINNED}},
            "offered": {"us-east-1": {"add": [name for names in types.values() for name in names]}},
        }
    )


def images_of(settings: Settings, folder: Path) -> dict[str, str]:
    """Type -> AMI, or the default of the parameter that names it."""
    app = cdk.App(outdir=str(folder))
    stack = cdk.Stack(app, "Types", env=cdk.Environment(region="us-east-1"))
    role = iam.Role.from_role_name(stack, "Role", "role")
    group = ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-0123456789abcdef0")
    LaunchTemplates(stack, "Launch", settings=settings, role=role, security_group=group, runner=RUNNER)
    app.synth()
    body = json.loads((folder / "Types.template.json").read_text())
    found = {}
    for resource in body["Resources"].values():
        if resource["Type"] == "AWS::EC2::LaunchTemplate":
            tags = {tag["Key"]: tag["Value"] for tag in resource["Properties"]["TagSpecifications"][0]["Tags"]}
            image = resource["Properties"]["LaunchTemplateData"]["ImageId"]
            found[tags["Name"].removeprefix("argosy ")] = (
                image if isinstance(image, str) else body["Parameters"][image["Ref"]]["Default"]
            )
    return found


def expected(name: str) -> str:
    kind = load_catalogue()[name]
    if kind.architecture == "arm64":
        return PINNED if kind.gpus else f"{BASE}arm64/recommended/image_id"
    return f"{BASE}{'gpu/' if kind.gpus else ''}recommended/image_id"


@pytest.mark.parametrize("side", ["cpu", "gpu"])
def test_every_type_starts_from_an_image_of_its_architecture_and_kind(side: str, tmp_path: Path) -> None:
    names, found = NAMES[side], {}
    for start in range(0, len(names), 80):  # a stack holds no more
        settings = settings_with(**{side: names[start : start + 80]})
        found.update(images_of(settings, tmp_path / str(start)))
    assert found == {name: expected(name) for name in names}
    assert {load_catalogue()[name].architecture for name in names} == {"x86_64", "arm64"}


def test_arm_with_gpus_needs_an_image_of_ones_own() -> None:
    with pytest.raises(SettingsError, match=r"g5g.xlarge needs amis.eu-west-1.gpuArm64: ECS publishes no AMI"):
        load_settings(
            {
                "instanceTypes": {"gpu": ["g5g.xlarge"]},
                "cells": ["us-east-1", "eu-west-1"],
                "amis": {"us-east-1": {"gpuArm64": PINNED}},
            }
        )
