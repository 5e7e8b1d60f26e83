"""Which container engines can tests use here? A fake always, podman and Docker where they really run containers.

Where no Docker daemon answers, tests have one of their own, if it can be started (`docker_daemon`).
"""

from __future__ import annotations

import functools
import os
import queue
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from argosy.local.containers.engine import ENGINES, EngineRuntime, NoEngineError, check
from argosy.local.containers.engine_run import label
from argosy.local.containers.process import Exit, Isolation, Program
from tests.docker_daemon import private_docker

# Parameters of a fixture `engine`, besides "fake".
REAL = [pytest.param(name, marks=pytest.mark.engine) for name in ("podman", "docker")]
ROOT = Path(__file__).resolve().parents[1]
FAKE = """#!{python} -IS
import sys
sys.path.append("{folder}")
from container_engine import main
sys.exit(main(sys.argv[1:]))
"""  # imported, so that its byte code is cached
PATIENCE_S = 150.0  # podman takes many seconds on a busy machine
DOCKERFILE = """FROM scratch
COPY busybox /bin/busybox
ENTRYPOINT ["/bin/busybox", "sh", "-c"]
"""
# Where a container may not raise its limits, as in many containers, podman runs with these.
LIMITED = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
"""


def static_busybox() -> Path | None:
    """A busybox that runs without libraries, and so in an image without any."""
    found = shutil.which("busybox")
    return Path(found) if found and not needs_a_loader(Path(found).read_bytes()) else None


def needs_a_loader(program: bytes) -> bool:
    """Whether an ELF program has a PT_INTERP header, or the file is not one."""
    if program[:5] != b"\x7fELF\x02":
        return True
    first, (size, count) = struct.unpack_from("<Q", program, 32)[0], struct.unpack_from("<HH", program, 54)
    return any(struct.unpack_from("<I", program, first + number * size)[0] == 3 for number in range(count))


@functools.cache
def configuration(engine: str) -> dict[str, str] | str:
    """The environment in which a real engine runs containers here, or why it does not."""
    busybox = static_busybox()
    given: dict[str, str] = {}
    try:
        check(engine)
    except NoEngineError as fault:
        own = private_docker() if engine == "docker" else str(fault)
        if isinstance(own, str):
            return own
        given = own
    if busybox is None:
        return "there is no static busybox to build an image from (Debian: busybox-static)"
    folder = Path(tempfile.mkdtemp(prefix="argosy-engine-"))
    try:
        shutil.copy(busybox, folder / "busybox")
        (folder / "Dockerfile").write_text(DOCKERFILE)
        (folder / "containers.conf").write_text(LIMITED)
        limited = {"CONTAINERS_CONF": str(folder / "containers.conf")}
        said = ""
        for environment in ({}, limited) if engine == "podman" else (given,):
            probe = [engine, "run", "--rm", "--network", "host", "argosy/probe", "exit 7"]
            build = [engine, "build", "--tag", "argosy/probe", str(folder)]
            told = {**os.environ, **environment}
            for command, code in ((build, 0), (probe, 7)):
                done = subprocess.run(command, env=told, capture_output=True, text=True, check=False, timeout=120)
                said = done.stderr.strip()
                if done.returncode != code:
                    break
            else:
                subprocess.run([engine, "rmi", "--force", "argosy/probe"], env=told, capture_output=True, check=False)
                return {"limited": LIMITED} if environment is limited else environment
        return f"{engine} cannot run a container here: {said[-200:]}"
    finally:
        shutil.rmtree(folder)


def use(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a working engine on PATH: "fake", "podman" or "docker". Skips the test if it does not."""
    if name == "fake":
        install_fake(tmp_path, monkeypatch)
        return "podman"
    found = configuration(name)
    if isinstance(found, str):
        pytest.skip(found)
    if "limited" in found:
        (tmp_path / "containers.conf").write_text(found["limited"])
        monkeypatch.setenv("CONTAINERS_CONF", str(tmp_path / "containers.conf"))
    for variable in found.keys() - {"limited"}:
        monkeypatch.setenv(variable, found[variable])
    return name


def install_fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `podman` and a `docker` before all others on PATH; the folder in which they keep their state."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ENGINES:
        (folder / name).write_text(FAKE.format(python=sys.executable, folder=ROOT / "tests/fakes"))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_ENGINE", str(tmp_path / "engine"))
    return tmp_path / "engine"


class Started:
    """A container that runs a shell script, its lines and its end."""

    def __init__(self, runtime: EngineRuntime, script: str, environment: dict[str, str], **changes: Any) -> None:
        self.lines: queue.Queue[str] = queue.Queue()
        self.ends: queue.Queue[Exit] = queue.Queue()
        image = runtime.pull("argosy/engine-test")
        box = Isolation(image.reference or "", **changes.pop("isolation", {}))
        program = Program(image.arguments(None, [script]), environment, image.folder, 256, isolation=box, **changes)
        self.container = runtime.start(program, self.lines.put, self.ends.put)

    def line(self) -> str:
        return self.lines.get(timeout=PATIENCE_S)

    def end(self) -> Exit:
        ended = self.ends.get(timeout=PATIENCE_S)
        self.container.join(PATIENCE_S)
        return ended


def start(runtime: EngineRuntime, script: str, environment: dict[str, str] | None = None, **changes: Any) -> Started:
    return Started(runtime, script, environment or {}, **changes)


# One container of a local mode on a port, until it is killed.
LOCAL_MODE = """
import signal, sys
from pathlib import Path
from argosy.local.containers.engine import EngineRuntime
from argosy.local.containers.engine_run import ContainerPort
from tests.container_engines import start
door = ContainerPort(int(sys.argv[3]), lambda listener: listener.close)
runtime = EngineRuntime(sys.argv[1], Path(sys.argv[2]), door=door)
print(start(runtime, "echo runs; sleep 60 || /bin/busybox sleep 60").line(), flush=True)
signal.pause()
"""


def containers(engine: str, *ports: int) -> list[str]:
    """The existing ones of the local modes on these ports: a test ignores others."""
    listed = []
    for port in ports:
        command = [engine, "ps", "--all", "--quiet", "--filter", f"label={label(port)}"]
        listed += subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return listed


def leave_a_container(engine: str, images: Path, port: int) -> None:
    """Like a killed local mode on this port."""
    command = [sys.executable, "-c", LOCAL_MODE, engine, str(images), str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as local_mode:
        assert local_mode.stdout is not None
        said = local_mode.stdout.readline()
        local_mode.kill()
    assert said == "runs\n"


def asking(port: int) -> str:
    """A script that prints the first line of the reply of this machine's server on a port, or that there is none."""
    request = r"printf 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'"
    busybox = "busybox" if "FAKE_ENGINE" in os.environ else "/bin/busybox"
    return f"{request} | {busybox} nc -w 5 127.0.0.1 {port} || echo none"


def hello(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    start_response("204 No Content", [])
    return [b""]


def calls(fake: Path, command: str) -> list[list[str]]:
    made = [call.split("\x1f")[:-1] for call in (fake / "calls").read_text().split("\x1e")[:-1]]
    return [words[1:] for words in made if words[0] == command]
