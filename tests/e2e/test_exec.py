"""`argosy exec` in local mode: a terminal in a running task, for its owner only."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest
import requests

from tests.e2e.cluster import Cluster, cluster
from tests.fakes.commands import outcome_of
from tests.fakes.signing import signed

pytestmark = pytest.mark.e2e

# A program of the user's own that waits in the middle of its work.
WAITS = 'echo half > "$ARGOSY_OUT/part.txt"; exec sleep 600'


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("local")) as running:
        yield running


@pytest.fixture(scope="module")
def run_id(local: Cluster) -> Iterator[str]:
    """A run of two tasks, one of which runs and the other waits for it."""
    one = {"placement": {"maxConcurrentTasks": 1}, "container": {"environment": {"MODEL": "small"}}}
    spec = {"version": 1, "name": "waits", "run": WAITS, "array": {"size": 2}, **one}
    made = str(local.ask("SubmitRun", spec={**spec, "resources": {"vcpus": 1, "memory": 256}})["runId"])
    local.until(lambda: is_in_the_middle(local, made))
    yield made
    local.ask("CancelRun", runId=made)


def is_in_the_middle(local: Cluster, run_id: str) -> bool:
    return exec_(local, run_id, "0", "sh", "-c", 'cat "$ARGOSY_OUT/part.txt"').stdout == "half\n"


def exec_(local: Cluster, *words: str) -> subprocess.CompletedProcess[str]:
    return outcome_of(["argosy", "exec", *words[:2], "--", *words[2:]], ARGOSY_ENDPOINT_URL=local.aws.endpoint_url)


def test_a_command_runs_where_the_program_runs_and_ends_with_its_code(local: Cluster, run_id: str) -> None:
    script = 'echo "$MODEL $ARGOSY_TASK_INDEX"; ls "$ARGOSY_OUT"; echo aside >&2; exit 7'
    done = exec_(local, "last", "0", "sh", "-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (7, "small 0\npart.txt\n", "aside\n")


def test_standard_input_reaches_the_command(local: Cluster, run_id: str) -> None:
    command = ["argosy", "exec", run_id, "0", "--endpoint-url", local.aws.endpoint_url]
    done = outcome_of(command, said="cd /; pwd; exit 4\n")
    assert (done.returncode, done.stdout) == (4, "/\n")


def test_a_terminal_gets_a_shell_of_its_own(local: Cluster, run_id: str) -> None:
    ours, theirs = pty.openpty()
    start = [sys.executable, "-c", "from argosy.cli.main import main; main()"]
    command = [*start, "exec", run_id, "0", "--endpoint-url", local.aws.endpoint_url]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as shell:
        os.close(theirs)
        os.write(ours, b'test -t 0 && echo "is a $((40 + 2)) terminal"; exit 3\n')
        said = b""
        with suppress(OSError):  # that is how Linux says that the other end is closed
            while piece := os.read(ours, 1024):
                said += piece
        assert shell.wait(60) == 3, said
    os.close(ours)
    assert b"is a 42 terminal" in said


def test_a_task_that_waits_and_a_run_that_has_ended_are_refused(local: Cluster, run_id: str) -> None:
    waits = exec_(local, run_id, "1", "true")
    assert (waits.returncode, waits.stderr.splitlines()[0]) == (2, "error: Task 1 is waiting: it has not started yet.")
    assert f"next: argosy explain {run_id} --task 1" in waits.stderr
    ended = local.submit(["exit0", "-"], 1)
    local.finished(ended)
    refused = exec_(local, ended, "0", "true")
    assert refused.returncode == 2
    assert "is no longer running" in refused.stderr
    assert "There is no task 5" in exec_(local, run_id, "5", "true").stderr


@pytest.mark.parametrize("stranger", [{"Origin": "http://evil.example"}, {"Host": "evil.example"}, {}])
def test_no_web_page_learns_how_to_get_into_a_task(local: Cluster, run_id: str, stranger: dict[str, str]) -> None:
    """The last one does not claim a signature, which a page's simple request cannot have."""
    target = {"X-Amz-Target": "AmazonEC2ContainerServiceV20141113.ExecuteCommand"}
    endpoint = local.aws.endpoint_url
    signature = signed("POST", endpoint, "ecs", b"{}", target) if stranger else {}
    answer = requests.post(endpoint, headers={**target, **signature, **stranger}, data=b"{}", timeout=300)
    assert answer.status_code == 403
