"""Functions that tests call in forks."""

from __future__ import annotations

import os
import signal
import sys


def tell() -> None:
    """Its arguments, its environment, its folder and its session."""
    print(*sys.argv[1:], os.environ.get("TOLD"), os.environ.get("HOME"), os.getcwd(), os.getsid(0) == os.getpid())


def copy() -> int:
    """Standard input to standard output; the exit status is the number of its lines."""
    lines = sys.stdin.readlines()
    sys.stdout.writelines(lines)
    return len(lines)


def leave() -> None:
    sys.exit(7)


def fail() -> None:
    raise ValueError("as asked")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def import_a_library() -> None:
    import colorsys

    print(colorsys.rgb_to_hsv(0.0, 0.0, 0.0))
