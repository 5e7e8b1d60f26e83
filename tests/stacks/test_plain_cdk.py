"""What a user of the CDK types in a fresh clone, without make: F1. AWS is moto's server."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from stacks.runner import FAILED

ROOT = Path(__file__).resolve().parents[2]
NPM = shutil.which("npm")
pytestmark = [
    pytest.mark.engine,
    pytest.mark.stacks,
    pytest.mark.slow,
    pytest.mark.skipif(NPM is None, reason="there is no npm on PATH"),
]


class Clone:
    """A clone of HEAD and a shell in it, of which no environment of this checkout is a part."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        self.folder = folder
        mine = str(Path(sys.executable).parent)
        self.path = os.pathsep.join(each for each in os.environ["PATH"].split(os.pathsep) if each != mine)
        left_out = ("AWS_", "ARGOSY_", "VIRTUAL_ENV", "PYTHON", "PYTEST_", "JSII_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
        keys = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_REGION": "us-east-1"}
        self.environment = {**kept, **keys, "AWS_ENDPOINT_URL": endpoint, "PATH": self.path}

    def type(self, line: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = self.environment | variables
        return subprocess.run(
            ["sh", "-c", line], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    """The address of an AWS that is bootstrapped for the CDK."""
    server = ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    client_of(endpoint, "ssm").put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="21", Type="String")
    client_of(endpoint, "s3").create_bucket(Bucket="cdk-hnb659fds-assets-123456789012-us-east-1")
    yield endpoint
    server.stop()


def client_of(endpoint: str, service: str) -> Any:
    keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
    return boto3.client(service, region_name="us-east-1", endpoint_url=endpoint, **keys)


@pytest.fixture(scope="module")
def clone(aws: str, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    folder = tmp_path_factory.mktemp("fresh") / "argosy"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", str(folder)], check=True)
    made = Clone(folder, aws)
    done = made.type(
        f"{Path(sys.base_prefix) / 'bin/python3'} -m venv .venv && .venv/bin/pip install -r requirements.txt && npm ci"
    )
    assert done.returncode == 0, done.stderr
    return made


def test_ls_and_synth_work_in_a_fresh_clone(clone: Clone) -> None:
    listed = clone.type("npx cdk ls")
    assert (listed.returncode, listed.stdout) == (0, "argosy\n"), listed.stderr
    done = clone.type("npx cdk synth -c gpuInstanceType=p3.16xlarge -c cpuInstanceType=c5.9xlarge --quiet")
    assert done.returncode == 0, done.stderr
    template = (clone.folder / "cdk.out" / "argosy.template.json").read_text()
    assert "/argosy/fleets/p3.16xlarge" in template
    assert "/argosy/fleets/c5.large" not in template
    assert not (clone.folder / "build").exists()


def test_any_environment_may_be_activated(clone: Clone, tmp_path: Path) -> None:
    """An empty one, first on PATH."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "other")], check=True)
    listed = clone.type("npx cdk ls", PATH=f"{tmp_path}/other/bin:{clone.path}", VIRTUAL_ENV=str(tmp_path / "other"))
    assert (listed.returncode, listed.stdout) == (0, "argosy\n"), listed.stderr


def test_diff_and_destroy_need_nothing_that_is_built(clone: Clone) -> None:
    done = clone.type("npx cdk diff")
    assert "[+] AWS::Lambda::Function" in done.stdout + done.stderr
    assert "Number of stacks with differences: 1" in done.stdout + done.stderr
    destroyed = clone.type("npx cdk destroy --force")
    assert destroyed.returncode == 0, destroyed.stderr


def test_deploy_builds_the_runner_and_publishes_it_or_makes_nothing(clone: Clone, aws: str) -> None:
    """moto's CloudFormation takes no template by the address that the CDK gives: the last call is the change set's."""
    assert not (clone.folder / "build" / "runner").exists()  # diff, synth, ls and destroy have built nothing
    refused = clone.type("npx cdk deploy --require-approval never", GO="/none/go")
    assert refused.returncode != 0
    assert "/none/go is no Go from 1.25 on.\n" + FAILED in refused.stdout + refused.stderr
    assert client_of(aws, "cloudformation").list_stacks()["StackSummaries"] == []
    done = clone.type("npx cdk deploy --require-approval never", GOCACHE=go_cache())
    said = done.stdout + done.stderr
    assert said.count("Building the runner with go1.") == 1
    assert "success: Published Cell/Runner/amd64" in said
    assert "success: Published argosy Template" in said
    assert "creating CloudFormation changeset" in said
    runner = clone.folder / "build" / "runner" / "amd64" / "argosy-runner"
    assert runner.read_bytes().startswith(b"\x7fELF")
    template = (clone.folder / "cdk.out" / "argosy.template.json").read_text()
    assert hashlib.sha256(runner.read_bytes()).hexdigest() in template
    assert any({"argosy/handlers.py", "numpy/__init__.py"} <= names for names in published_zips(aws))


def go_cache() -> str:
    """This checkout's compiled packages, if `make runner` has left them: else the build compiles for a minute."""
    return str(ROOT / "build" / "runner" / "cache")


def published_zips(endpoint: str) -> Iterator[set[str]]:
    """The names in each zip of the assets' bucket."""
    storage, bucket = client_of(endpoint, "s3"), "cdk-hnb659fds-assets-123456789012-us-east-1"
    for each in storage.list_objects_v2(Bucket=bucket)["Contents"]:
        content = io.BytesIO(storage.get_object(Bucket=bucket, Key=each["Key"])["Body"].read())
        if zipfile.is_zipfile(content):
            with zipfile.ZipFile(content) as opened:
                yield set(opened.namelist())


def test_without_its_packages_the_app_says_what_to_type(clone: Clone, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "other")], check=True)
    done = clone.type(f"{tmp_path}/other/bin/python app.py")
    assert done.returncode == 1
    assert done.stderr == (
        "No module named 'aws_cdk'. Type: python3 -m venv .venv && .venv/bin/pip install -r requirements.txt\n"
    )
