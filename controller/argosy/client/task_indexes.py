"""The tasks that a user names, as first and last index of each stretch."""

from __future__ import annotations

import re
from collections.abc import Iterable


def stretches(indexes: Iterable[int]) -> list[list[int]]:
    """Of tasks in any order."""
    found: list[list[int]] = []
    for index in sorted(set(indexes)):
        if found and found[-1][1] == index - 1:
            found[-1][1] = index
        else:
            found.append([index, index])
    return found


def parsed(text: str) -> list[list[int]]:
    """`3,7-12`. Raises ValueError with a sentence."""
    found: list[list[int]] = []
    for part in text.split(","):
        ends = re.fullmatch(r"\s*([0-9]{1,7})(?:\s*-\s*([0-9]{1,7}))?\s*", part, re.ASCII)
        if ends is None:
            raise ValueError(f"{part.strip()[:40]!r} is neither an index nor a range: write 3,7-12")
        found.append([int(ends[1]), int(ends[2] or ends[1])])
    return found
