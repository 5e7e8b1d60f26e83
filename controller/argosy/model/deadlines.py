"""Until when is a run to be done? From what its spec says, a moment or a time from its submission, to epoch seconds."""

from __future__ import annotations

import re
from datetime import datetime

LONGEST_S = 366 * 86_400.0  # ours: a deadline further away than a year is a typing error
_UNITS_S = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}
_NUMBER = r"(\d{1,9}(?:\.\d{1,3})?)"
_SHORT = re.compile("".join(rf"(?:{_NUMBER}{unit})?" for unit in _UNITS_S), re.ASCII)
_ISO = re.compile(rf"P(?:{_NUMBER}D)?(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?", re.ASCII)
_EXAMPLES = "give a time such as 2026-11-21T18:00:00Z or a duration such as 90m, 2h, 1h30m or PT2H"


def deadline_at(text: str, submitted_at: float) -> float:
    """Epoch seconds. Raises ValueError with a sentence: no such form, no offset from UTC, no time at all."""
    duration_s = duration_of(text)
    if duration_s is not None:
        if not 0 < duration_s <= LONGEST_S:
            raise ValueError("must be longer than nothing and at most 366 days")
        return submitted_at + duration_s
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as fault:
        raise ValueError(f"is neither a time nor a duration: {_EXAMPLES}") from fault
    if moment.tzinfo is None:
        raise ValueError("is a time without its offset from UTC: end it with Z, or with +02:00")
    if not 2000 <= moment.year <= 2100:
        raise ValueError("must lie between the years 2000 and 2100")
    return moment.timestamp()


def duration_of(text: str) -> float | None:
    """Seconds of `2h`, `1h30m`, `PT2H`; None for anything else."""
    found = _SHORT.fullmatch(text) or _ISO.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    return sum(float(given or 0) * unit_s for given, unit_s in zip(found.groups(), _UNITS_S.values(), strict=True))
