"""An embedded AWS starts and ends completely; each test has one of its own."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import psutil
import pytest
import requests

from argosy.local.cloud import LocalAws
from argosy.local.options import LocalOptions
from argosy.loopback.server import MAX_CONNECTIONS
from tests.e2e.local_cloud import cloud

pytestmark = pytest.mark.e2e

READY = "print('ready'); time.sleep(3600)"
IGNORES_SIGTERM = f"import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{READY}"
LISTENS = f"import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n{READY}"


def test_more_tasks_than_processes_wait_as_pending_and_can_be_stopped_there(tmp_path: Path) -> None:
    with cloud(tmp_path, processes=1) as narrow:
        narrow.buy("c5.large")
        tool = narrow.define("tool")
        first = narrow.run(tool, LISTENS)
        narrow.reaches(first, "RUNNING")
        never = tmp_path / "never"
        second = narrow.run(tool, f"open({str(never)!r}, 'w').close()")
        third = narrow.run(tool, "pass")
        narrow.clients("ecs").stop_task(cluster=narrow.cluster, task=second)
        assert "exitCode" not in narrow.reaches(second, "STOPPED")["containers"][0]
        assert narrow.task(third)["lastStatus"] == "PENDING"
        narrow.clients("ecs").stop_task(cluster=narrow.cluster, task=first)
        assert narrow.reaches(third, "STOPPED")["containers"][0]["exitCode"] == 0
        assert not never.exists()  # it was before the third in the queue


def test_connections_of_users_leave_functions_and_tasks_theirs(tmp_path: Path) -> None:
    """The api's own calls were turned away with 503, and it answered 500."""
    with cloud(tmp_path) as full, ExitStack() as silent:
        port = int(full.aws.endpoint_url.rpartition(":")[2])
        for _ in range(MAX_CONNECTIONS):
            silent.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
        with pytest.raises((requests.ConnectionError, requests.HTTPError)):
            requests.get(f"{full.aws.endpoint_url}/argosy/health", timeout=60).raise_for_status()
        assert requests.get(f"{full.aws.inner_url}/argosy/health", timeout=60).ok


def test_closing_leaves_no_process_thread_or_folder(tmp_path: Path) -> None:
    threads = set(threading.enumerate())
    children = {child.pid for child in psutil.Process().children(recursive=True)}
    with cloud(tmp_path, is_alone=True, state_dir=None) as closing:
        closing.buy("c5.large")
        arn = closing.run(closing.define("tool"), IGNORES_SIGTERM)
        assert closing.says(arn, "ready")
        closing.clients("lambda").invoke(FunctionName="argosy-api", Payload=b"{}")
        folder = closing.aws.state_dir
        assert folder.is_dir()
    assert not folder.exists()
    assert set(threading.enumerate()) == threads
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= children


class NoForks:
    def start(self, *order: Any) -> NoReturn:
        raise OSError("no fork")


def test_a_start_that_fails_leaves_nothing_behind_and_can_be_repeated(tmp_path: Path) -> None:
    threads = set(threading.enumerate())
    with socket.create_server(("127.0.0.1", 0)) as other:
        failing = LocalAws(other.getsockname()[1], LocalOptions(images_root=tmp_path))
        with pytest.raises(OSError, match="in use"):
            failing.start()
        assert not failing.state_dir.exists()
        assert set(threading.enumerate()) == threads
    without: Any = NoForks()
    with pytest.raises(OSError, match="no fork"):
        LocalAws(0, LocalOptions(images_root=tmp_path), without).start()
    assert set(threading.enumerate()) == threads
    with cloud(tmp_path) as next_one:
        assert next_one.instances("attribute:ecs.os-type == linux") == []


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    with cloud(tmp_path) as made:
        made.aws.close()


def test_health_is_not_ok_while_there_are_no_functions_or_the_api_fails(tmp_path: Path) -> None:
    """A deployment is not healthy if a function cannot be loaded, or if its disk or store fails."""
    for handler in ("tests.fakes.lambda_handlers.no_such", "tests.fakes.lambda_handlers.unwell"):
        with cloud(tmp_path / handler, api_handler=handler) as ill:
            reply = requests.get(f"{ill.aws.endpoint_url}/argosy/health", timeout=30)
            assert (reply.status_code, reply.json()["status"]) == (503, "not ready")
            ill.aws.functions.clear()
            reply = requests.get(f"{ill.aws.endpoint_url}/argosy/health", timeout=30)
            assert (reply.status_code, reply.json()["message"]) == (503, "starting")


def test_a_task_for_which_the_disk_has_no_room_stops_with_that_reason(tmp_path: Path) -> None:
    """The agent's words when Docker finds none; the run shows them while it waits to try again."""
    with cloud(tmp_path, min_free_bytes=2**62) as full:
        full.buy("c5.large")
        stopped = full.reaches(full.run(full.define("tool"), "pass"), "STOPPED")
    assert stopped["containers"][0]["reason"].startswith(
        "CannotCreateContainerError: no space left on device: the disk"
    )
    assert "exitCode" not in stopped["containers"][0]
