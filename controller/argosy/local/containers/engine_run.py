"""One container under podman or Docker: its run, its end, and the report of its end.

The engine's `run` stays attached: its output is the container's log and its exit code the container's. The container is
kept until the engine has reported its end, then removed. podman's containers have their own network, into which
one port leads (`one_port`); Docker's, which only root could enter, share one of local mode's (`docker_network`).
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from argosy.client.entering.way_in import WayIn
from argosy.local.containers.docker_network import DockerNetwork
from argosy.local.containers.one_port import BoxedStart
from argosy.local.containers.process import OUT_OF_MEMORY, ContainerProcess, Exit, Isolation, Program
from argosy.local.gpus import Gpu, Maker

NOT_STARTED = 127
MOST_PROCESSES = 2048  # podman's default, where it may set one (containers.conf(5), pids_limit); Docker has none
SETTLE_S = 30.0  # for the engine to be done with a container that has ended
PAUSE_S = 0.3  # until the next request
INITS = ("catatonit", "/usr/libexec/podman/catatonit", "/usr/lib/podman/catatonit")  # where podman looks for one
_NOT_YET = ("", "created", "initialized")  # the first: there is none
_STILL = ("running", "stopping")
_RAN = ("exited", "stopped", "removing", "dead")
# catatonit and tini print these if there is no such program; for the engine the container has run, because they have.
_INIT_FAILED = re.compile(r"ERROR \(catatonit:\d+\): failed to exec|\[FATAL tini")
# Our runner reports this as the init: podman cannot detect it with control groups of version 1.
_MEMORY_RAN_OUT = "argosy: killed: out of memory"
_ASKED = "{{.State.Status}} {{.State.OOMKilled}}"


# Capabilities that Docker and podman give a container's root besides those that it needs for its own files: raw
# sockets, device nodes, other users, other roots. A program that would change users needs a `user` in its definition
# instead.
_DROPPED = ("AUDIT_WRITE", "MKNOD", "NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT")


@dataclass(frozen=True, slots=True)
class ContainerPort:
    """The one port that containers may reach. serve: accepts connections of a socket that listens inside a container's
    network; its result ends that."""

    port: int
    serve: Callable[[socket.socket], Callable[[], None]]


@dataclass(frozen=True, slots=True)
class ContainerEngine:
    """podman or docker. door: None, no port of this machine.
    network: of Docker's containers, where there is a door. runner: the init of podman's containers with a user's
    program; Docker's have the init of its daemon."""

    name: str
    door: ContainerPort | None = None
    network: DockerNetwork | None = None
    runner: Path | None = None


