"""A task's reports come in order, and its end only when its log is complete."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.local.agents.execution import TaskExecution, TaskReport
from argosy.local.agents.log_shipper import LogRefusedError, LogShipper
from argosy.local.containers.container import HostSettings
from argosy.local.containers.images import ImageStore
from argosy.local.gpus import Gpu
from argosy.local.mps import MpsDaemon
from tests.fakes.mps import install_mps

WAITED_S = 0.5  # long enough for a report that must not come


class SlowLogs:
    """A log store that keeps every batch waiting until it is let through."""

    def __init__(self) -> None:
        self.let_through = threading.Event()
        self.groups = {"g"}

    def open(self, group: str, stream: str) -> None:
        if group not in self.groups:
            raise LogRefusedError(f"the log group {group} does not exist")

    def put(self, group: str, stream: str, entries: list[dict[str, Any]]) -> None:
        assert self.let_through.wait(30)


@pytest.fixture
def logs() -> SlowLogs:
    return SlowLogs()


@pytest.fixture
def shipper(logs: SlowLogs) -> Iterator[LogShipper]:
    made = LogShipper(logs, print)
    yield made
    logs.let_through.set()
    made.close()


@pytest.fixture
def images(tmp_path: Path) -> ImageStore:
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "Dockerfile").write_text('FROM x\nENTRYPOINT ["echo", "hello"]')
    return ImageStore(tmp_path)


DEFINITION = {
    "containerDefinitions": [
        {
            "name": "main",
            "image": "argosy/tool",
            "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "g"}},
        }
    ]
}
TASK = {"taskArn": "arn:task/1", "containers": [], "overrides": {}}


def test_stopped_is_reported_only_when_the_log_is_complete(
    images: ImageStore, shipper: LogShipper, logs: SlowLogs
) -> None:
    reports: queue.Queue[TaskReport] = queue.Queue()
    execution = TaskExecution(TASK, DEFINITION, reports.put)
    execution.start(images, shipper, HostSettings({"PATH": "/bin:/usr/bin"}, ()))
    assert reports.get(timeout=30).status == "RUNNING"
    with pytest.raises(queue.Empty):
        reports.get(timeout=WAITED_S)
    logs.let_through.set()
    stopped = reports.get(timeout=30)
    assert (stopped.status, stopped.containers) == (
        "STOPPED",
        [{"containerName": "main", "status": "STOPPED", "exitCode": 0}],
    )
    execution.join(120)


def test_the_time_of_a_pull_is_reported_with_running(images: ImageStore, shipper: LogShipper, logs: SlowLogs) -> None:
    logs.let_through.set()
    reports: queue.Queue[TaskReport] = queue.Queue()
    execution = TaskExecution(TASK, DEFINITION, reports.put)
    before = time.time()
    execution.pull(images)
    execution.start(images, shipper, HostSettings({"PATH": "/bin:/usr/bin"}, ()))
    pulled = reports.get(timeout=30).pulled
    assert pulled is not None
    assert before <= pulled[0] <= pulled[1] <= time.time()
    execution.join(120)


def test_a_pull_that_fails_is_reported_by_the_start(images: ImageStore, shipper: LogShipper) -> None:
    reports: queue.Queue[TaskReport] = queue.Queue()
    other = {"containerDefinitions": [{**DEFINITION["containerDefinitions"][0], "image": "argosy/none"}]}
    execution = TaskExecution(TASK, other, reports.put)
    execution.pull(images)
    execution.start(images, shipper, HostSettings({"PATH": "/bin:/usr/bin"}, ()))
    assert str(reports.get(timeout=30).reason).startswith("CannotPullContainerError")


def test_a_log_group_that_does_not_exist_is_the_reason_and_nothing_is_started(
    images: ImageStore, shipper: LogShipper, logs: SlowLogs
) -> None:
    logs.groups.clear()
    reports: queue.Queue[TaskReport] = queue.Queue()
    TaskExecution(TASK, DEFINITION, reports.put).start(images, shipper, HostSettings({"PATH": "/bin:/usr/bin"}, ()))
    stopped = reports.get_nowait()
    said = "ResourceInitializationError: failed to validate logger args: the log group g does not exist"
    assert (stopped.status, stopped.reason, reports.empty()) == ("STOPPED", said, True)


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MpsDaemon:
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    install_mps(tmp_path)
    return MpsDaemon(Gpu("GPU-a", "0", "NVIDIA H200", 143_771), tmp_path / "mps")


SHARING = {"name": "main", "gpuIds": ["GPU-a"], "gpuSharingStrategy": {"nvidiaMps": {"memory": 10}}}


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (
            'rm "$CUDA_MPS_PIPE_DIRECTORY/control"; exit 1',
            {"reason": "the MPS daemon of GPU-a, which the task shared, has ended"},
        ),
        ("exit 1", {"exitCode": 1}),
        ('rm "$CUDA_MPS_PIPE_DIRECTORY/control"; exit 0', {"exitCode": 0}),
    ],
)
def test_a_failure_after_the_end_of_the_mps_daemon_has_no_exit_code_and_so_counts_as_a_loss(
    images: ImageStore, shipper: LogShipper, logs: SlowLogs, daemon: MpsDaemon, program: str, told: dict[str, Any]
) -> None:
    (images.root / "tool" / "Dockerfile").write_text(f"FROM x\nENTRYPOINT {json.dumps(['sh', '-c', program])}")
    logs.let_through.set()
    reports: queue.Queue[TaskReport] = queue.Queue()
    execution = TaskExecution({**TASK, "containers": [SHARING]}, DEFINITION, reports.put)
    execution.start(images, shipper, HostSettings({"PATH": "/bin:/usr/bin"}, ("GPU-a",), daemons={"GPU-a": daemon}))
    execution.join(120)
    assert reports.get(timeout=30).status == "RUNNING"
    assert reports.get(timeout=30).containers == [{"containerName": "main", "status": "STOPPED", **told}]


def test_a_daemon_that_does_not_start_is_the_reason_and_nothing_is_started(
    images: ImageStore, shipper: LogShipper, daemon: MpsDaemon, tmp_path: Path
) -> None:
    install_mps(tmp_path, "exit 3")
    reports: queue.Queue[TaskReport] = queue.Queue()
    execution = TaskExecution({**TASK, "containers": [SHARING]}, DEFINITION, reports.put)
    execution.start(images, shipper, HostSettings({}, ("GPU-a",), daemons={"GPU-a": daemon}))
    said = (
        "ResourceInitializationError: the MPS daemon of GPU-a cannot be started: nvidia-cuda-mps-control ended with 3"
    )
    assert reports.get_nowait().reason == said


def test_a_program_that_ends_at_once_is_running_before_it_is_stopped(
    images: ImageStore, shipper: LogShipper, logs: SlowLogs
) -> None:
    told: list[str] = []
    stopped = threading.Event()
    logs.let_through.set()

    def report(said: TaskReport) -> None:
        if said.status == "STOPPED":
            stopped.set()
        else:
            assert not stopped.wait(WAITED_S)  # the report of RUNNING takes time
        told.append(said.status)

    execution = TaskExecution(TASK, DEFINITION, report)
    execution.start(images, shipper, HostSettings({"PATH": "/bin:/usr/bin"}, ()))
    execution.join(120)
    assert told == ["RUNNING", "STOPPED"]


def test_a_task_whose_host_is_gone_reports_nothing_more(
    images: ImageStore, shipper: LogShipper, logs: SlowLogs
) -> None:
    reports: queue.Queue[TaskReport] = queue.Queue()
    execution = TaskExecution(TASK, {"containerDefinitions": [{"name": "main", "image": "argosy/tool"}]}, reports.put)
    (images.root / "tool" / "Dockerfile").write_text('FROM x\nENTRYPOINT ["sleep", "3600"]')
    execution.start(images, shipper, HostSettings({"PATH": "/bin:/usr/bin"}, ()))
    assert reports.get(timeout=30).status == "RUNNING"
    execution.kill()
    execution.join(120)
    assert reports.empty()


def test_a_report_that_fails_holds_up_no_end(images: ImageStore, shipper: LogShipper, logs: SlowLogs) -> None:
    reports: queue.Queue[TaskReport] = queue.Queue()

    def report(said: TaskReport) -> None:
        reports.put(said)
        if said.status == "RUNNING":
            raise ConnectionError("nobody listens")

    logs.let_through.set()
    execution = TaskExecution(TASK, DEFINITION, report)
    with pytest.raises(ConnectionError):
        execution.start(images, shipper, HostSettings({"PATH": "/bin:/usr/bin"}, ()))
    assert [reports.get(timeout=30).status, reports.get(timeout=30).status] == ["RUNNING", "STOPPED"]
