"""Local mode whose functions are forks of one server for all tests: a second server would import everything again."""

from __future__ import annotations

import atexit
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from argosy.local.clients import child_environment
from argosy.local.cloud import LocalAws
from argosy.local.forks import Forks
from argosy.local.options import LocalOptions
from tests.fakes.signing import KEY

ROOT = Path(__file__).resolve().parents[2]


def local_aws(options: LocalOptions, forks_of: Forks | None = None) -> LocalAws:
    """forks_of: where the functions are forked; absent = the server that all tests of this process share."""
    return LocalAws(options=replace(options, key=options.key or KEY), forks=forks_of or forks())


class SharedForks(Forks):
    """A server that another process started, over a socket that this one inherited."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server

    def send(self, descriptors: Sequence[int]) -> None:
        socket.send_fds(self._server, [b"!"], descriptors)

    def fileno(self) -> int:
        return self._server.fileno()

    def close(self) -> None:
        self._server.close()


@cache
def forks() -> Forks:
    """Also of the commands (`tests.fakes.commands`). The workers of a run of tests share one."""
    worker = sys.modules.get("tests.run.worker")
    made = (
        SharedForks(socket.socket(fileno=worker.FORKS)) if worker else Forks("tests.fakes.imported.warm", environment())
    )
    atexit.register(made.close)
    return made


def environment() -> dict[str, str]:
    """Of a server of forks."""
    return {**child_environment("http://127.0.0.1", "us-east-1", KEY), "PYTHONPATH": str(ROOT)}
