"""Which runs are suspended because the controller's own code failed on them?

A suspended run is still open: its tasks continue for some minutes, and it is retried after a growing pause.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from argosy.model.run_record import RunRecord

FIRST_PAUSE_S, LONGEST_PAUSE_S, GROWTH = 60.0, 3600.0, 4.0
MOST_S = 86_400.0  # a run at which the controller fails for this long is given up
SURVIVED_S = 600.0  # after this long without a failure, the next one counts as the first
MOST_UNWATCHED = 3  # failures in a row: five minutes after the first one, a run's tasks are stopped, an instance ended
MAX_REASON = 500


@dataclass(slots=True)
class Suspension:
    """One run. Times are epoch seconds."""

    record: RunRecord  # as it was last stored
    reason: str
    since: float  # when the controller first failed at it
    again_at: float
    times: int = 1  # in a row

    def stored_record(self) -> RunRecord:
        """The reason shown to users until then."""
        until = datetime.fromtimestamp(self.again_at, UTC).strftime("%H:%M:%S UTC")
        stops = ", stops its tasks" if self.times >= MOST_UNWATCHED else ""
        sentence = f"suspended: the controller failed at this run{stops} and tries again at {until}: {self.reason}"
        return replace(self.record, waiting=sentence, suspended_at=self.since)


def pause_s(times: int) -> float:
    """The pause after the n-th failure in a row: a minute, then four times as long, at most an hour."""
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * GROWTH ** min(times - 1, 10))


def reason_of(error: BaseException) -> str:
    """The error and where it was raised, in one line."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {str(error)[:200]}{where}"
