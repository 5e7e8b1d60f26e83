"""Long work in a thread, so that its caller can react to something else in the meantime."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def started(work: Callable[[], T], when_over: Callable[[], object]) -> Future[T]:
    """The future of the work, which runs in a daemon thread. when_over: called in that thread once the future has a
    result or an exception."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as fault:  # noqa: BLE001 - it is raised where the result is asked for
            done.set_exception(fault)
        when_over()

    threading.Thread(target=run, name="argosy-transfer", daemon=True).start()
    return done
