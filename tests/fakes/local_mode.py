"""Local mode whose functions are forks of one server for each test process: a second server would import everything
again."""

from __future__ import annotations

import atexit
from functools import cache

from argosy.local.cloud import LocalAws
from argosy.local.forks import Forks
from argosy.local.lambdas.deployed import forks_of_functions
from argosy.local.options import LocalOptions


def local_aws(options: LocalOptions) -> LocalAws:
    return LocalAws(options=options, forks=forks())


@cache
def forks() -> Forks:
    made = forks_of_functions()
    atexit.register(made.close)
    return made
