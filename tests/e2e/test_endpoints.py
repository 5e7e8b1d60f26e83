"""Endpoints in local mode, with real processes: they answer while a deployment replaces them, and an unhealthy one is
removed.

Behind a load balancer they are registered, and leave the target group before they end."""

from __future__ import annotations

import signal
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psutil
import pytest

from argosy.local.clients import LocalClients
from tests.e2e.cluster import Cluster
from tests.fakes.local_mode import local_aws
from tests.readmes import local_options

pytestmark = pytest.mark.e2e
GROUP = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/web/0123456789abcdef"
ASKS = "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['ARGOSY_PORT_8080'], timeout=1)"
SERVES = 'echo {} > index.html; exec python3 -m http.server --bind 127.0.0.1 "$ARGOSY_PORT_8080"'


@pytest.fixture(scope="module")
def local() -> Iterator[Cluster]:
    usual = local_options()
    settings = usual.settings.model_copy(update={"target_groups": {"web": GROUP}})
    with local_aws(replace(usual, settings=settings)) as aws:
        clients = LocalClients(aws.endpoint_url, "us-east-1", aws.key)
        try:
            yield Cluster(aws, clients)
        finally:
            clients.close()


def spec(word: str) -> dict[str, Any]:
    health = {"command": ["CMD", "python3", "-c", ASKS], "intervalSeconds": 5, "timeoutSeconds": 2, "retries": 1}
    return {
        "version": 1,
        "kind": "service",
        "name": "api",
        "run": SERVES.format(word),
        "result": "none",
        "container": {"ports": [{"container": 8080}], "health": health},
        "resources": {"vcpus": 0.5, "memory": 256},
        "service": {"desired": 2, "update": {"healthySeconds": 1}},
    }


def endpoints(local: Cluster) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = local.ask("DescribeEnvironment", name="api", include=["endpoints"])["endpoints"]
    return found


def answers(local: Cluster) -> list[str]:
    """The answers of the healthy ones; tasks that have just ended do not count."""
    found = []
    for each in endpoints(local):
        try:
            with urllib.request.urlopen(f"http://{each['privateIp']}:{each['hostPort']}/index.html", timeout=5) as said:
                found += [said.read().decode().strip()] if each["healthy"] else []
        except OSError:
            continue
    return found


def view(local: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = local.ask("DescribeEnvironment", name="api")
    return found


def processes_at(port: int) -> list[psutil.Process]:
    return [each for each in psutil.Process().children(recursive=True) if str(port) in words_of(each)]


def words_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.ZombieProcess, psutil.NoSuchProcess):  # it has just ended
        return []


def process_at(port: int) -> psutil.Process:
    (found,) = processes_at(port)
    return found


@pytest.mark.deep
def test_endpoints_answer_while_a_deployment_replaces_them_and_an_ill_task_is_replaced(local: Cluster) -> None:
    local.ask("CreateEnvironment", spec=spec("one"))
    local.ask("StartDeployment", name="api", clientToken="one")
    local.until(lambda: view(local)["status"] == "COMPLETED", patience_s=120)
    assert answers(local) == ["one", "one"]
    first = endpoints(local)
    assert {each["privateIp"] for each in first} == {"127.0.0.1"}
    assert {each["containerPort"] for each in first} == {8080}
    assert len({each["hostPort"] for each in first}) == 2
    local.ask("UpdateEnvironment", name="api", baseRevision=1, spec=spec("two"))
    local.ask("StartDeployment", name="api", clientToken="two")
    seen: list[list[str]] = []

    def is_replaced() -> bool:
        seen.append(answers(local))
        assert seen[-1], "somebody answers at all times"
        return view(local)["status"] == "COMPLETED" and view(local)["completedRevision"] == 2

    local.until(is_replaced, patience_s=120)
    assert answers(local) == ["two", "two"]
    ill = endpoints(local)[0]
    process_at(ill["hostPort"]).send_signal(signal.SIGSTOP)  # it runs and answers no request
    local.until(
        lambda: answers(local) == ["two", "two"] and ill["hostPort"] not in {e["hostPort"] for e in endpoints(local)},
        patience_s=120,
    )
    run = next(each["runId"] for each in view(local)["revisions"] if each["revision"] == 2)
    assert local.ask("DescribeRun", runId=run)["attempts"] == 3
    assert [each["revision"] for each in endpoints(local)] == [2, 2]
    local.ask("DeleteEnvironment", name="api")
    local.until(lambda: not local.ask("ListEnvironments")["environments"])


def targets(local: Cluster) -> set[tuple[str, int]]:
    """The load balancer's targets."""
    found = local.clients("elbv2").describe_target_health(TargetGroupArn=GROUP)["TargetHealthDescriptions"]
    return {(each["Target"]["Id"], each["Target"]["Port"]) for each in found}


def places(local: Cluster) -> set[tuple[str, int]]:
    return {(each["instance"], each["hostPort"]) for each in endpoints(local)}


def test_tasks_are_registered_while_they_serve_and_leave_the_group_before_they_end(local: Cluster) -> None:
    balanced = spec("balanced")
    balanced["service"] |= {"targetGroup": "web", "drainSeconds": 5}
    local.ask("CreateEnvironment", spec=balanced)
    local.ask("StartDeployment", name="api", clientToken="balanced")
    local.until(lambda: len(targets(local)) == 2, patience_s=120)
    assert targets(local) == places(local)
    local.until(lambda: answers(local) == ["balanced", "balanced"], patience_s=60)
    local.until(lambda: view(local)["registeredTargets"] == 2)
    both = targets(local)
    local.ask("ScaleEnvironment", name="api", desired=1)
    local.until(lambda: len(targets(local)) == 1, patience_s=60)
    [(_, port)] = both - targets(local)
    assert process_at(port).is_running(), "it drains"
    local.until(lambda: not processes_at(port), patience_s=60)
    assert places(local) == targets(local)
    local.ask("DeleteEnvironment", name="api")
    local.until(lambda: not local.ask("ListEnvironments")["environments"], patience_s=120)
    assert targets(local) == set()
