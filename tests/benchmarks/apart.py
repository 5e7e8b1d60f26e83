"""Measurements in a separate process, so that its peak memory is its own."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def apart(measure: Callable[..., T], *arguments: Any) -> T:
    """The result of `measure`, a function of a module, in a new process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(measure, *arguments).result()


def peak_mib() -> float:
    """The most memory that this process has held. (`ru_maxrss` is never below that of the process that started it.)"""
    [kib] = re.findall(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(kib) / 1024
