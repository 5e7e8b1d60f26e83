"""A task's refusal reaches the user: one sentence in the log, the exit code in `argosy status`, and no part."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.local.clients import LocalClients
from argosy.local.cloud import LocalAws
from argosy.local.options import LocalOptions
from tests.fakes.commands import outcome_of
from tests.fakes.local_mode import local_aws

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with local_aws(LocalOptions(boot_s=0.2, tick_s=0.3)) as running:
        yield running


def argosy(aws: LocalAws, *words: str) -> subprocess.CompletedProcess[str]:
    return outcome_of(["argosy", *words], ROOT, ARGOSY_ENDPOINT_URL=aws.endpoint_url)


@pytest.mark.deep
def test_a_missing_model_is_reported_once_and_never_retried(aws: LocalAws, tmp_path: Path) -> None:
    """The inference image, whose program checks for its model before it loads TensorFlow, which is not needed here."""
    for number in range(4):
        (tmp_path / f"{number}.png").touch()
    command = ["submit", "containers/tensorflow-inference/run.yaml", "--set", "array.range=0:4"]
    command += ["--set", "array.shardSize=4", "--set", f"container.environment.INFERENCE_IMAGES={tmp_path}"]
    command += ["--set", "container.environment.INFERENCE_MODEL=s3://argosy-results/models/none/"]
    submitted = argosy(aws, *command)
    assert submitted.returncode == 1, submitted.stderr  # the run has failures
    run = argosy(aws, "runs").stdout.splitlines()[1].split()[0]
    status = argosy(aws, "status", run).stdout
    assert "attempts     1, 0 interrupted" in status
    assert "task 0: exit 64" in status
    log = argosy(aws, "logs", run).stdout
    assert "no model at s3://argosy-results/models/none/" in log
    s3 = LocalClients(aws.endpoint_url, aws.region, aws.key)("s3")
    found = s3.list_objects_v2(Bucket="argosy-results", Prefix=f"{run}/parts/")
    assert found["KeyCount"] == 0
