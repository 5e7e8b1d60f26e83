"""By which name does this shell find the command? Without an `argosy` on PATH, by that with which it was called."""

from __future__ import annotations

import re
import shlex
import shutil
import sys

_CALL = re.compile(r"(?<![\w./-])argosy (?=[a-z-])")


def as_typed(step: str) -> str:
    """The command lines in a next step as they work when pasted: `.venv/bin/argosy watch RUN`."""
    called = sys.argv[0]
    if not called.endswith("/argosy") or shutil.which("argosy"):
        return step
    return _CALL.sub(lambda _: f"{shlex.quote(called)} ", step)
