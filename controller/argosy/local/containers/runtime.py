"""The interface of a container runtime. There are two: processes of this machine, and a container engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from argosy.client.entering.way_in import WayIn
from argosy.local.containers.images import Image
from argosy.local.containers.process import Exit, Program


class Container(Protocol):
    """One started container."""

    def stop(self) -> None:
        """SIGTERM now, SIGKILL after the grace period. Returns at once."""

    def kill(self) -> None:
        """SIGKILL, at once."""

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended and all its callbacks have returned."""

    def way_in(self) -> WayIn | None:
        """How a command gets in; None while there is nothing to enter. Returns at once."""


class Runtime(Protocol):
    """Images by name, and programs started from them."""

    @property
    def root(self) -> Path:
        """The folder of the deployment's own images."""

    @property
    def slow(self) -> bool:
        """Whether `pull` may take minutes."""

    @property
    def has_gpus(self) -> bool:
        """Whether pinned tasks get real GPUs: their definitions then need the GPU flavour."""

    @property
    def python(self) -> str:
        """The version of Python that argosy/python has, such as 3.12."""

    def names(self) -> list[str]:
        """Names of the deployment's own images."""

    def pull(self, reference: str) -> Image:
        """The image; raises CannotPullError."""

    def start(self, program: Program, on_line: Callable[[str], None], on_end: Callable[[Exit], None]) -> Container:
        """Starts at once; `on_line` and `on_end` are called from other threads. Raises OSError."""
