"""A run's failed attempts, counted by reason and exit code."""

from __future__ import annotations

from typing import NamedTuple

MOST_GROUPS = 50
OTHERS = -1  # in place of a row of the run's reasons: all failures beyond MOST_GROUPS


class FailureGroup(NamedTuple):
    """Attempts that failed with one reason and exit code. Times are epoch seconds; the indexes of all their tasks lie
    between the first and the last."""

    reason: int  # row in the run's `reasons`, or OTHERS
    exit_code: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which no group needs
    first_index: int
    last_index: int
    first_at: float
    last_at: float


def note_failure(groups: list[FailureGroup], reason: int, exit_code: int, index: int, at: float) -> None:
    """Count one more failure. The last group counts all kinds that have no separate group."""
    place = _place(groups, reason, exit_code)
    if place is None and len(groups) >= MOST_GROUPS - 1:
        reason = OTHERS
        place = _place(groups, reason, exit_code := 0)
    if place is None:
        groups.append(FailureGroup(reason, exit_code, 1, index, index, at, at))
        return
    before = groups[place]
    groups[place] = before._replace(
        count=before.count + 1,
        first_index=min(before.first_index, index),
        last_index=max(before.last_index, index),
        first_at=min(before.first_at, at),
        last_at=max(before.last_at, at),
    )


def _place(groups: list[FailureGroup], reason: int, exit_code: int) -> int | None:
    same = (place for place, group in enumerate(groups) if group[:2] == (reason, exit_code))
    return next(same, None)
