"""A function that fails in local mode is seen: one line, and a log that outlives the process."""

from __future__ import annotations

import shutil

import pytest

from argosy.local.cloud import LocalAws


def test_an_error_is_one_line_with_the_path_of_the_log_which_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    aws = LocalAws()
    folder = aws.make_state_dir()
    log = folder / "argosy-controller.log"
    log.write_text("Traceback")
    aws.function_failed("argosy-controller failed: ValueError: as asked", log)
    aws.close()
    told = capsys.readouterr().err
    assert told == f"embedded AWS: argosy-controller failed: ValueError: as asked (its log: {log})\n"
    assert log.read_text() == "Traceback"
    shutil.rmtree(folder)


def test_without_an_error_nothing_is_left_behind() -> None:
    aws = LocalAws()
    folder = aws.make_state_dir()
    aws.close()
    assert not folder.exists()
