"""How does the program end? Exit codes, and the exceptions behind those that say whether another try makes sense."""

from __future__ import annotations

import signal

EXIT_BAD_INPUT = 64  # sysexits.h EX_USAGE; the run spec next to this program never retries it
EXIT_TEMPORARY = 75  # sysexits.h EX_TEMPFAIL
EXIT_STOPPED = 128 + signal.SIGTERM


class BadInput(Exception):
    """What was given cannot be used, wherever and however often it is tried. `faults`: every one, one sentence each."""

    def __init__(self, *faults: str) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


class WrongImage(BadInput):
    """The task cannot do its work, wherever it runs."""


class NoDevice(Exception):
    """The GPUs do not show up here: another instance may do better."""