class EngineContainer:
    """A Running. Raises OSError when the engine itself cannot be started."""

    def __init__(
        self, engine: ContainerEngine, program: Program, on_line: Callable[[str], None], on_end: Callable[[Exit], None]
    ) -> None:
        self._engine = engine.name
        self._name = f"argosy-{uuid.uuid4().hex}"
        self._stop_timeout_s = program.stop_timeout_s
        self._on_line, self._on_end = on_line, on_end
        self._last_line, self._memory_ran_out = "", False
        self._begun = _first_word(program)
        self._threads: list[threading.Thread] = []
        self._is_wanted = True  # neither stopped nor killed
        self._over = threading.Event()  # the program that started it has ended
        self._inside: ListenerInside | None = None
        words = run_arguments(engine, self._name, program)
        if engine.name == "podman" and engine.door is not None:
            self._inside = ListenerInside(engine.door)
            create = (words[0], "create", *words[2:])
            words = BoxedStart(self._inside.handover, engine.door.port, self._name, create).as_arguments()
        attached = Program(
            arguments=words,
            environment=os.environ,
            folder=Path("/"),
            memory_mib=None,  # the engine enforces it
            stop_timeout_s=program.stop_timeout_s,
            descriptors=() if self._inside is None else (self._inside.handover,),
        )
        try:
            self._client = ContainerProcess(attached, self._hear, self._ended)
        finally:
            if self._inside is not None:
                self._inside.was_handed()

    def stop(self) -> None:
        """Returns at once. The engine sends the image's own stop signal, SIGTERM unless it names another."""
        self._in_background(self._stop)

    def kill(self) -> None:
        self._in_background(self._kill)

    def join(self, timeout_s: float) -> None:
        for thread in list(self._threads):
            thread.join(timeout_s)
        self._client.join(timeout_s)

    def way_in(self) -> WayIn | None:
        """See Container."""
        return None if self._client.way_in() is None else WayIn(engine=self._engine, container=self._name)

    def _in_background(self, act: Callable[[], None]) -> None:
        thread = threading.Thread(target=act, name=f"argosy-{self._engine}-{act.__name__}")
        self._threads.append(thread)
        thread.start()

    def _stop(self) -> None:
        self._end("stop", "--time", str(max(1, round(self._stop_timeout_s))), self._name)

    def _kill(self) -> None:
        self._end(*self._killing)

    @property
    def _killing(self) -> tuple[str, ...]:
        return "kill", "--signal", "KILL", self._name

    def _end(self, *asked: str) -> None:
        """For a container that has not begun, an engine only confirms the end, and starts it nevertheless. So the
        program that would start it is stopped, and the engine gets the request again if the container runs
        nevertheless. It is not killed at once, because engines lose track of a container that they are just creating.
        """
        self._is_wanted, is_told = False, False
        ends = time.monotonic() + self._stop_timeout_s + SETTLE_S
        while not self._over.is_set():
            status = self._state()[0]
            if status in _STILL and self._ask(*asked).returncode == 0:
                return
            if status in _NOT_YET and not is_told:
                is_told = True
                self._client.stop()
            if time.monotonic() > ends:
                self._client.kill()
            self._over.wait(PAUSE_S)

    def _hear(self, line: str) -> None:
        self._last_line = line
        self._memory_ran_out |= line.startswith(_MEMORY_RAN_OUT)
        self._on_line(line)

    def _ended(self, ended: Exit) -> None:
        self._over.set()
        exit_code = ended.exit_code
        status, out_of_memory = self._state()
        if status in _STILL:
            if not self._is_wanted:
                self._ask(*self._killing)  # it began when its starter was stopped
            exit_code = self._settled(exit_code)
            status, out_of_memory = self._state()
        self._remove()
        if self._inside is not None:
            self._inside.close()
        if status in _RAN and _INIT_FAILED.match(self._last_line):
            self._on_end(Exit(NOT_STARTED, f"CannotStartContainerError: {self._begun}: {self._last_line}"))
        elif status not in _RAN:
            said = self._last_line or f"{self._engine} run ended with {exit_code}"
            self._on_end(Exit(NOT_STARTED, f"CannotStartContainerError: {said}"))
        else:
            ran_out = out_of_memory or (self._memory_ran_out and exit_code != 0)
            self._on_end(Exit(exit_code, OUT_OF_MEMORY if ran_out else None))

    def _state(self) -> tuple[str, bool]:
        """The engine's status for it, and whether the kernel killed it because memory ran out."""
        status, _, out_of_memory = self._ask("inspect", "--format", _ASKED, self._name).stdout.strip().partition(" ")
        return status, out_of_memory == "true"

    def _settled(self, exit_code: int) -> int:
        """The exit code the engine records, or `exit_code` if it never does.

        On a busy machine podman's `run` may end, with 127, before its records say that the container has ended.
        """
        with suppress(ValueError, subprocess.TimeoutExpired):
            return int(self._ask("wait", self._name, limit_s=SETTLE_S).stdout)
        return exit_code

    def _remove(self) -> None:
        """Repeated for a limited time until it is gone, because the engine may still be using it."""
        ends = time.monotonic() + SETTLE_S
        while self._ask("rm", "--force", self._name).returncode != 0 and self._state()[0] and time.monotonic() < ends:
            time.sleep(PAUSE_S)

    def _ask(self, *arguments: str, limit_s: float | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._engine, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=limit_s,
        )


class ListenerInside:
    """The socket that listens inside a container's network, from its arrival to the container's end."""

    def __init__(self, door: ContainerPort) -> None:
        self._door = door
        self._ours, self._theirs = socket.socketpair()
        self._close: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._receive, name="argosy-inside")
        self._thread.start()

    @property
    def handover(self) -> int:
        """The descriptor that the program which makes the container inherits."""
        return self._theirs.fileno()

    def was_handed(self) -> None:
        """The program has its own copy, or could not be started."""
        self._theirs.close()

    def close(self) -> None:
        """The program and the container are gone."""
        self._thread.join()
        self._close()

    def _receive(self) -> None:
        with self._ours:
            _, descriptors, _, _ = socket.recv_fds(self._ours, 1, 1)  # none when the program has ended before
        for descriptor in descriptors:
            self._close = self._door.serve(socket.socket(fileno=descriptor))


