"""How does the demo start an AWS in its own process, and what does it ask of it?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol


class Embedded(Protocol):
    """An AWS that runs in this process."""

    endpoint_url: str  # http://127.0.0.1:PORT
    region: str

    def interrupt(self, instance_id: str, notice_s: float) -> None:
        """A spot interruption warning now, the end `notice_s` later. Raises KeyError, ValueError when it has gone."""


@contextmanager
def started(processes: int, pythons: Mapping[str, str] | None = None) -> Iterator[Embedded]:
    """Ready to answer on entry, with the deployment in it; everything it started is gone on exit. Raises OSError.

    processes: how many tasks may really run at once on this machine. pythons: which Python runs which images.
    """
    from argosy.local.cloud import LocalAws
    from argosy.local.options import LocalOptions

    with LocalAws(0, LocalOptions(processes=processes, pythons=pythons or {})) as aws:
        yield aws
