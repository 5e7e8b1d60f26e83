"""How does the api write a time?"""

from __future__ import annotations

from datetime import UTC, datetime


def iso(epoch_s: float, precision: str = "milliseconds") -> str | None:
    """`2026-11-21T06:27:33.000Z`; None for 0, which means "not yet". precision: as of `datetime.isoformat`."""
    if not epoch_s:
        return None
    return datetime.fromtimestamp(epoch_s, UTC).isoformat(timespec=precision).replace("+00:00", "Z")
