"""How large and how deep may a spec be, and how much is reported of a bad one?"""

from __future__ import annotations

import json
from typing import Any

import pytest

from argosy.spec import bounds
from argosy.spec.faults import FAULT_LIMIT, Fault, capped
from argosy.spec.parse import parse_spec
from tests.fakes.specs import container, faults, spec


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (None, "must be a mapping, not nothing"),
        ([], "must be a mapping, not a list"),
        ({1: 2}, "has the name 1, which is not text: put it in quotes"),
        ({"a": object()}, "a: is not a JSON value: its type is object"),
        ({"a": (1,)}, "a: is not a JSON value: its type is tuple"),
        ({"a": "x" * 300_000}, "is larger than 262144 bytes: put long items into an S3 object (itemsFrom)"),
        ({"a": [[]] * 200_000}, "is larger than 262144 bytes: put long items into an S3 object (itemsFrom)"),
        ({"a" * 300_000: 1}, "is larger than 262144 bytes: put long items into an S3 object (itemsFrom)"),
    ],
)
def test_input_that_is_not_bounded_json_is_refused_first(data: Any, expected: str) -> None:
    assert faults(data) == [expected]


def test_depth_is_bounded_without_recursion() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert faults(spec(array={"items": deep})) == ["is nested deeper than 20 levels"]
    within: Any = 1
    for _ in range(18):
        within = [within]
    parse_spec(spec(array={"items": [within][0]}))


def test_a_flood_of_faults_is_cut_and_counted() -> None:
    found = faults(spec(container=container("${item.a}"), array={"items": [0] * 5000}))
    assert len(found) == FAULT_LIMIT + 1
    assert found[-1] == "and 4900 more faults"
    assert capped([Fault("a", "b")] * 3) == [Fault("a", "b")]


def test_messages_carry_no_control_characters_and_stay_short() -> None:
    found = faults(spec(**{"\x1b[31m" + "k" * 500: 1}, container=container("${\x1b]0;" + "x" * 500 + "}")))
    assert all(text.isprintable() and len(text) < 500 for text in found)


@pytest.mark.parametrize(
    "item",
    [9007199254740991, -7, 1.5e-300, True, None, "\u00e9" * 9, '\u0001\n"', "\U0001f600", {"\u00e9": 1}, [[]]],
    ids=repr,
)
def test_size_is_counted_in_the_bytes_that_are_stored(item: Any) -> None:
    def stored(count: int) -> int:
        return len(json.dumps({"a": [item] * count}, separators=(",", ":"), ensure_ascii=False).encode())

    each = stored(2) - stored(1)
    just = (bounds.SIZE_LIMIT - 20) // (each + str(item).count("[") + str(item).count("{"))
    assert bounds.faults({"a": [item] * just}) == []
    assert bounds.faults({"a": [item] * (bounds.SIZE_LIMIT // each + 1)}) != []


def test_numbers_of_any_length_are_counted_and_not_written() -> None:
    assert bounds.faults({"a": 10**5000}) == []  # refused as a value
    assert bounds.faults({"a": 10**400_000}) != []
