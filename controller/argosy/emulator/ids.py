"""Where do ids come from? A counter behind a hash: they look like AWS's, and the same seed gives the same ids."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256


def counted_ids(seed: int | str = 0) -> Callable[[], str]:
    """A source of 32 lower-case hex digits, all different, the same sequence for the same seed."""
    count = 0

    def new_id() -> str:
        nonlocal count
        count += 1
        return sha256(f"{seed}/{count}".encode()).hexdigest()[:32]

    return new_id


def as_uuid(digits: str) -> str:
    """32 hex digits as 8-4-4-4-12."""
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))
