"""A local mode that is killed, and started again on the same state: nothing is lost, and nothing is left running."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from argosy.local.clients import LocalClients
from argosy.local.forks import Fork
from tests.fakes.local_mode import forks
from tests.fakes.signing import KEY
from tests.fakes.waiting import is_gone, until

pytestmark = pytest.mark.e2e

PATIENCE_S = 120.0  # of a busy machine
# Waits until the test lets it go; says its process's id in its log.
WAITS = 'echo pid $$; while [ ! -e "$GO" ]; do sleep 0.05; done'


class Serving:
    """A local mode in a separate process, and a user of it."""

    def __init__(self, process: Fork, endpoint: str) -> None:
        self.process = process
        self.clients = LocalClients(endpoint, "us-east-1", KEY)

    def ask(self, action: str, **request: Any) -> dict[str, Any]:
        payload = json.dumps({"action": action, **request}).encode()
        reply = self.clients("lambda").invoke(FunctionName="argosy-api", Payload=payload)
        answer = json.loads(reply["Payload"].read())
        assert answer["statusCode"] == 200, answer
        return dict(answer["body"])

    def logs(self) -> list[str]:
        found = self.clients("logs").filter_log_events(logGroupName="/ecs/argosy/tasks")
        return [event["message"] for event in found["events"]]

    def pids(self, count: int) -> list[int]:
        """A run of that many waiting tasks."""

        def said() -> list[int] | None:
            pids = [int(line.split()[1]) for line in self.logs() if line.startswith("pid ")]
            return pids if len(pids) >= count else None

        return until(said, PATIENCE_S)


@contextmanager
def serving(folder: Path) -> Iterator[Serving]:
    (folder / "containers" / "tool").mkdir(parents=True, exist_ok=True)
    (folder / "containers" / "tool" / "Dockerfile").write_text('FROM scratch\nENTRYPOINT ["sh", "-c"]\n')
    process = forks().start("tests.fakes.imported.local_mode", [str(folder)], dict(os.environ))
    with process.stdin, process.stdout, process.stderr:
        made = Serving(process, process.stdout.readline().decode().strip())
        try:
            yield made
        finally:
            made.clients.close()
            if process.poll() is None:
                os.kill(process.pid, signal.SIGTERM)
            process.wait(PATIENCE_S)


def spec(go: Path) -> dict[str, Any]:
    container = {"image": "argosy/tool", "command": [WAITS], "environment": [{"name": "GO", "value": str(go)}]}
    resources = {"vcpus": 1, "memory": 64}
    return {"version": 1, "name": "kept", "container": container, "resources": resources, "array": {"size": 2}}


def test_runs_results_and_logs_outlive_a_kill_and_what_ran_is_tried_again(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with serving(tmp_path) as first:
        run_id = first.ask("SubmitRun", clientToken="kept", spec=spec(go))["runId"]
        pids = first.pids(2)
        # A controller killed before it stored a launch's outcome starts it again, as the same attempt.
        until(lambda: first.ask("DescribeRun", runId=run_id)["tasks"]["running"] == 2, PATIENCE_S)
        first.clients("s3").put_object(Bucket="argosy-results", Key="mine", Body=b"x" * 50_000)
        first.process.kill()
        first.process.wait(PATIENCE_S)
    for pid in pids:
        until(partial(is_gone, pid))
    with serving(tmp_path) as second:
        assert second.clients("s3").get_object(Bucket="argosy-results", Key="mine")["Body"].read() == b"x" * 50_000
        assert len(second.pids(4)) == 4  # two of before, and the same tasks once more
        go.touch()
        until(lambda: second.ask("DescribeRun", runId=run_id)["status"] == "SUCCEEDED", PATIENCE_S)
        ended = second.ask("DescribeRun", runId=run_id)
        assert (ended["tasks"]["succeeded"], ended["attempts"], ended["interruptions"]) == (2, 4, 2)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL], ids=lambda each: each.name)
def test_no_program_is_left_when_local_mode_ends(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as local:
        local.ask("SubmitRun", clientToken="kept", spec=spec(tmp_path / "never"))
        pids = local.pids(2)
        os.kill(local.process.pid, number)
        local.process.wait(PATIENCE_S)
    for pid in pids:
        until(partial(is_gone, pid))
