"""What does `argosy query` answer for a file, for a cluster, and for an invalid expression?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from argosy.cli.cluster.query import register
from argosy.cli.session import Tools

ARN = "arn:aws:ecs:us-east-1:123456789012:container-instance/argosy/"
INSTANCES = [
    {
        "containerInstanceArn": f"{ARN}{number}",
        "ec2InstanceId": f"i-{number}",
        "status": "ACTIVE",
        "agentConnected": True,
        "registeredAt": "2024-05-01T00:00:00+00:00",
        "runningTasksCount": number,
        "versionInfo": {"agentVersion": "1.80.0"},
        "attributes": [{"name": "ecs.instance-type", "value": kind}, {"name": "ecs.capability.x"}],
        "remainingResources": [
            {"name": "CPU", "type": "INTEGER", "integerValue": 1024},
            {"name": "PORTS", "type": "STRINGSET", "stringSetValue": ["22", "80"]},
            {"name": "GPU", "type": "STRINGSET", "stringSetValue": ["GPU-1"]},
        ],
        "registeredResources": [{"name": "CPU", "type": "INTEGER", "integerValue": 2048}],
    }
    for number, kind in enumerate(["c5.large", "p3.2xlarge", "c5.xlarge"])
]
TASKS = [
    {"containerInstanceArn": f"{ARN}1", "group": "service:web", "startedBy": "me", "lastStatus": "RUNNING"},
    {"containerInstanceArn": f"{ARN}2", "group": "service:web", "lastStatus": "STOPPED"},
]


class Ecs:
    """Two pages of one instance and two."""

    def list_container_instances(self, cluster: str, maxResults: int, nextToken: str = "") -> dict[str, Any]:  # noqa: N803
        arns = [item["containerInstanceArn"] for item in INSTANCES]
        return (
            {"containerInstanceArns": arns[1:]} if nextToken else {"containerInstanceArns": arns[:1], "nextToken": "2"}
        )

    def describe_container_instances(self, cluster: str, containerInstances: list[str]) -> dict[str, Any]:  # noqa: N803
        return {"containerInstances": [i for i in INSTANCES if i["containerInstanceArn"] in containerInstances]}

    def list_tasks(self, cluster: str, maxResults: int) -> dict[str, Any]:  # noqa: N803
        return {"taskArns": ["t"]}

    def describe_tasks(self, cluster: str, tasks: list[str]) -> dict[str, Any]:
        return {"tasks": TASKS}


class Ssm:
    def get_parameter(self, **_: Any) -> dict[str, Any]:
        document = {"stage": "main", "region": "us-east-1", "cells": ["us-east-1"], "cluster": "argosy",
                    "apiFunction": "a",
                    "controllerFunction": "c", "bucket": "b",
                    "logGroup": "l", "table": "t", "queueUrl": "q"}  # fmt: skip
        return {"Parameter": {"Value": json.dumps(document)}}


class OtherEcs(Ecs):
    """Another Region's: one instance and no tasks."""

    def list_container_instances(self, cluster: str, maxResults: int, nextToken: str = "") -> dict[str, Any]:  # noqa: N803
        return {"containerInstanceArns": ["far"]}

    def describe_container_instances(self, cluster: str, containerInstances: list[str]) -> dict[str, Any]:  # noqa: N803
        return {"containerInstances": [{**INSTANCES[0], "containerInstanceArn": "far", "ec2InstanceId": "i-far"}]}

    def list_tasks(self, cluster: str, maxResults: int) -> dict[str, Any]:  # noqa: N803
        return {"taskArns": []}


class Cells(Ssm):
    def get_parameter(self, **asked: Any) -> dict[str, Any]:
        document = json.loads(super().get_parameter(**asked)["Parameter"]["Value"])
        return {"Parameter": {"Value": json.dumps({**document, "cells": ["us-east-1", "eu-west-1"]})}}


