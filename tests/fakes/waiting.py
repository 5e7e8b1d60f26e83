"""Waits for other processes: on a condition, with a time-out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, TypeVar

T = TypeVar("T")
PATIENCE_S = 120.0  # of a busy machine


def until(condition: Callable[[], T | Literal[False] | None], timeout_s: float = PATIENCE_S) -> T:
    """The first true result of `condition`."""
    ends, pause_s = time.monotonic() + timeout_s, 0.005
    while time.monotonic() < ends:
        found = condition()
        if found:
            return found
        time.sleep(pause_s)  # between two looks, not instead of one
        pause_s = min(0.25, pause_s * 1.5)  # a look may cost more than what it looks at
    raise AssertionError(f"it did not happen within {timeout_s} s: {condition}")


def is_gone(pid: int) -> bool:
    """No process with this id is left (a zombie is gone, too)."""
    import psutil

    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
