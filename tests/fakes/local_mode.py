"""Local mode whose functions are forks of one server for each test process: a second server would import everything
again."""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path

from argosy.local.clients import child_environment
from argosy.local.cloud import LocalAws
from argosy.local.forks import Forks
from argosy.local.options import LocalOptions

ROOT = Path(__file__).resolve().parents[2]


def local_aws(options: LocalOptions, forks_of: Forks | None = None) -> LocalAws:
    """forks_of: where the functions are forked; absent = the server that all tests of this process share."""
    return LocalAws(options=options, forks=forks_of or forks())


@cache
def forks() -> Forks:
    """Also of the commands (`tests.fakes.commands`)."""
    environment = child_environment("http://127.0.0.1", "us-east-1")
    made = Forks("tests.fakes.imported.warm", {**environment, "PYTHONPATH": str(ROOT)})
    atexit.register(made.close)
    return made
