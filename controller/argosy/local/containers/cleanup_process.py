"""The program that ends local mode's programs after local mode itself was killed.

Run as a separate script, by its path: it imports only the standard library. Local mode writes the starts and ends of
process groups to its standard input; the kernel closes that input when local mode ends, in whatever way. Then the
remaining groups are killed, the containers with local mode's label are removed, and its MPS daemons are ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable

BEGUN, ENDED, LABELLED, SHARED, WELL = "+", "-", "label", "mps", "well"  # WELL: local mode has cleaned up by itself


def watch(lines: Iterable[str]) -> tuple[set[int], list[tuple[str, str]], list[str]]:
    """The entries that remain after the last line: process groups, labels of containers with their engine, and folders
    of MPS daemons' pipes."""
    groups: set[int] = set()
    labels: list[tuple[str, str]] = []
    pipes: list[str] = []
    for line in lines:
        what, *words = line.split()
        if what == BEGUN:
            groups.add(int(words[0]))
        elif what == ENDED:
            groups.discard(int(words[0]))
        elif what == LABELLED:
            labels.append((words[0], words[1]))
        elif what == SHARED:
            pipes.append(" ".join(words))
        elif what == WELL:
            return set(), [], []
    return groups, labels, pipes


def clean(groups: Iterable[int], labels: Iterable[tuple[str, str]], pipes: Iterable[str]) -> None:
    """Programs first, in case they are the engine's own."""
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended by itself
            os.killpg(group, signal.SIGKILL)
    for engine, label in labels:
        asked = [engine, "ps", "--all", "--quiet", "--filter", f"label={label}"]
        found = subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if names := found.stdout.split():
            subprocess.run(
                [engine, "rm", "--force", *names], stdin=subprocess.DEVNULL, capture_output=True, check=False
            )
    for folder in filter(os.path.isdir, pipes):
        told = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": folder}
        with contextlib.suppress(OSError):
            subprocess.run(["nvidia-cuda-mps-control"], input=b"quit\n", env=told, capture_output=True, check=False)


if __name__ == "__main__":
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # they are for local mode, which ends it
    clean(*watch(sys.stdin))
