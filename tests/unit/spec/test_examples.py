"""Every field of a run spec has an example, and each example is accepted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from argosy.spec.examples import EXAMPLES
from argosy.spec.parse import parse_spec, schema

SPEC: dict[str, Any] = {
    "version": 1,
    "name": "x",
    "container": {"image": "argosy/x", "command": ["x"]},
    "array": {"range": "0:100"},
}
OF_ITS_OWN = {"size", "items", "itemsFrom"}  # each excludes the range
OF_SERVICES = {"onDemandBase", "ports", "health"}
WITHOUT_CONTAINER = {"run", "job", "taskDefinition", "workdir", "setup", "packages", "inputs", "result"}
NEEDS = {
    "gpuModel": {"gpus": 1},
    "gpuMemoryMib": {"gpus": 1},
    "fallback": {"purchase": "spot-then-on-demand"},
    "deadline": {"purchase": "spot-then-on-demand"},
    "onCap": {"budgetUsd": 5},
}


def fields() -> Iterator[tuple[str, str]]:
    body = schema()
    for model, properties in (("RunSpec", body), *body["$defs"].items()):
        for field in properties["properties"]:
            yield model, field


@pytest.mark.parametrize(("model", "field"), list(fields()))
def test_every_field_has_an_example_in_the_schema(model: str, field: str) -> None:
    assert field in EXAMPLES[model]


def of_top_level(field: str, value: Any) -> dict[str, Any]:
    spec = {**SPEC, field: value}
    if field in ("kind", "service"):
        del spec["array"]
        spec = {"kind": "service", "service": {"desired": 1}, **spec}
    if field == "daemon":
        del spec["array"]
        spec = {"kind": "daemon", **spec}
    if field in WITHOUT_CONTAINER:
        del spec["container"]
        if field != "taskDefinition":
            spec = {"run": ["x"], **spec}
        if field == "setup":
            spec["workdir"] = "."
    return spec


@pytest.mark.parametrize("field", EXAMPLES["RunSpec"])
def test_the_example_of_a_part_is_accepted(field: str) -> None:
    assert parse_spec(of_top_level(field, EXAMPLES["RunSpec"][field]))


@pytest.mark.parametrize(
    ("part", "model", "field"),
    [
        (part, model, field)
        for part, model in (
            ("container", "ContainerSpec"),
            ("resources", "ResourcesSpec"),
            ("array", "ArraySpec"),
            ("placement", "PlacementSpec"),
            ("capacity", "CapacitySpec"),
            ("retryStrategy", "RetrySpec"),
            ("timeout", "TimeoutSpec"),
        )
        for field in EXAMPLES[model]
    ],
)
def test_the_example_of_a_field_is_accepted(part: str, model: str, field: str) -> None:
    inside = {} if field in OF_ITS_OWN else SPEC.get(part, {})
    spec = {**SPEC, part: {**inside, **NEEDS.get(field, {}), field: EXAMPLES[model][field]}}
    if field in OF_SERVICES:
        del spec["array"]
        spec |= {"kind": "service", "service": {"desired": 3}}
    assert parse_spec(spec)


@pytest.mark.parametrize("field", EXAMPLES["ExitRuleSpec"])
def test_the_example_of_an_exit_rule_is_accepted(field: str) -> None:
    rule = {"onExitCode": "1", "action": "EXIT", field: EXAMPLES["ExitRuleSpec"][field]}
    assert parse_spec({**SPEC, "retryStrategy": {"attempts": 2, "evaluateOnExit": [rule]}})


@pytest.mark.parametrize("field", EXAMPLES["SoftConstraintSpec"])
def test_the_example_of_a_soft_constraint_is_accepted(field: str) -> None:
    soft = {"expression": "distinctInstance", field: EXAMPLES["SoftConstraintSpec"][field]}
    assert parse_spec({**SPEC, "placement": {"softConstraints": [soft]}})


@pytest.mark.parametrize("field", EXAMPLES["FallbackSpec"])
def test_the_example_of_a_fallback_is_accepted(field: str) -> None:
    capacity = {"purchase": "spot-then-on-demand", "fallback": {field: EXAMPLES["FallbackSpec"][field]}}
    assert parse_spec({**SPEC, "capacity": capacity})