def query(*words: str, ssm: Ssm | None = None) -> Any:
    app = typer.Typer()
    register(app)

    def client(place: Any, service: str) -> Any:
        if service == "ssm":
            return ssm or Ssm()
        return {"us-east-1": Ecs, "eu-west-1": OtherEcs}[place.region]()

    tools = Tools(clients=client)
    return CliRunner().invoke(app, list(words), obj=tools, catch_exceptions=False)


@pytest.fixture
def instances(tmp_path: Path) -> Any:
    def write(document: Any) -> str:
        path = tmp_path / "instances.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return str(path)

    return write


def test_the_matches_of_a_file_are_listed(instances: Any) -> None:
    file = instances({"containerInstances": INSTANCES})
    answer = query("attribute:ecs.instance-type =~ c5.*", "--instances", file, "--json")
    assert json.loads(answer.output) == {"matches": ["i-0", "i-2"]}


def test_a_bare_list_will_do_and_people_get_lines(instances: Any) -> None:
    answer = query("runningTasksCount >= 1", "--instances", instances(INSTANCES))
    assert answer.output.splitlines() == ["i-1", "i-2", "2 of 3 instances match."]


def test_task_groups_of_a_file_are_those_of_live_tasks(instances: Any) -> None:
    file = instances({"containerInstances": INSTANCES, "tasks": TASKS})
    answer = query("task:group == service:web and task:startedBy == me", "--instances", file, "--json")
    assert json.loads(answer.output)["matches"] == ["i-1"]


def test_a_cluster_is_read_page_by_page() -> None:
    assert json.loads(query("registeredAt > 2024-01-01", "--json").output)["matches"] == ["i-0", "i-1", "i-2"]


def test_a_clusters_tasks_are_read_when_the_expression_asks_for_them() -> None:
    assert json.loads(query("task:group exists", "--json").output)["matches"] == ["i-1"]


def test_every_cell_of_the_deployment_is_read() -> None:
    answer = query("attribute:ecs.instance-type == c5.large", "--json", ssm=Cells())
    assert json.loads(answer.output)["matches"] == ["i-0", "i-far"]
    assert json.loads(query("task:group exists", "--json", ssm=Cells()).output)["matches"] == ["i-1"]


def test_a_faulty_expression_is_shown_with_a_mark_under_the_fault(instances: Any) -> None:
    answer = query("attribute:a AND", "--instances", instances(INSTANCES))
    assert answer.exit_code == 2
    assert "column 13" in answer.output


@pytest.mark.parametrize(
    "document",
    [
        "",
        "{",
        "[" * 100_000,
        {"instances": []},
        {"containerInstances": [], "tasks": 3},
        [3],
        [{}],
        [{"ec2InstanceId": "i", "attributes": 3}],
        [{"ec2InstanceId": "i", "attributes": [3]}],
        [{"ec2InstanceId": "i", "remainingResources": [3]}],
        [{"ec2InstanceId": "i", "remainingResources": [{"name": "CPU", "integerValue": "x"}]}],
        [{"ec2InstanceId": "i", "remainingResources": [{"name": "CPU", "integerValue": 10**30}]}],
        [{"ec2InstanceId": "i", "registeredAt": "soon"}],
        [{"ec2InstanceId": "i", "runningTasksCount": -1}],
        [{"ec2InstanceId": "i", "versionInfo": 3}],
        [{"ec2InstanceId": "i"}, {"ec2InstanceId": "i"}],
        {"containerInstances": [], "tasks": [3]},
    ],
)
def test_a_file_of_another_shape_is_refused_by_name(instances: Any, document: Any) -> None:
    answer = query("attribute:a exists", "--instances", instances(document))
    assert answer.exit_code == 2
    assert "instances.json" in answer.output.replace("\n", "")


def test_a_missing_file_is_reported() -> None:
    assert query("attribute:a exists", "--instances", "none.json").exit_code == 2
