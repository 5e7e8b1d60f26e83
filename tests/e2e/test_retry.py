"""A run with failures is retried by the command, on the embedded AWS, until its results are complete."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import Cluster, cluster
from tests.fakes.commands import outcome_of

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("local"), linger_s=5.0) as running:
        yield running


def argosy(local: Cluster, *words: str) -> subprocess.CompletedProcess[str]:
    return outcome_of(["argosy", *words, "--endpoint-url", local.aws.endpoint_url])


def test_retry_failed_completes_a_run_and_keeps_what_had_succeeded(local: Cluster, tmp_path: Path) -> None:
    run_id = local.submit(["second", "${part}"], 9, retryStrategy={"attempts": 1})
    before = local.finished(run_id)
    assert (before["status"], before["tasks"]["failed"], before["attempts"]) == ("PARTIAL", 3, 9)
    refused = argosy(local, "retry", run_id)
    assert refused.returncode == 2
    told = argosy(local, "retry", run_id, "--failed", "--client-token", "once")
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[0] == f"{run_id} is retried: 3 tasks of 9; 6 results kept."
    again = argosy(local, "retry", run_id, "--failed", "--client-token", "once")
    assert "nothing is started twice" in again.stdout
    waited = argosy(local, "watch", run_id)
    assert waited.returncode == 0, waited.stdout + waited.stderr
    after = local.finished(run_id)
    assert (after["status"], after["attempts"], after["retries"]) == ("SUCCEEDED", 12, 1)
    assert [task["attempts"] for task in after["taskList"]] == [2, 1, 1, 2, 1, 1, 2, 1, 1]
    assert "_SUCCESS" in local.keys(run_id)
    assert "_FAILED" not in local.keys(run_id)
    folder = tmp_path / "results"
    done = argosy(local, "results", run_id, "--download", str(folder))
    assert done.returncode == 0, done.stderr
    parts = sorted(path.name for path in folder.rglob("part-*"))
    assert len(parts) == 9
    manifest: dict[str, Any] = json.loads(local.read(f"{run_id}/manifest.json"))
    assert [entry["attempt"] for entry in manifest["entries"]] == [2, 1, 1, 2, 1, 1, 2, 1, 1]
    assert all(entry["instanceType"] for entry in manifest["entries"])
    refused = argosy(local, "retry", run_id, "--failed")
    assert refused.returncode == 2
    assert "there is nothing to retry" in refused.stderr


def test_the_events_of_local_mode_tell_a_runs_story_and_resume_from_any_change(local: Cluster) -> None:
    run_id = local.submit(["second", "${part}"], 3, retryStrategy={"attempts": 1})
    local.finished(run_id)
    told = argosy(local, "events", run_id, "--json-lines")
    assert told.returncode == 0, told.stderr
    changes = [json.loads(line) for line in told.stdout.splitlines()]
    story = [each["type"] for each in changes]
    assert (story[0], story[-1], changes[-1]["status"]) == ("run.submitted", "run.closed", "PARTIAL")
    assert {"run.prepared", "run.running", "task.placed", "task.ended", "task.verified"} <= set(story)
    failed = [each for each in changes if each.get("chargedTo") == "user"]
    assert [(each["tasks"], each["exitCode"], each["status"]) for each in failed] == [([[0, 0]], 1, "FAILED")]
    rest = argosy(local, "events", run_id, "--since", changes[2]["sequence"], "--json-lines")
    assert [json.loads(line) for line in rest.stdout.splitlines()] == changes[3:]
    assert f"{run_id} ended as PARTIAL" in argosy(local, "events", run_id, "--type", "run").stdout
