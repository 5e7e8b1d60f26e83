"""Does the published schema match the parser?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from argosy.spec.faults import path_text
from argosy.spec.parse import schema
from tests.fakes.specs import GOOD, ROOT, container, spec


def test_paths_quote_names_that_are_not_plain() -> None:
    assert path_text(("tags", "a b", "x", 3)) == 'tags["a b"].x[3]'
    assert path_text((0, "a")) == "[0].a"


def test_every_field_of_the_schema_is_described_and_nothing_else_is_allowed() -> None:
    document = schema()
    assert document["additionalProperties"] is False
    assert document["required"] == ["version", "name"]
    for name, part in [("RunSpec", document), *document["$defs"].items()]:
        assert part["additionalProperties"] is False, name
        for field, body in part["properties"].items():
            assert body.get("description"), f"{name}.{field}"
            assert "null" not in json.dumps(body), f"{name}.{field}"


def test_the_published_schema_is_that_of_the_parser() -> None:
    published = ROOT / "docs/reference/run.schema.json"
    assert json.loads(published.read_text()) == schema(), (
        "write it again: .venv/bin/argosy schema > docs/reference/run.schema.json"
    )


def test_what_the_schema_refuses_the_parser_refuses() -> None:
    """Spot checks with the validator that editors' extensions resemble; the schema says less than the parser."""
    jsonschema = pytest.importorskip("jsonschema")
    check = jsonschema.Draft202012Validator(schema())
    assert check.is_valid(spec())
    assert check.is_valid(spec(container=container(environment=[{"name": "A", "value": "b"}])))
    for fields in GOOD:
        assert check.is_valid(spec(**fields)), fields
    bad: list[Mapping[str, Any]] = [{"outptu": 1}, {"name": "X"}, {"array": {"size": 0}}, {"resources": {"gpus": "1"}}]
    assert not any(check.is_valid(spec(**fields)) for fields in bad)
