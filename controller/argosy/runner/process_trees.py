"""The processes of this machine as trees: which belong to a program, and what do they use?"""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import psutil

WATCH_S = 0.1  # interval at which resident memory is read


class ProcessTrees:
    """The children of each process of this machine, listed at most once in WATCH_S for all programs.

    Listing them for each program took 5 of the 33 s of CPU time of a demo with 28 tasks, and reading every process's
    parent for each list a third of local mode's own. So the parent is read once. It changes only when the parent ends,
    and then the process belongs to no program any more.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._read_at = float("-inf")
        self._parents: dict[int, int] = {}
        self._children: dict[int, list[int]] = {}

    def resident_bytes(self, pid: int) -> int:
        """The memory of the process and of all its descendants."""
        total = 0
        for process in self._tree(pid):
            with suppress(psutil.Error):  # it has ended in the meantime
                total += psutil.Process(process).memory_info().rss
        return total

    def seconds_and_bytes(self, pid: int) -> tuple[float, int]:
        """The processor time of these processes, including ended children that their parents have waited for, and their
        memory."""
        seconds, size = 0.0, 0
        for process in self._tree(pid):
            with suppress(psutil.Error):
                read = psutil.Process(process)
                with read.oneshot():
                    seconds += sum(read.cpu_times()[:4])
                    size += read.memory_info().rss
        return seconds, size

    def _tree(self, pid: int) -> set[int]:
        children, tree, left = self._now(), set[int](), [pid]
        while left:
            if (process := left.pop()) not in tree:  # a reused id may close a circle
                tree.add(process)
                left += children.get(process, ())
        return tree

    def _now(self) -> dict[int, list[int]]:
        with self._guard:
            if time.monotonic() - self._read_at >= WATCH_S * 0.9:
                self._parents = {pid: self._parents.get(pid) or _parent_of(pid) for pid in psutil.pids()}
                self._children = {}
                for process, parent in self._parents.items():
                    self._children.setdefault(parent, []).append(process)
                self._read_at = time.monotonic()
            return self._children


def _parent_of(pid: int) -> int:
    with suppress(psutil.Error):  # it has ended in the meantime
        return psutil.Process(pid).ppid()
    return 0


TREES = ProcessTrees()
