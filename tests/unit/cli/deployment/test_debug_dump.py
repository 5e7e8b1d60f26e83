"""`debug-dump`: a file comes out whatever fails, and says what failed."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.cli import RUN_ID, World, api_error, refusal, run_view

NAMES = {
    "versions", "deployment", "settings", "doctor", "cluster", "instances", "queues", "environments", "runs", "events",
    "controller-log", "api-log",
}  # fmt: skip
NEED_NO_DEPLOYMENT = {"doctor", "controller-log", "api-log"}
OF_A_RUN = {"run", "run-spec", "run-explain", "run-tasks", "run-attempts", "run-events"}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def dumped(world: World, *words: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The documents by name, and the parts that were not read."""
    said = world.document("debug-dump", *words)
    with zipfile.ZipFile(said["file"]) as file:
        return {Path(name).stem: json.loads(file.read(name)) for name in file.namelist()}, said["notRead"]


def test_without_a_deployment_each_part_says_so(here: Path) -> None:
    world = World()
    world.parameters.denied = True
    parts, failed = dumped(world)
    assert {*parts} == NAMES
    assert "argosy" in parts["versions"]
    assert {*failed} == NAMES - {"versions"}
    assert all("AWS refused the call" in parts[name]["notRead"] for name in {*failed} - NEED_NO_DEPLOYMENT)
    assert [each.name for each in here.iterdir()] == ["argosy-dump-20261121-062733.zip"]


def test_what_cannot_be_read_stops_nothing_else() -> None:
    """A refusal, a denied right, an answer that is no answer, a fault of ours: the other parts are there."""
    world = World().answers("ListRuns", {"runs": [run_view()], "nextToken": None})
    world.answers("DescribeSharing", api_error(500, "InternalError", "request 123456789012 failed"))
    world.answers("DescribeCluster", refusal("AccessDeniedException", "no", "Invoke"))
    world.answers("ListInstances", {"unheard": "of"})
    parts, failed = dumped(world, RUN_ID)
    assert {*parts} == NAMES | OF_A_RUN
    assert "queues" in failed
    assert parts["queues"]["notRead"] == "request <account> failed"
    assert "AWS refused the call" in failed["cluster"]
    assert failed["instances"].startswith("KeyError")
    assert parts["runs"]["runs"][0]["runId"] == RUN_ID
    assert "runs" not in failed


def test_values_of_variables_are_taken_out_of_every_part() -> None:
    view = run_view(statusReason="could not log in with correct-horse in us-east-1")
    world = World().answers("DescribeRun", view).answers("ListRuns", {"runs": [view], "nextToken": None})
    listed = [{"name": "P", "value": "correct-horse"}, {"name": "R", "value": "us-east-1"}, {"name": "N", "value": "1"}]
    world.objects.put(f"{view['output']}spec.json", {"container": {"environment": listed}, "array": {"items": [1, 2]}})
    parts, _ = dumped(world, RUN_ID)
    assert parts["run-spec"]["array"] == {"items": "2 items"}
    assert parts["run-spec"]["container"]["environment"][0] == {"name": "P", "value": "<redacted>"}
    for name in ("run", "runs"):
        shown = parts[name]["runs"][0] if name == "runs" else parts[name]
        assert shown["statusReason"] == "could not log in with <redacted> in us-east-1"


def test_a_file_that_is_there_is_not_overwritten() -> None:
    world = World()
    dumped(world)
    again = world.argosy("debug-dump")
    assert again.exit_code == 2
    assert "argosy-dump-20261121-062733.zip cannot be written: File exists." in again.stderr
