"""Two programs on two instances exchange data, one instance is taken away, and both go on from their checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import argosy
from tests.fakes.commands import outcome_of
from tests.fakes.local_mode import local_aws
from tests.fakes.waiting import until
from tests.readmes import local_options

pytestmark = pytest.mark.e2e

PROGRAM = Path(__file__).parents[2] / "docs" / "examples" / "all_reduce.py"
WAITS_AT = 6  # the step before which rank 0 waits for the interruption, in the first attempt


def test_a_gang_of_two_restarts_as_one_from_its_checkpoint(tmp_path: Path) -> None:
    waits, folder = tmp_path / "waits", tmp_path / "program"
    folder.mkdir()
    (folder / "all_reduce.py").write_text(PROGRAM.read_text())
    spec: dict[str, Any] = {
        "version": 1, "name": "reduce", "run": ["python", "all_reduce.py", str(waits)], "workdir": str(folder),
        "result": "stdout", "array": {"size": 1}, "gang": {"size": 2}, "checkpoint": {},
    }  # fmt: skip
    with local_aws(local_options()) as aws:
        run = argosy.Client(endpoint_url=aws.endpoint_url).submit(spec)
        until(waits.exists)
        words = ["argosy", "interrupt", run.id, "--task", "1", "--warn", "60", "--json"]
        told = outcome_of(words, tmp_path, ARGOSY_ENDPOINT_URL=aws.endpoint_url)
        assert told.returncode == 0, told.stderr
        [row] = run.wait(timeout=120).rows()
        attempts = run.attempts()
    assert row == {"steps": 10, "sum": 10 * (1 + 2), "resumed": WAITS_AT, "attempt": 2}
    by_task = {(each["index"], each["attempt"]): each for each in attempts}
    assert by_task.keys() == {(0, 1), (1, 1), (0, 2), (1, 2)}
    assert by_task[1, 1]["instance"] == json.loads(told.stdout)["instance"] != by_task[1, 2]["instance"]
    assert by_task[0, 1]["instance"] == by_task[0, 2]["instance"], "the survivor's instance was kept"
    assert by_task[0, 2]["instance"] != by_task[1, 2]["instance"]
