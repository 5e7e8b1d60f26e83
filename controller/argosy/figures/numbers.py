"""Numbers for people, with their units; JSON never goes through here."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def money(usd: float) -> str:
    """`$12.34`, `$0.123`, `$0.00213`: three significant digits below a dollar."""
    if usd >= 1 or usd == 0:
        return f"${usd:,.2f}"
    return f"${usd:.5f}" if usd < 0.01 else f"${usd:.3f}"


def duration(seconds: float) -> str:
    """`0.8 s`, `45 s`, `1m 12s`, `2h 05m`, `3d 04h`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    total = round(seconds)
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60}m {total % 60:02d}s"
    if total < 86_400:
        return f"{total // 3600}h {total % 3600 // 60:02d}m"
    return f"{total // 86_400}d {total % 86_400 // 3600:02d}h"


def size(count: float) -> str:
    """Bytes as `512 B`, `1.4 KiB`, ..."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def counted(count: int, noun: str) -> str:
    """`1 task`, `1,200 tasks`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def clock(iso: str | None) -> str:
    """`2026-11-21 06:27:33 UTC`; `-` when there is no time yet."""
    moment = instant(iso)
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment else "-"


def instant(iso: str | None) -> datetime | None:
    return datetime.fromisoformat(iso).astimezone(UTC) if iso else None


def start_up(parts: Mapping[str, Any] | None) -> str:
    """`boot 90 s, pull 1 min 40 s, start 5 s`, of a `startUp`, as far as it is known."""
    named = [(name, (parts or {}).get(f"{name}Seconds")) for name in ("boot", "pull", "start", "load")]
    return ", ".join(f"{name} {duration(seconds)}" for name, seconds in named if seconds is not None)


def share(part: float, whole: float) -> str:
    """`71 %`; `-` when the whole is 0."""
    return f"{100 * part / whole:.0f} %" if whole else "-"


def saved(spot_usd: float, on_demand_usd: float) -> str:
    """`66 % less`; empty when nothing was spent or nothing was saved."""
    if on_demand_usd <= 0 or spot_usd >= on_demand_usd:
        return ""
    return f"{100 * (1 - spot_usd / on_demand_usd):.0f} % less"
