"""The last log lines of a run's failed attempts, read if their exit codes do not distinguish them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

MOST_READ = 5  # attempts
_VARIES = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ReadFailures:
    """Read the ends of the logs of these attempts, at most MOST_READ. task_arns: their ECS tasks."""

    run_id: str
    task_arns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FailuresRead:
    """lines: the last line of each, redacted; "" = none, or it cannot be read."""

    run_id: str
    lines: tuple[str, ...] = ()


def differ(lines: Iterable[str]) -> bool:
    """Whether two of the lines differ. Differences in numbers do not count, and an unknown line differs from no other.

    >>> differ(["ValueError: row 3", "ValueError: row 17", ""]), differ(["ValueError: row 3", "KeyError: 'a'"])
    (False, True)
    """
    return len({_VARIES.sub("#", line) for line in lines if line}) > 1
