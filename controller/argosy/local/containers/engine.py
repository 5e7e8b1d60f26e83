"""Images and containers of podman and Docker, through their commands, which are the same in the parts used here.

`argosy/NAME` is built from the folder NAME of the images root, once while local mode runs, in its CPU flavour if it has
one (`argosy/NAME-gpu` in the other); any other image is pulled unless it is present. AWS_ENDPOINT_URL names the
endpoint, which is the only port of this machine's loopback interface that a container reaches.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from argosy.client.entering.way_in import WayIn
from argosy.local.containers.docker_network import DockerNetwork
from argosy.local.containers.engine_run import ContainerEngine, ContainerPort, EngineContainer, remove_leftovers
from argosy.local.containers.images import (
    CannotPullError,
    Image,
    build_context,
    names_in,
    signature_of,
    source_of,
    takes,
)
from argosy.local.containers.process import Exit, Program
from argosy.local.options import is_checkout, runner_file
from argosy.model.exit_codes import WRONG_REQUEST
from argosy.runner.order import RunnerFault
from argosy.spec.program import STOCK_PYTHON


class RefusedProgram:
    """A Running that has never been one."""

    def __init__(self, sentence: str, on_line: Callable[[str], None], on_end: Callable[[Exit], None]) -> None:
        def end() -> None:
            on_line(RunnerFault(WRONG_REQUEST, sentence).line)
            on_end(Exit(WRONG_REQUEST))

        self._thread = threading.Thread(target=end, name="argosy-refused")
        self._thread.start()

    def stop(self) -> None:
        """It has ended."""

    def kill(self) -> None:
        """It has ended."""

    def way_in(self) -> WayIn | None:
        """There is none."""
        return None

    def join(self, timeout_s: float) -> None:
        """Wait until all its callbacks have returned."""
        self._thread.join(timeout_s)


ENGINES = ("podman", "docker")
PROBE_S = 20.0
LOOK_S = 0.5  # between two checks of an image's files
NO_SUCH_PROGRAM = 127  # the exit codes of `run` itself
_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"
NO_RUNNER = "podman needs the runner, which {}, and submit again; or run `argosy local` without --runtime"
_TO_BUILD = "is not built: type `make runner` in the checkout, which takes a minute"
_NOT_SHIPPED = (
    "an installed package does not include: start `argosy local` from a checkout where you have typed `make runner`"
)
NOT_THE_INIT = (
    "Docker starts every container with the init of its own daemon: type `make runner`, set"
    ' "init-path": "{}" in /etc/docker/daemon.json and restart Docker; or use --runtime podman'
)
FAILURE_KEPT_S = 30.0  # a failed pull is not repeated earlier


def no_runner(*, in_checkout: bool) -> str:
    """Why users' programs cannot run, and the remedy."""
    return NO_RUNNER.format(_TO_BUILD if in_checkout else _NOT_SHIPPED)


class NoEngineError(Exception):
    """The engine is missing or does not work; the message says why."""


@dataclass(frozen=True, slots=True)
class EngineImage(Image):
    """An image that the engine has. The image sets its default program."""

    def arguments(self, entry_point: list[str] | None, command: list[str] | None) -> list[str]:
        """What follows the image on the engine's command line; another entry point's first word goes before it."""
        return [*(entry_point or ())[1:], *(command or ())]


