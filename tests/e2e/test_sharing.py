"""Queues in local mode, through the command: a run of another queue does not wait for the end of a large one."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.local.clients import LocalClients
from argosy.local.deployment import local_settings
from argosy.local.options import LocalOptions
from tests.e2e.cluster import Cluster, cluster
from tests.fakes.commands import outcome_of
from tests.fakes.local_mode import local_aws

pytestmark = pytest.mark.e2e
TASKS = 40
PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "share-a-deployment.md"
_FILE = re.compile(r"`([\w-]+\.(?:yaml|json))`:\n\n```\w+\n(.*?)```", re.DOTALL)
_TYPED = re.compile(r"```\n(argosy queues .*?)```", re.DOTALL)
DONE_OF_LARGE = re.compile(r"(\d+) of 300 tasks succeeded")
A_THIRD = 100  # in order of submission 284 would be done by then: all but those that run beside the last one
QUEUES = "version: 1\nqueues:\n  research: {weight: 2, within: owners}\n  prod: {weight: 4}\n"


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("local"), max_instances=1) as running:
        yield running


def argosy(local: Cluster, *words: str) -> subprocess.CompletedProcess[str]:
    return outcome_of(["argosy", *words, "--endpoint-url", local.aws.endpoint_url])


def of(local: Cluster, queue: str, tasks: int, **fields: Any) -> str:
    return local.submit(["wait", "none", "1"], tasks, name=queue, queue=queue, **fields)


def launched_at(local: Cluster, run: str, index: int) -> str:
    """Of its first attempt; empty before it has one."""
    attempts = local.ask("DescribeTask", runId=run, index=index)["attempts"]
    return str(attempts[0]["launchedAt"] or "") if attempts else ""


def test_a_run_of_another_queue_starts_while_tasks_of_a_large_one_wait(local: Cluster, tmp_path: Path) -> None:
    (tmp_path / "queues.yaml").write_text(QUEUES)
    applied = argosy(local, "queues", "apply", str(tmp_path / "queues.yaml"))
    assert applied.returncode == 0, applied.stderr
    assert "Queues: research, prod." in applied.stdout
    local.until(lambda: "prod" in [each["name"] for each in local.ask("DescribeSharing")["queues"]])
    large = of(local, "research", TASKS, owner="alice")
    local.until(lambda: local.ask("DescribeRun", runId=large)["tasks"]["running"])
    small = of(local, "prod", 1)
    assert local.finished(small)["status"] == "SUCCEEDED"
    local.until(lambda: launched_at(local, large, TASKS - 1))
    assert launched_at(local, small, 0) < launched_at(local, large, TASKS - 1)
    shown = argosy(local, "queues")
    assert shown.returncode == 0, shown.stderr
    assert "research" in shown.stdout
    assert "Owners in research: alice (unproven) 1 run; unproven owners count as one." in shown.stdout
    assert "alice (unproven)" in argosy(local, "status", large).stdout
    local.ask("CancelRun", runId=large)
    local.finished(large)


def test_a_queue_that_is_not_there_is_refused_with_those_that_are(local: Cluster) -> None:
    spec = {"version": 1, "name": "x", "container": {"image": "argosy/worker"}, "array": {"size": 1}, "queue": "proud"}
    refused = local.invoke({"action": "SubmitRun", "spec": spec})
    assert refused["statusCode"] == 400
    [fault] = refused["body"]["error"]["fieldList"]
    assert fault["path"] == "queue"
    assert "prod" in fault["message"]


def test_through_the_entrance_of_a_queue_nothing_else_is_changed(local: Cluster, tmp_path: Path) -> None:
    (tmp_path / "queues.yaml").write_text(QUEUES)
    assert argosy(local, "queues", "apply", str(tmp_path / "queues.yaml")).returncode == 0
    local.until(lambda: "prod" in [each["name"] for each in local.ask("DescribeSharing")["queues"]])
    theirs = of(local, "research", 1)
    made = argosy(local, "access", "prod", "--json")
    assert made.returncode == 0, made.stderr
    arn = json.loads(made.stdout)["aliasArn"]
    refused = argosy(local, "cancel", theirs, "--as-queue", "prod")
    assert (refused.returncode, "belongs to the queue research" in refused.stderr) == (2, True), refused.stderr
    spec = {"version": 1, "name": "x", "container": {"image": "argosy/worker", "command": ["none", "x"]}}
    asked = json.dumps({"action": "SubmitRun", "spec": {**spec, "array": {"size": 1}}})
    functions = local.clients("lambda")
    for how in ({"FunctionName": arn}, {"FunctionName": "argosy-api", "Qualifier": "q-prod"}):
        reply = json.loads(functions.invoke(**how, Payload=asked)["Payload"].read())
        assert reply["statusCode"] == 200, reply
        assert argosy(local, "cancel", reply["body"]["runId"], "--as-queue", "prod").returncode == 0
    assert argosy(local, "access", "prod", "--remove").returncode == 0
    gone = argosy(local, "queues", "--as-queue", "prod")
    assert "queue prod" in gone.stderr
    local.ask("CancelRun", runId=theirs)
    local.finished(theirs)


@pytest.mark.pages
def test_on_the_page_a_small_run_of_another_queue_does_not_wait_for_three_hundred_tasks(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    files = dict(_FILE.findall(page))
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert set(files) == {"small-cluster.json", "queues.yaml", "sweep.yaml", "check.yaml"}
    settings = local_settings(**json.loads(files["small-cluster.json"]))
    [typed] = _TYPED.findall(page)
    with local_aws(LocalOptions(settings=settings, boot_s=0.2, tick_s=0.3)) as aws:
        done = outcome_of(typed, tmp_path, ARGOSY_ENDPOINT_URL=aws.endpoint_url)
        assert done.returncode == 0, done.stdout + done.stderr
        clients = LocalClients(aws.endpoint_url, "us-east-1", aws.key)
        runs = {each["name"]: each for each in Cluster(aws, clients).ask("ListRuns")["runs"]}
        clients.close()
    assert runs["check"]["status"] == "SUCCEEDED"
    [shown] = DONE_OF_LARGE.findall(done.stdout)
    assert int(shown) < A_THIRD
