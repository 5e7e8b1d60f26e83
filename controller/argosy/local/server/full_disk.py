"""What do clients and the terminal hear while the disk is full?

Clients: to try again, which SDKs and the runner do by themselves. The terminal: one line a minute, not one a request.
"""

from __future__ import annotations

import errno
import json
import sys
import time
from collections.abc import Callable
from xml.sax.saxutils import escape

from argosy.local.server.protocol import Reply
from argosy.loopback.server import Environ

QUIET_S = 60.0


def is_full(fault: BaseException) -> bool:
    """Whether a fault is one of a full disk."""
    return isinstance(fault, OSError) and fault.errno == errno.ENOSPC


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class FullDisk:
    """Says so, again and again while it lasts. say: a line for the terminal; now: seconds."""

    def __init__(self, say: Callable[[str], None] = _print, now: Callable[[], float] = time.monotonic) -> None:
        self._say, self._now = say, now
        self._quiet_until = float("-inf")

    def reply(self, fault: OSError, environ: Environ) -> Reply:
        """503, in the form that the service's clients read: XML of S3, JSON of the others."""
        where = f"the disk of {fault.filename} is full" if fault.filename else "the disk is full"
        if self._now() >= self._quiet_until:
            self._quiet_until = self._now() + QUIET_S
            self._say(f"embedded AWS: {where}: make room there, and the work goes on by itself.")
        message = f"no space left on device: {where}"
        if "HTTP_X_AMZ_TARGET" in environ:
            body, kind = json.dumps({"__type": "ServiceUnavailable", "message": message}), "application/json"
        else:
            code, kind = "ServiceUnavailable", "application/xml"
            body = f"<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
        return Reply(503, body.encode(), {"Content-Type": kind})