def run_arguments(engine: ContainerEngine, name: str, program: Program) -> list[str]:
    """The `run` command line. Raises ValueError for a program without an image."""
    box = program.isolation
    if box is None:
        raise ValueError("the program has no image to run in")
    network = "private" if engine.name == "podman" else engine.network.name if engine.network else "bridge"
    words = [engine.name, "run", "--name", name, "--network", network, "--pull", "never"]
    words += ["--security-opt", "no-new-privileges", *(f"--cap-drop={name}" for name in _DROPPED)]
    words += ["--label", label(engine.door.port)] if engine.door else []
    words += ["--pids-limit", str(MOST_PROCESSES)] if engine.name == "docker" else []
    measures = bool(box.gpus) and engine.runner is not None and engine.runner.is_file()
    if (program.has_runner or measures) and engine.name == "podman":
        words += ["--init", "--init-path", str(engine.runner)]
    elif engine.name == "docker" or any(map(shutil.which, INITS)):
        words += ["--init"]  # reaps children and passes SIGTERM on; Docker brings its own
    for host, inside, protocol in box.published:
        words += ["--publish", f"127.0.0.1:{host}:{inside}/{protocol}"]
    words += _bounds(program.memory_mib, box)
    environment = engine.network.told(program.environment) if engine.network else dict(program.environment)
    if box.gpus:
        words += _gpu_flags(engine.name, box.gpus)
        environment.pop("CUDA_VISIBLE_DEVICES", None)  # inside, the engine shows these alone
    for variable, value in environment.items():
        words += ["--env", f"{variable}={value}"]
    if box.entry_point:
        words += ["--entrypoint", box.entry_point]
    return [*words, box.image, *program.arguments]


def _first_word(program: Program) -> str:
    """The user of the request to the engine: the definition's, else that of the command, else the image's own."""
    box = program.isolation
    if box is not None and box.entry_point:
        return box.entry_point
    return next(iter(program.arguments), f"the program of {box.image}" if box else "")


def _bounds(memory_mib: int | None, box: Isolation) -> list[str]:
    """cpu units are shares, as on ECS: a container that runs alone may use every core."""
    words = ["--memory", f"{memory_mib}m"] if memory_mib is not None else []
    words += ["--cpu-shares", str(box.cpu_units)] if box.cpu_units else []
    words += ["--user", box.user] if box.user else []
    words += ["--read-only"] if box.read_only else []
    if box.mps_pipes:  # MPS shares memory with its clients through the machine's /dev/shm
        words += ["--ipc", "host", "--volume", f"{box.mps_pipes}:{box.mps_pipes}"]
    elif box.shared_memory_mib:
        words += ["--shm-size", f"{box.shared_memory_mib}m"]
    for path, size_mib in box.tmpfs:
        words += ["--tmpfs", f"{path}:size={size_mib}m"]
    return words


def _gpu_flags(engine: str, gpus: Sequence[Gpu]) -> list[str]:
    """podman takes the names of the Container Device Interface, Docker the driver's. AMD's are files of the kernel."""
    nvidia = [gpu for gpu in gpus if gpu.maker is Maker.NVIDIA]
    words = ["--device", "/dev/kfd", "--device", "/dev/dri"] if len(nvidia) < len(gpus) else []
    if engine == "podman":
        return words + [word for gpu in nvidia for word in ("--device", f"nvidia.com/gpu={gpu.place}")]
    return words + (["--gpus", f'"device={",".join(gpu.id for gpu in nvidia)}"'] if nvidia else [])


def label(port: int) -> str:
    """Of every container of the local mode on this port."""
    return f"argosy.local.port={port}"


def remove_leftovers(engine: str, port: int) -> None:
    """Only for the local mode that listens on the port: any earlier one is gone. Containers that the engine cannot
    remove stay,
    and prevent no start under podman. Raises OSError if there is no such engine.
    """
    found = _ask(engine, "ps", "--all", "--quiet", "--filter", f"label={label(port)}").stdout.split()
    if found:
        _ask(engine, "rm", "--force", *found)


def _ask(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
