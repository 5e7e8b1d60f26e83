"""One deployment in two Regions on the embedded AWS: the same handlers, two clusters, one home."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.cluster import Cluster, cluster

pytestmark = pytest.mark.e2e
HOME, AWAY = "us-east-1", "eu-west-1"
WRITE = ["write", "${part}", "0.5"]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("local"), (HOME, AWAY), linger_s=5.0) as running:
        yield running


def cells_of(local: Cluster, run_id: str) -> Counter[str]:
    """The number of its tasks in each cell, by the tasks that ECS there lists."""
    found: Counter[str] = Counter()
    for cell in (HOME, AWAY):
        for task in tasks_in(local, cell):
            found[cell] += {"key": "argosy:run", "value": run_id} in task["tags"]
    return +found


def tasks_in(local: Cluster, cell: str) -> list[dict[str, Any]]:
    ecs = local.clients("ecs", cell)
    arns = [
        arn
        for status in ("RUNNING", "STOPPED")
        for page in ecs.get_paginator("list_tasks").paginate(cluster="argosy", desiredStatus=status)
        for arn in page["taskArns"]
    ]
    tasks: list[dict[str, Any]] = []
    for start in range(0, len(arns), 100):
        chunk = arns[start : start + 100]
        tasks += ecs.describe_tasks(cluster="argosy", tasks=chunk, include=["TAGS"])["tasks"]
    return tasks


def test_a_run_that_is_pinned_to_a_cell_runs_there_and_its_results_come_home(local: Cluster) -> None:
    run_id = local.submit(WRITE, 6, capacity={"cells": [AWAY]})
    view = local.finished(run_id)
    assert (view["status"], view["tasks"]["succeeded"]) == ("SUCCEEDED", 6)
    assert cells_of(local, run_id) == {AWAY: 6}
    assert sum(key.startswith("parts/") for key in local.keys(run_id)) == 6
    assert {i["cell"] for i in local.ask("DescribeCluster")["instances"]} == {AWAY}


def test_runs_of_both_cells_proceed_at_the_same_time_each_in_its_own_cell(local: Cluster) -> None:
    pinned = {cell: local.submit(WRITE, 6, capacity={"cells": [cell]}) for cell in (HOME, AWAY)}
    free = local.submit(WRITE, 6)
    for cell, run_id in pinned.items():
        assert local.finished(run_id)["status"] == "SUCCEEDED"
        assert cells_of(local, run_id) == {cell: 6}
    assert local.finished(free)["status"] == "SUCCEEDED"
    assert cells_of(local, free).total() == 6


def test_an_interruption_in_the_other_cell_reaches_home(local: Cluster) -> None:
    run_id = local.submit(["write", "${part}", "4"], 4, capacity={"cells": [AWAY]}, retryStrategy={"attempts": 1})
    busy = local.until(
        lambda: Counter(t["instance"] for t in local.run(run_id)["taskList"] if t["status"] == "RUNNING")
    )
    local.aws.interrupt(busy.most_common(1)[0][0], notice_s=1.0)
    view = local.finished(run_id)
    assert (view["status"], view["attempts"]) == ("SUCCEEDED", 4 + view["interruptions"])
    assert view["interruptions"] >= 1


def test_a_cell_that_the_deployment_does_not_have_is_refused_by_name(local: Cluster) -> None:
    spec = {
        "version": 1,
        "name": "worker",
        "container": {"image": "argosy/worker", "command": WRITE},
        "array": {"size": 1},
        "capacity": {"cells": [AWAY, "ap-south-1"]},
    }
    reply = local.invoke({"action": "SubmitRun", "spec": spec})
    assert [fault["path"] for fault in reply["body"]["error"]["fieldList"]] == ["capacity.cells[1]"]
    assert reply["statusCode"] == 400


def test_everything_goes_back_to_zero_in_both(local: Cluster) -> None:
    local.until(lambda: not any(i["status"] != "GONE" for i in local.ask("DescribeCluster")["instances"]))
    for cell in (HOME, AWAY):
        fleets = local.clients("ec2", cell).describe_fleets()["Fleets"]
        assert fleets
        assert {fleet["TargetCapacitySpecification"]["TotalTargetCapacity"] for fleet in fleets} == {0}
