"""What `make destroy` says before it begins, for the arguments that it was given."""

from __future__ import annotations

from pathlib import Path

import pytest

from stacks import stays, teardown

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.stacks


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert stays.main(arguments) == 0
    return capsys.readouterr().out.splitlines()


def test_by_default_one_stack_goes_and_the_bucket_stays(capsys: pytest.CaptureFixture[str]) -> None:
    stacks, bucket = said(capsys, "--context", "stage=main")
    assert stacks.startswith("This destroys argosy and nothing else.")
    assert "same ARGS as to make deploy" in stacks
    assert bucket.startswith("The results bucket STAYS")


def test_what_was_switched_on_by_c_is_read_as_the_cdk_reads_it(capsys: pytest.CaptureFixture[str]) -> None:
    given = [
        "--context=stage=dev",
        "-c",
        "images=true",
        "-c",
        "cells=us-east-1,eu-west-1",
        "-cresults=destroy",
        "--force",
    ]
    stacks, bucket = said(capsys, *given)
    assert stacks.startswith("This destroys argosy-dev, argosy-dev-eu-west-1, argosy-dev-images and")
    assert bucket.startswith("The results bucket is DELETED")


def test_faulty_arguments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert stays.main(["-c", "results=maybe"]) == 2
    assert "results" in capsys.readouterr().err


def test_make_hands_the_same_arguments_on() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\ndestroy:")[2].partition("\n\n")[0]
    first, second = recipe.splitlines()[1:]
    assert "-m stacks.stays" in first
    for line in (first, second):
        assert "stage=$(STAGE)" in line
        assert line.endswith("$(ARGS)")


def test_the_teardown_gives_up_before_cloudformation_does() -> None:
    assert teardown.LIMIT_S + 5 * 60 <= teardown.CLOUDFORMATION_S <= 3600
