"""A program that is interrupted by `argosy interrupt` resumes where it was, on another instance."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import argosy
from tests.fakes.commands import outcome_of
from tests.fakes.local_mode import local_aws
from tests.fakes.waiting import until
from tests.readmes import local_options

pytestmark = pytest.mark.e2e

LATER = 600  # the step at which the first attempt waits for its interruption


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with local_aws(local_options()) as aws:
        yield aws.endpoint_url


def said(endpoint: str, folder: Path, *words: str) -> str:
    done = outcome_of(["argosy", *words], folder, ARGOSY_ENDPOINT_URL=endpoint)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def test_an_interrupted_task_resumes_from_its_checkpoint_on_another_instance(endpoint: str, tmp_path: Path) -> None:
    """The program is that of the example, which here waits where it stops itself there."""
    waits = tmp_path / "waits"
    example = Path(__file__).parents[2] / "docs" / "examples" / "checkpoint.py"
    program = example.read_text().replace("os.kill(os.getpid()", f"open({str(waits)!r}, 'w'), signal.pause()")
    program = program.replace("signal.pause(), signal.SIGTERM)", "signal.pause()")
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "program.py").write_text(program)
    spec: dict[str, Any] = {
        "version": 1, "name": "resume", "run": ["python", "program.py"], "workdir": str(folder), "result": "stdout",
        "array": {"size": 1}, "checkpoint": {},
    }  # fmt: skip
    run = argosy.Client(endpoint_url=endpoint).submit(spec)
    until(waits.exists)
    told = json.loads(said(endpoint, tmp_path, "interrupt", run.id, "--task", "0", "--warn", "60", "--json"))
    assert told["tasks"] == [0]
    [row] = run.wait(timeout=120).rows()
    assert row == {"step": 1000, "sum": 499_500, "resumed": LATER}
    first, second = run.attempts()
    assert (first["outcome"], second["outcome"]) == ("interrupted", "succeeded")
    assert first["instance"] == told["instance"] != second["instance"]


def test_a_run_without_a_running_task_is_not_interrupted(endpoint: str, tmp_path: Path) -> None:
    spec = {"version": 1, "name": "over", "run": ["true"], "result": "none", "array": {"size": 1}}
    run = argosy.Client(endpoint_url=endpoint).submit(spec)
    run.wait(timeout=120)
    done = outcome_of(["argosy", "interrupt", run.id], tmp_path, ARGOSY_ENDPOINT_URL=endpoint)
    assert done.returncode != 0
    assert "No task of the run is running." in done.stderr
