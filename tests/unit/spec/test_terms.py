"""The terms of a run: read from its spec, stored, and read from the form of earlier versions."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from argosy.model.run_terms import TERMS, RunTerms
from argosy.model.stored.documents import SPEC, decode, encode
from argosy.spec.earlier_versions import current
from argosy.spec.models import RunSpec
from argosy.spec.parse import parse_spec, to_json
from argosy.spec.terms import terms_of, terms_of_form
from tests.fakes.specs import GOOD, spec


@pytest.mark.parametrize("given", GOOD)
def test_terms_come_back_as_they_were_stored_and_the_stored_form_has_the_same(given: dict[str, Any]) -> None:
    found = parse_spec(spec(**given))
    terms = terms_of(found)
    assert RunTerms.from_dict(json.loads(json.dumps(terms.to_dict()))) == terms
    assert terms_of_form(json.loads(json.dumps(to_json(found)))) == terms


def test_terms_of_another_version_are_read_from_the_spec_again() -> None:
    form = to_json(parse_spec(spec()))
    stored = terms_of_form(form).to_dict()
    fewer = {name: value for name, value in stored.items() if name != "queue"}
    before_shares = {name: value for name, value in stored.items() if not name.startswith(("gpu_share", "gpu_comp"))}
    assert (stored["gpu_share_mib"], stored["gpu_compute_percent"]) == (0, 0)
    for terms in ({}, {TERMS: fewer}, {TERMS: before_shares}, {TERMS: {**stored, "purchase": "?"}}):
        assert decode(current(SPEC, encode({**form, **terms}))) == {**form, TERMS: json.loads(json.dumps(stored))}
    whole = encode({**form, TERMS: stored})
    assert current(SPEC, whole) == whole


def test_a_spec_that_results_of_other_runs_were_put_into_may_be_longer_than_a_user_may_write() -> None:
    data = spec(container=None, run=["x"], dependsOn=[{"run": "a"}], inputs=["s3://bucket/a"])
    form = {**to_json(parse_spec(data)), "inputs": ["s3://bucket/" + "a" * 2_000]}
    assert TERMS in decode(current(SPEC, encode(form)))


def test_what_is_damaged_is_left_to_its_reader() -> None:
    for body in (b"x", encode({"version": 1}), encode([1])):
        assert current(SPEC, body) == body


def test_no_field_of_a_spec_has_the_name_of_a_stored_companion() -> None:
    assert TERMS not in RunSpec.model_fields
    assert all(field.default is field.default_factory for field in fields(RunTerms))  # both are MISSING
