"""A command and variables that are too long for ECS are read from an object."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.runners import PART, RUN, RunnerUnderTest

pytestmark = pytest.mark.slow
ARGUMENT_BYTES = 128 * 1024 - 1  # Linux's limit, without the byte that ends it


def with_document(runner: RunnerUnderTest, document: Any) -> dict[str, str | None]:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return {"ARGOSY_OVERRIDES": runner.s3.put(f"{RUN}overrides/0000007/2.json", body)}


def test_the_program_gets_the_words_variables_and_inputs_of_the_document(runner: RunnerUnderTest) -> None:
    item = "é;'$(id)\n" + "x" * (ARGUMENT_BYTES - 10)
    inputs = json.dumps([runner.s3.put("data/a.txt", b"A")])
    script = 'printf %s "$1" | wc -c; echo "$OWN"; cat "$ARGOSY_IN/a.txt"'
    document = {
        "command": ["sh", "-c", script, "argosy", item],
        "environment": {"OWN": "own", "ARGOSY_INPUTS": inputs},
    }
    ended = runner.run("argosy:overrides", changes=with_document(runner, document), result="stdout")
    assert (ended.code, ended.err) == (0, b"")
    assert ended.out.split() == [str(ARGUMENT_BYTES).encode(), b"own", b"A"]
    assert runner.s3.body(PART) == ended.out


@pytest.mark.parametrize("document", [b"{", [], {"command": ["true"]}, {"command": "true", "environment": {"A": 1}}])
def test_a_document_of_another_form_is_a_wrong_request(runner: RunnerUnderTest, document: Any) -> None:
    ended = runner.run("argosy:overrides", changes=with_document(runner, document), result="none")
    assert ended.code == 64
    assert "the command s3://results/run/overrides/0000007/2.json cannot be read" in ended.sentence


def test_a_document_that_is_missing_ends_the_task(runner: RunnerUnderTest) -> None:
    ended = runner.run("true", changes={"ARGOSY_OVERRIDES": "s3://results/none.json"}, result="none")
    assert (ended.code, "s3://results/none.json" in ended.sentence) == (64, True)
