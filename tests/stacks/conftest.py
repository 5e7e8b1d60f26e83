"""Synth costs ten seconds, so it is done once per configuration and session; every test reads the templates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from argosy.settings.settings import load_settings
from stacks.deployment import build
from tests.stacks.templates import Template

ROOT = Path(__file__).resolve().parents[2]


def synthesised(folder: Path, **settings: Any) -> dict[str, Template]:
    """The templates of a deployment by stack name; cdk-nag's findings make it raise."""
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = App(context={**context, "bundle": "source"}, outdir=str(folder))
    build(app, load_settings(settings))
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    app.synth()
    return {
        path.name.removesuffix(".template.json"): Template(json.loads(path.read_text()), folder)
        for path in folder.glob("*.template.json")
    }


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """The one template of the default deployment."""
    (template,) = synthesised(tmp_path_factory.mktemp("home")).values()
    return template


@pytest.fixture(scope="session")
def wide(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Template]:
    """Every choice the other way: two cells, private subnets, results destroyed, alarms by mail, another stage."""
    return synthesised(
        tmp_path_factory.mktemp("wide"),
        stage="dev",
        cells=["us-east-1", "eu-west-1"],
        subnets="private",
        results="destroy",
        alarmEmail="ops@example.com",
        outputBuckets=["others-bucket"],
        inputBuckets=["data-bucket", "others-bucket"],
        reservedConcurrency=3,
        amis={"us-east-1": {"gpu": "ami-0123456789abcdef0"}},
        placementScores=True,
        diskGiB={"g5.*": 300},
        instanceTypes={"cpu": ["c5.large"], "gpu": ["p3.2xlarge", "g5.xlarge"]},
    )
