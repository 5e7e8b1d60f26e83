"""How do the commands start the AWS on this machine, and what do they ask of it?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Embedded(Protocol):
    """An AWS that runs in this process."""

    endpoint_url: str  # http://127.0.0.1:PORT
    region: str

    def interrupt(self, instance_id: str, notice_s: float) -> None:
        """A spot interruption warning now, the end of the instance `notice_s` later."""


@contextmanager
def started(port: int) -> Iterator[Embedded]:
    """Ready to answer on entry, with the deployment in it; everything it started is gone on exit. Raises OSError."""
    from controller.local.aws import LocalAws

    with LocalAws(port=port) as aws:
        yield aws
