"""Synth costs ten seconds, so it is done once per configuration and session; every test reads the templates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from argosy.settings.settings import load_settings
from tests.stacks.templates import Template

ROOT = Path(__file__).resolve().parents[2]


def synthesised(folder: Path, **settings: Any) -> dict[str, Template]:
    """The templates of a deployment by stack name; cdk-nag's findings make it raise."""
    from aws_cdk import App, Validations  # which starts node
    from cdk_nag import AwsSolutionsChecks

    from stacks.deployment import build

    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = App(context={**context, "bundle": "source"}, outdir=str(folder))
    build(app, load_settings(settings))
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    app.synth()
    return {
        path.name.removesuffix(".template.json"): Template(json.loads(path.read_text()), folder)
        for path in folder.glob("*.template.json")
    }


@pytest.fixture
def without_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing is called: the shell has none, and no metadata service is asked."""
    names = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "ARGOSY_ENDPOINT_URL")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """The one template of the default deployment."""
    (template,) = synthesised(tmp_path_factory.mktemp("home")).values()
    return template


@pytest.fixture(scope="session")
def wide(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Template]:
    """Every choice the other way: two cells, a NAT gateway, results destroyed, alarms by mail, another stage."""
    return synthesised(
        tmp_path_factory.mktemp("wide"),
        stage="dev",
        cells=["us-east-1", "eu-west-1"],
        subnets="nat",
        results="destroy",
        alarmEmail="ops@example.com",
        outputBuckets=["others-bucket"],
        inputBuckets=["data-bucket", "others-bucket"],
        reservedConcurrency=3,
        targetGroups={"web": "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/web/0123456789abcdef"},
        amis={"us-east-1": {"gpu": "ami-0123456789abcdef0"}},
        placementScores=True,
        allowExec=True,
        diskGiB={"g5.*": 300},
        attributes={"g5.*": {"team": "vision", "tier": "a 1"}},
        instanceTypes={"cpu": ["c5.large"], "gpu": ["p3.2xlarge", "g5.xlarge"]},
    )


@pytest.fixture(scope="session")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """Private subnets, which only one cell can have."""
    settings = {"subnets": "private", "instanceTypes": {"cpu": ["c5.large"], "gpu": ["g5.xlarge"]}}
    (template,) = synthesised(tmp_path_factory.mktemp("closed"), **settings).values()
    return template


@pytest.fixture(scope="session")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """In a VPC of the owner's."""
    subnets = {"us-east-1b": "subnet-0123456789abcdef0", "us-east-1d": "subnet-0123456789abcdef1"}
    settings = {
        "vpcs": {"us-east-1": {"vpcId": "vpc-0123456789abcdef0", "subnets": subnets}},
        "instanceTypes": {"cpu": ["c5.large"], "gpu": ["g5.xlarge"]},
    }
    (template,) = synthesised(tmp_path_factory.mktemp("guest"), **settings).values()
    return template
