"""Local mode honours a field of a task definition, or says at submit that it does not."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.aws.local_definitions import (
    BY_ENGINE,
    CONTAINER,
    LINUX,
    LINUX_BY_ENGINE,
    TASK,
    ignored,
    note_of,
)
from argosy.emulator.botocore_check import service_model

REGISTER = service_model("ecs").operation_model("RegisterTaskDefinition").input_shape
DESCRIBED = service_model("ecs").operation_model("DescribeTaskDefinition").output_shape.members["taskDefinition"]
OF_CONTAINER = REGISTER.members["containerDefinitions"].member
OF_LINUX = OF_CONTAINER.members["linuxParameters"]


@pytest.mark.parametrize("runtime", ["process", "podman"])
def test_every_field_that_ecs_has_is_honoured_or_named(runtime: str) -> None:
    """Fields and their names are botocore's; a new one is named without a change here."""
    engine = runtime == "podman"
    whole = {name: ["set"] for name in {*REGISTER.members, *DESCRIBED.members} - {"networkMode"}}
    linux = {name: ["set"] for name in OF_LINUX.members}
    container: dict[str, Any] = {name: ["set"] for name in OF_CONTAINER.members}
    container |= {"name": "main", "linuxParameters": linux, "logConfiguration": {"logDriver": "awslogs"}}
    said = set(ignored({**whole, "containerDefinitions": [container]}, runtime))
    expected = {*whole} - TASK
    expected |= {f"{name} of main" for name in {*container} - CONTAINER - (BY_ENGINE if engine else set())}
    honoured = LINUX | (LINUX_BY_ENGINE if engine else set())
    expected |= {f"linuxParameters.{name} of main" for name in {*linux} - honoured}
    assert said == expected
    assert {"taskRoleArn", "volumes", "secrets of main", "ulimits of main"} <= said
    assert ("user of main" in said) is not engine


def test_what_counts_as_honoured_are_fields_of_ecs() -> None:
    assert {*REGISTER.members, *DESCRIBED.members} >= TASK
    assert {*OF_CONTAINER.members} >= CONTAINER | BY_ENGINE
    assert {*OF_LINUX.members} >= LINUX | LINUX_BY_ENGINE


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ({"networkMode": "awsvpc"}, ["networkMode awsvpc"]),
        ({"networkMode": "bridge", "volumes": [], "pidMode": ""}, []),
        ({"containerDefinitions": [{"name": "a", "mountPoints": [], "secrets": None, "privileged": False}]}, []),
        (
            {"containerDefinitions": [{"name": "a", "logConfiguration": {"logDriver": "splunk"}}]},
            ["logDriver splunk of a"],
        ),
        (
            {"containerDefinitions": [{"name": "a", "logConfiguration": {
                "logDriver": "awslogs", "options": {"awslogs-group": "g", "awslogs-create-group": "true"},
                "secretOptions": [{"name": "n"}],
            }}]},
            ["logConfiguration.awslogs-create-group of a", "logConfiguration.secretOptions of a"],
        ),
    ],
)  # fmt: skip
def test_only_values_that_ask_for_something_are_named(definition: dict[str, Any], said: list[str]) -> None:
    assert list(ignored(definition, "process")) == said


def test_the_warning_names_the_definition_and_there_is_none_for_none() -> None:
    assert note_of("mine:3", {"volumes": [{"name": "v"}]}, "process") == [
        "local mode ignores these fields of the task definition mine:3, which have an effect on AWS: volumes"
    ]
    assert note_of("mine:3", None, "process") == note_of("mine:3", {"cpu": "256"}, "process") == []
