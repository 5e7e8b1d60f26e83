"""What `make destroy` prints before it begins, for its arguments."""

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
    assert "same ARGS as for `make deploy`" in stacks
    assert bucket.startswith("The results bucket and its contents are KEPT")


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
    assert bucket.startswith("The results bucket and its contents are DELETED")


def test_faulty_arguments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert stays.main(["-c", "results=maybe"]) == 2
    assert "results" in capsys.readouterr().err


def test_the_stack_of_one_further_cell_is_named_for_the_stage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    both = ("-c", "cells=us-east-1,eu-west-1")
    assert said(capsys, "--cell", "eu-west-1", *both) == ["argosy-eu-west-1"]
    assert said(capsys, "--cell", "eu-west-1", "-c", "stage=dev", *both) == ["argosy-dev-eu-west-1"]


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("us-east-1", "us-east-1 is home: make destroy takes down the whole deployment"),
        ("eu-west-1", 'ARGS="-c cells=us-east-1,eu-west-1"'),
        ("", "not a further cell of these settings (they name: none)"),
    ],
)
def test_home_and_cells_that_the_settings_do_not_name_are_refused(
    cell: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stays.main(["--cell", cell]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("target", ["destroy", "destroy-cell"])
def test_make_hands_the_same_arguments_on(target: str) -> None:
    recipe = (ROOT / "Makefile").read_text().partition(f"\n{target}:")[2].partition("\n\n")[0]
    first, second = recipe.splitlines()[1:]
    assert "-m stacks.stays" in first
    for line in (first, second):
        assert "stage=$(STAGE)" in line
        assert "-c engine=any" in line
        assert line.removesuffix(") && \\").endswith("$(ARGS)")


def test_the_teardown_gives_up_before_cloudformation_does() -> None:
    assert teardown.LIMIT_S + 5 * 60 <= teardown.CLOUDFORMATION_S <= 3600
