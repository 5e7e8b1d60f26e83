"""Synthesised templates, which are kept in build/ until something changes that they are made from.

One configuration takes about ten seconds of CPU time to synthesise.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from argosy.settings.settings import load_settings
from tests.stacks.templates import Template

GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/gpus"
ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build/templates"
MADE_FROM = ("stacks", "controller/argosy", "containers", "requirements", "cdk.json")
OLD_S = 3_600.0  # of templates from other sources: none that a test run uses at the same time


def synthesised(**settings: Any) -> dict[str, Template]:
    """The templates of a deployment by stack name; cdk-nag's findings make it raise."""
    named = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
    folder = KEPT / sources_digest() / named
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may need the same ones
        if not folder.with_suffix(".done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            synthesise(folder, settings)
            folder.with_suffix(".done").touch()
            remove_old()
    return {
        path.name.removesuffix(".template.json"): Template(json.loads(path.read_text()), folder)
        for path in folder.glob("*.template.json")
    }


def synthesise(folder: Path, settings: dict[str, Any]) -> None:
    from aws_cdk import App, Validations  # which starts node
    from cdk_nag import AwsSolutionsChecks

    from stacks.deployment import build

    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = App(context={**context, "bundle": "source"}, outdir=str(folder))
    build(app, load_settings(settings))
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    app.synth()


@cache
def sources_digest() -> str:
    """The digest of the Python and of every file that a template is made from, this one included."""
    digest = hashlib.sha256(sys.version.encode())
    for path in (Path(__file__), *_files()):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _files() -> Iterator[Path]:
    for name in MADE_FROM:
        top = ROOT / name
        found = sorted(top.rglob("*")) if top.is_dir() else [top]
        yield from (path for path in found if path.is_file() and "__pycache__" not in path.parts)


def remove_old() -> None:
    for folder in KEPT.iterdir():
        if folder.name != sources_digest() and time.time() - folder.stat().st_mtime > OLD_S:
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def without_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing is called: the shell has none, and no metadata service is queried."""
    names = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "ARGOSY_ENDPOINT_URL")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(scope="session")
def home() -> Template:
    """The one template of the default deployment."""
    (template,) = synthesised().values()
    return template


@pytest.fixture(scope="session")
def wide() -> dict[str, Template]:
    """Every choice reversed: two cells, a NAT gateway, results destroyed, alarms by mail, another stage."""
    return synthesised(
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
        volumeInitializationMibps={"g5.*": 300, "g*": 100},
        placementScores=True,
        capacityReservations={"eu-west-1": ["cr-0123456789abcdef0"], "us-east-1": [GROUP]},
        capacityManager=True,
        allowExec=True,
        allowInterrupt=True,
        allowSsm=True,
        diskGiB={"g5.*": 300},
        attributes={"g5.*": {"team": "vision", "tier": "a 1"}},
        instanceTypes={"cpu": ["c5.large"], "gpu": ["p3.2xlarge", "g5.xlarge"]},
    )


@pytest.fixture(scope="session")
def closed() -> Template:
    """Private subnets, which only one cell can have."""
    settings = {"subnets": "private", "instanceTypes": {"cpu": ["c5.large"], "gpu": ["g5.xlarge"]}}
    (template,) = synthesised(**settings).values()
    return template


@pytest.fixture(scope="session")
def guest() -> Template:
    """In a company's account: its VPC, bootstrap, boundary and tags; small, so without alarms and dashboard."""
    subnets = {"us-east-1b": "subnet-0123456789abcdef0", "us-east-1d": "subnet-0123456789abcdef1"}
    settings = {
        "bootstrapQualifier": "company",
        "permissionsBoundary": "teams/batch",
        "tags": {"cost-centre": "4711"},
        "alarms": False,
        "dashboard": False,
        "vpcs": {"us-east-1": {"vpcId": "vpc-0123456789abcdef0", "subnets": subnets}},
        "instanceTypes": {"cpu": ["c5.large"], "gpu": ["g5.xlarge"]},
    }
    (template,) = synthesised(**settings).values()
    return template