def check(engine: str) -> None:
    """Raises NoEngineError unless the engine answers."""
    if shutil.which(engine) is None:
        raise NoEngineError(f"there is no {engine} on PATH")
    try:
        asked = subprocess.run([engine, "info"], capture_output=True, text=True, timeout=PROBE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise NoEngineError(f"{engine} does not answer: {fault}") from fault
    if asked.returncode != 0:
        raise NoEngineError(f"{engine} does not work: {_last_line(asked.stderr) or f'exit code {asked.returncode}'}")
    if engine == "podman":
        _check_start(engine)


def _check_start(engine: str) -> None:
    """Start a missing program in an empty folder: a working engine complains of nothing else. An engine that may not
    set its limits on resources, for example, answers `info` and starts no container.
    """
    with tempfile.TemporaryDirectory() as root:
        words = [engine, "run", "--rm", "--network", "none", "--rootfs", root, "/argosy-nothing"]
        try:
            asked = subprocess.run(words, capture_output=True, text=True, timeout=PROBE_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as fault:
            raise NoEngineError(f"{engine} starts no container: {fault}") from fault
    if asked.returncode not in (0, NO_SUCH_PROGRAM):
        said = _last_line(asked.stderr) or f"exit code {asked.returncode}"
        hint = "; other limits can be named in containers.conf (default_ulimits)" if "rlimit" in said else ""
        raise NoEngineError(f"{engine} starts no container here: {said}{hint}")


class EngineRuntime:
    """A Runtime. has_gpus: whether pinned tasks get GPUs of this machine; otherwise GPUs are only named. door: its port
    is ours alone; containers of a killed local mode on it are removed. base_image: replaces BASE in Dockerfiles that
    have it.
    """

    slow = True

    def __init__(
        self,
        engine: str,
        root: Path,
        has_gpus: bool = False,
        door: ContainerPort | None = None,
        base_image: str | None = None,
        runner: Path | None = None,
        tell: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        """tell: receives messages for the user, such as that an image is being rebuilt."""
        self.root, self._tell = root, tell
        self._base_image = base_image
        self._engine = engine
        self.has_gpus = has_gpus
        self._door = door
        self._guard = threading.Lock()  # one build or pull at a time
        self._had: dict[str, Image] = {}
        self._signatures: dict[str, str] = {}  # of the folders that they were built from
        self._looked: dict[str, tuple[float, str]] = {}  # when, and what a folder's signature was
        self._failed: dict[str, tuple[float, str]] = {}
        self._network: DockerNetwork | None = None
        self._runner = runner or runner_file()
        if door is not None:
            remove_leftovers(engine, door.port)

    @property
    def python(self) -> str:
        """The version of the base image if the engine has it; otherwise that of the one in the Dockerfile."""
        if self._base_image is None or self._asked(["image", "inspect", self._base_image]).returncode != 0:
            return STOCK_PYTHON
        words = ["run", "--rm", self._base_image, "python", "-c", _VERSION]
        said = self._asked(words).stdout.strip()
        return said if re.fullmatch(r"3\.\d+", said) else STOCK_PYTHON

    def names(self) -> list[str]:
        return names_in(self.root)

    def pull(self, reference: str) -> Image:
        """Built from its folder, already present, or pulled from its registry. Raises CannotPullError."""
        with self._guard:
            when, why = self._failed.get(reference, (-FAILURE_KEPT_S, ""))
            if time.monotonic() - when < FAILURE_KEPT_S:
                raise CannotPullError(why)
            signature = self._signature(reference)
            if reference not in self._had or self._signatures.get(reference) != signature:
                if reference in self._had:
                    self._tell(f"{reference} has changed: it is built again")
                try:
                    self._had[reference] = self._get(reference)
                    self._signatures[reference] = signature
                except CannotPullError as fault:
                    self._failed[reference] = time.monotonic(), str(fault)
                    raise
            return self._had[reference]

    def start(
        self, program: Program, on_line: Callable[[str], None], on_end: Callable[[Exit], None]
    ) -> EngineContainer | RefusedProgram:
        missing = self._why_no_program() if program.has_runner else None
        if missing is not None:
            return RefusedProgram(missing, on_line, on_end)
        engine = ContainerEngine(self._engine, self._door, self._made_network(), self._runner)
        return EngineContainer(engine, program, on_line, on_end)

    def close(self) -> None:
        """Nothing is started any more."""
        network, self._network = self._network, None
        if network is not None:
            network.close()

    def _made_network(self) -> DockerNetwork | None:
        """Docker's, made for the first container. Raises OSError."""
        if self._engine != "docker" or self._door is None:
            return None
        with self._guard:
            self._network = self._network or DockerNetwork(self._engine, self._door.port, self._door.serve)
            return self._network

    def _why_no_program(self) -> str | None:
        """Why the engine can start no program of a user's own; None when it can."""
        if self._engine == "podman":
            return None if self._runner.is_file() else no_runner(in_checkout=is_checkout())
        init = self._asked(["info", "--format", "{{.InitBinary}}"]).stdout.strip()
        return None if Path(init).name == self._runner.name else NOT_THE_INIT.format(self._runner)

    def _signature(self, reference: str) -> str:
        """Digest of the sources of the image; empty for one that is not built here. Kept for a while."""
        looked_at, signature = self._looked.get(reference, (-LOOK_S, ""))
        if time.monotonic() - looked_at >= LOOK_S:
            source = source_of(self.root, reference)
            signature = "" if source is None else signature_of(Path(build_context(source[0])[-1]))
            self._looked[reference] = time.monotonic(), signature
        return signature

    def _get(self, reference: str) -> Image:
        source = source_of(self.root, reference)
        if source is not None:
            folder, flavour = source
            name = reference.partition("@")[0].partition(":")[0]
            self._run(["build", "--tag", name, *self._arguments(folder, flavour), *build_context(folder)], reference)
        elif not reference.startswith("argosy/"):
            name = reference
            if self._asked(["image", "inspect", name]).returncode != 0:
                self._run(["pull", name], reference)
        else:
            raise CannotPullError(f"{reference}: not found: no folder of that name with a Dockerfile among the images")
        return EngineImage((), (), {}, self.root, reference=name)

    def _arguments(self, folder: Path, flavour: str) -> list[str]:
        base = self._base_image if takes(folder, "BASE") else None
        given = {"FLAVOUR": flavour, "BASE": base}
        return [word for name, value in given.items() if value for word in ("--build-arg", f"{name}={value}")]

    def _run(self, arguments: Sequence[str], reference: str) -> None:
        done = self._asked(arguments)
        if done.returncode != 0:
            said = _last_line(done.stderr) or _last_line(done.stdout) or f"exit code {done.returncode}"
            raise CannotPullError(f"{reference}: {self._engine} {arguments[0]}: {said}")

    def _asked(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [self._engine, *arguments],
                env=os.environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as fault:
            raise CannotPullError(f"{self._engine}: {fault.strerror or fault}") from fault


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
