"""Do a task's overrides fit into ECS's limit?"""

from __future__ import annotations

from typing import Any

from argosy.spec import overrides
from argosy.spec.parse import parse_spec
from tests.fakes.specs import container, faults, spec


def test_overrides_of_the_last_task_count_because_its_numbers_are_the_longest() -> None:
    """The first task's would have 2,300 characters."""
    data = spec(array={"size": 1_000_000}, container=container(*["${index}" * 10] * 120))
    assert faults(data) == [
        "container.command: leads to overrides of up to 8385 characters (task 999999); ECS accepts 8192:"
        " put long values into an S3 object and pass its address"
    ]
    parse_spec({**data, "array": {"size": 10}})


def test_the_longest_item_decides_and_is_named() -> None:
    items: list[Any] = ["x"] * 5000 + ["y" * 8000] + ["z"] * 1000
    found = faults(spec(container=container("${item}"), array={"items": items}))
    assert len(found) == 1
    assert "(task 5000)" in found[0]
    parse_spec(spec(container=container("--all"), array={"items": items}))  # no template uses them


def test_escapes_count_as_they_are_sent() -> None:
    parse_spec(spec(container=container("x" * 4000)))
    assert "leads to overrides of up to" in faults(spec(container=container('"' * 4000)))[0]
    items = spec(container=container("${item}"), array={"items": ['"' * 4000]})
    assert "leads to overrides of up to" in faults(items)[0]


def test_a_long_environment_alone_is_too_long_too() -> None:
    environment = {f"V{number}": "x" * 4000 for number in range(2)}
    assert faults(spec(container=container(environment=environment)))[0].startswith("container: leads to overrides")


def test_a_task_with_too_many_files_is_a_fault_of_its_inputs() -> None:
    files = [f"folder/{number:06d}.jpg" for number in range(6_000)]
    data = {"version": 1, "name": "n", "run": ["x"], "inputs": ["s3://own/${item}"], "array": {"items": [files[:900]]}}
    parse_spec(data)
    [fault] = faults({**data, "array": {"items": [["a.jpg"], files]}})
    assert fault.startswith("inputs: leads to overrides of up to ")
    assert fault.endswith("(task 1); a program may have 131072: give each task fewer files, or a prefix that ends in /")


def test_items_from_a_file_are_weighed_when_they_are_handed_in() -> None:
    data = spec(container=container("${item}"), array={"itemsFrom": "s3://b/items"})
    assert list(overrides.length_faults(data, ["short"])) == []
    assert len(list(overrides.length_faults(data, ["x" * 8192]))) == 1
