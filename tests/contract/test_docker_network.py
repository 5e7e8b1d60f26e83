"""The separation of Docker's containers from this machine, as far as a fake and Docker's own command can show it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from argosy.local.containers.docker_network import APART
from argosy.local.containers.engine import EngineRuntime
from argosy.local.containers.engine_run import ContainerEngine, ContainerPort, label, run_arguments
from argosy.local.containers.process import Exit, Isolation, Program
from tests.container_engines import asking, calls, leave_a_container, start


@pytest.fixture
def behind(fake: Path, images: Path, door: ContainerPort) -> Iterator[EngineRuntime]:
    """A runtime under the fake Docker."""
    runtime = EngineRuntime("docker", images, door=door)
    yield runtime
    runtime.close()


def test_dockers_containers_share_a_network_of_local_mode_and_have_the_same_bounds_as_podmans(
    behind: EngineRuntime, fake: Path, door: ContainerPort
) -> None:
    for _ in range(2):
        assert start(behind, "exit 0").end() == Exit(0)
    name = f"argosy-{door.port}"
    create = ["create", "--driver", "bridge", "--opt", "com.docker.network.bridge.enable_icc=false", name]
    assert [words for words in calls(fake, "network") if words[0] == "create"] == [create]
    words = calls(fake, "run")[0]
    assert words[words.index("--network") + 1] == name
    assert words[words.index("--pids-limit") + 1] == "2048"
    assert words[words.index("--security-opt") + 1] == "no-new-privileges"
    assert {"--cap-drop=NET_RAW", "--cap-drop=SETUID", "--cap-drop=MKNOD", "--init"} <= set(words)
    behind.close()
    assert list((fake / "networks").iterdir()) == []


@pytest.mark.usefixtures("busybox")
def test_under_docker_the_endpoint_is_at_the_bridges_address(behind: EngineRuntime, door: ContainerPort) -> None:
    told = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{door.port}", "no_proxy": "127.0.0.1", "MINE": "127.0.0.1"}
    before = set(threading.enumerate())
    asked = asking(door.port).replace("127.0.0.1", "127.0.0.2")
    started = start(behind, f"echo $AWS_ENDPOINT_URL $no_proxy $MINE; {asked}", told)
    assert started.line() == f"http://127.0.0.2:{door.port} 127.0.0.2 127.0.0.1"
    assert started.line().startswith("HTTP/1.1 204")
    assert started.end() == Exit(0)
    behind.close()
    assert {each for each in set(threading.enumerate()) - before if "process_request" not in each.name} == set()


def test_under_docker_connections_from_another_network_are_closed(
    behind: EngineRuntime, fake: Path, door: ContainerPort
) -> None:
    (fake / "addresses").write_text("fd00::1 fd00::/64 127.0.0.2 127.0.0.4/30")
    assert start(behind, "exit 0").end() == Exit(0)
    with socket.create_connection(("127.0.0.2", door.port), timeout=60) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        with suppress(ConnectionResetError):
            assert stranger.recv(1) == b""
    with socket.create_connection(("127.0.0.2", door.port), timeout=60, source_address=("127.0.0.5", 0)) as known:
        known.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert known.recv(12) == b"HTTP/1.1 204"


@pytest.mark.parametrize(
    ("addresses", "why"),
    [
        ("192.0.2.1 192.0.2.0/24", "not on this machine .*: use podman"),
        ("fd00::1 fd00::/64", "no IPv4 gateway"),
        ("127.0.0.2 127.0.0.2/8", "no IPv4 subnet: .* has host bits set"),
    ],
)
def test_a_docker_whose_bridge_is_on_another_machine_starts_nothing_and_says_so(
    behind: EngineRuntime, fake: Path, addresses: str, why: str
) -> None:
    """Docker Desktop's is in a virtual machine. 192.0.2.0/24 is unassigned (RFC 5737)."""
    (fake / "addresses").write_text(addresses)
    with pytest.raises(OSError, match=why):
        start(behind, "exit 0")
    assert list((fake / "networks").iterdir()) == []


def test_a_docker_that_makes_no_network_says_why(behind: EngineRuntime, fake: Path) -> None:
    behind.pull("argosy/engine-test")
    (fake / "broken").touch()
    with pytest.raises(OSError, match="docker network: could not find an available"):
        start(behind, "exit 0")


@pytest.mark.slow
def test_the_network_of_a_killed_local_mode_is_recreated_even_if_a_container_runs_in_it(
    fake: Path, images: Path, door: ContainerPort
) -> None:
    leave_a_container("docker", images, door.port)
    assert [path.name for path in (fake / "networks").iterdir()] == [f"argosy-{door.port}"]
    runtime = EngineRuntime("docker", images, door=door)
    assert start(runtime, "exit 7").end() == Exit(7)
    runtime.close()
    assert list((fake / "networks").iterdir()) == []


def test_a_network_with_a_foreign_container_is_left_alone(
    behind: EngineRuntime, fake: Path, door: ContainerPort
) -> None:
    behind.pull("argosy/engine-test")
    name = f"argosy-{door.port}"
    (fake / "networks").mkdir()
    (fake / "networks" / name).touch()
    (fake / "created" / "mine").write_text(f"--network\x1f{name}\x1f")
    (fake / "containers" / "mine").write_text("running 1 false")
    with pytest.raises(OSError, match=f"network with name {name} already exists"):
        start(behind, "exit 0")
    assert (fake / "containers" / "mine").exists()
    (fake / "containers" / "mine").unlink()
    assert start(behind, "exit 0").end() == Exit(0)


class Unservable(Exception):
    """Errors that no listener may raise."""


def test_whatever_a_server_raises_leaves_neither_a_network_nor_a_listener(
    fake: Path, images: Path, door: ContainerPort
) -> None:
    served: list[socket.socket] = []

    def refuse(listener: socket.socket) -> Callable[[], None]:
        served.append(listener)
        raise Unservable

    runtime = EngineRuntime("docker", images, door=ContainerPort(door.port, refuse))
    with pytest.raises(Unservable):
        start(runtime, "exit 0")
    assert [listener.fileno() for listener in served] == [-1]
    assert list((fake / "networks").iterdir()) == []


@pytest.mark.engine
def test_dockers_command_takes_these_words(images: Path, door: ContainerPort, tmp_path: Path) -> None:
    """The real one reads them all before it calls a daemon, which may not exist."""
    if shutil.which("docker") is None:
        pytest.skip("there is no docker on PATH")
    box = Isolation("none", cpu_units=2, user="1", read_only=True, tmpfs=(("/tmp", 6),), shared_memory_mib=8)
    words = run_arguments(
        ContainerEngine("docker", door=door), "n", Program([], {"A": "1"}, tmp_path, 64, isolation=box)
    )
    told = {**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/nobody"}
    network = ["docker", "network", "create", "--driver", "bridge", "--opt", APART, "argosy-1"]
    left = ["docker", "ps", "--all", "--quiet", "--filter", f"label={label(1)}"]
    for command in (words, network, left):
        done = subprocess.run(command, env=told, capture_output=True, text=True, check=False)
        assert "daemon" in done.stderr.lower(), done.stderr
