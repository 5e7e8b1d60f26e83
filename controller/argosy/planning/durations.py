"""The expected seconds of a task: from past runs of the same name, else from the spec, else a guess."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from argosy.model.run_terms import RunTerms
from argosy.model.stored.run_record import RunRecord

GUESS_S = 60.0
# How far the mean of the next run may lie from what is known. Our choice: runs on the same images and data agree to
# within a half; a person's estimate is off by a factor of two; a guess, by a factor of ten.
AFTER_PAST, AFTER_ESTIMATE, AFTER_NOTHING = (0.67, 1.5), (0.5, 2.0), (0.1, 10.0)
_PAST_RUNS = 20  # the newest that count


@dataclass(frozen=True, slots=True)
class Seconds:
    """Mean seconds of one task with a range, and where they come from."""

    low: float
    expected: float
    high: float
    source: str


def seconds_of(terms: RunTerms, records: Iterable[RunRecord]) -> Seconds:
    """Of a run of these terms. records: of earlier runs, newest first; those of other names do not count, and shards
    of another size count in proportion."""
    past = [record for record in records if record.name == terms.name and record.ended][:_PAST_RUNS]
    ended = sum(record.ended for record in past)
    if ended:
        mean = sum(record.ended_seconds * _scale(record, terms) for record in past) / ended
        runs = "an earlier run" if len(past) == 1 else f"{len(past)} earlier runs"
        return _spread(mean, AFTER_PAST, f"{ended:,} tasks of {runs} took {mean:,.1f} s on average")
    estimate = terms.expected_seconds
    if estimate:
        return _spread(estimate, AFTER_ESTIMATE, f"array.expectedSeconds says {estimate:,.1f} s")
    return _spread(
        GUESS_S,
        AFTER_NOTHING,
        f"unknown: {GUESS_S:.0f} s is assumed; set array.expectedSeconds for a useful forecast",
    )


def _scale(record: RunRecord, terms: RunTerms) -> float:
    """How many times larger a shard of this run is than one of the earlier run."""
    was, is_now = record.shard_size, terms.shard_size
    return is_now / was if was and is_now else 1.0


def _spread(mean: float, around: tuple[float, float], source: str) -> Seconds:
    mean = max(mean, 0.1)  # tasks that take no time would need no instance
    return Seconds(mean * around[0], mean, mean * around[1], source)
