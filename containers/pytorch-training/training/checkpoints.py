"""How far have earlier attempts come? The state of a training, kept every so often and at a stop.

Each attempt writes its own file, `checkpoints/<attempt>/checkpoint.pt`, in one step, and the next one continues after
the newest that it can read. So an attempt that is believed dead and still writes harms nothing.
"""

from __future__ import annotations

import io
import re
import sys
from pickle import UnpicklingError
from typing import Any

import argosy_storage as storage

from training.arguments import Request

NAME = "checkpoint.pt"
_DAMAGED = (UnpicklingError, RuntimeError, ValueError, KeyError, TypeError, OSError, EOFError)  # what torch.load raises
_ATTEMPT = re.compile(rf"/([0-9]+)/{re.escape(NAME)}$")


def save(torch: Any, request: Request, state: dict[str, Any]) -> str:
    """The address. Raises storage.Temporary or storage.Refused."""
    address = f"{request.checkpoints}{request.attempt}/{NAME}"
    data = io.BytesIO()
    torch.save(state, data)
    storage.write(address, data.getvalue())
    return address


def find(torch: Any, request: Request, work: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The newest attempt's state of the same work, and its address. Raises storage.Temporary."""
    if not request.checkpoints:
        return None
    try:
        names = [name for name in storage.names_below(request.checkpoints) if _ATTEMPT.search(name)]
    except storage.Missing:
        return None  # no attempt has left anything
    except storage.Refused as fault:
        print(f"training: no checkpoint can be looked for: {fault}", file=sys.stderr)
        return None
    read = ((name, _read(torch, name, work)) for name in sorted(names, key=_attempt, reverse=True))
    return next(((name, state) for name, state in read if state is not None), None)


def _attempt(name: str) -> int:
    found = _ATTEMPT.search(name)
    return int(found[1]) if found else 0


def _read(torch: Any, name: str, work: dict[str, Any]) -> dict[str, Any] | None:
    """None, with a line in the log, for one that cannot be used. Raises storage.Temporary."""
    try:
        state: dict[str, Any] = torch.load(io.BytesIO(storage.read(name)), map_location="cpu", weights_only=True)
        theirs = state["work"]
    except (storage.Refused, *_DAMAGED) as fault:
        said = str(fault).splitlines() or [type(fault).__name__]
        print(f"training: the checkpoint {name} cannot be read and is passed over: {said[0]}", file=sys.stderr)
        return None
    if theirs != work:
        print(f"training: {name} belongs to other work and is passed over", file=sys.stderr)
        return None
    return state
