"""Services in local mode, with real processes: every command of docs/guides/services.md, and tasks that die."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.typed_pages import embedded, typed

pytestmark = pytest.mark.e2e
MARK = "100417"  # seconds that no other program sleeps


@pytest.fixture(scope="module")
def local() -> Iterator[Cluster]:
    with embedded() as found:
        yield found


@pytest.mark.pages
def test_every_command_of_the_page_works_as_it_is_typed(local: Cluster, tmp_path: Path) -> None:
    said = typed(local, "services.md", tmp_path, "serving")
    for told in (
        "web.yaml is valid: web, a service: 3 tasks",
        "deployment 1 to revision 1: COMPLETED",
        "deployment 2 to revision 2: COMPLETED",
        "deployment 3 to revision 3: FAILED: 3 of its tasks failed before one more became healthy",
        "deployment 4 to revision 2 (the roll-back): COMPLETED",
        "as expected",
        "looking at it",
        "serving the second version",
    ):
        assert told in said
    local.until(lambda: not local.ask("ListEnvironments")["environments"])


def programs() -> list[psutil.Process]:
    """Of the service's tasks."""
    return [each for each in psutil.Process().children(recursive=True) if _is_program(each)]


def _is_program(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.cmdline()[:2] == ["sleep", MARK]
    except (psutil.ZombieProcess, psutil.NoSuchProcess):  # it has just ended
        return False


def test_a_task_that_is_killed_comes_back_and_a_deleted_service_leaves_no_process(local: Cluster) -> None:
    spec: dict[str, Any] = {
        "version": 1,
        "kind": "service",
        "name": "kept",
        "run": f"exec sleep {MARK}",
        "result": "none",
        "resources": {"vcpus": 0.5, "memory": 128},
        "service": {"desired": 2, "update": {"healthySeconds": 1}},
    }
    local.ask("CreateEnvironment", spec=spec)
    local.ask("StartDeployment", name="kept", clientToken="once")

    def view() -> dict[str, Any]:
        return local.ask("DescribeEnvironment", name="kept")

    local.until(lambda: view()["status"] == "COMPLETED" and len(programs()) == 2)
    killed = programs()[0]
    killed.kill()
    local.until(lambda: len(programs()) == 2 and killed.pid not in {each.pid for each in programs()})
    (run,) = [each["runId"] for each in view()["revisions"]]
    local.until(lambda: local.ask("DescribeRun", runId=run)["attempts"] == 3 and view()["healthy"] == 2)
    assert len(view()["deployments"]) == 1
    local.ask("DeleteEnvironment", name="kept")
    local.until(lambda: not programs() and not local.ask("ListEnvironments")["environments"])
    assert local.finished(run)["status"] == "CANCELLED"
