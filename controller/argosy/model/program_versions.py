"""The versions of a run's program: the one that was submitted, and those that retries brought."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

MOST_VERSIONS = 100  # of a run; a task's version is one byte
FIRST_ATTEMPT_VARIABLE = "ARGOSY_FIRST_ATTEMPT"  # of a task: a part of an earlier attempt is another version's


class ProgramVersion(NamedTuple):
    """A job document, which never changes, and the totals of its attempts. For example the second version of a run:
    `("s3://b/argosy/programs/jobs/3f2a.json", 1795939200.0, 3, 12.5, 2)`. Numbers start at 1; columns hold the place in
    the run's list, from 0."""

    job: str  # s3:// address; the name is the content's digest
    added_at: float  # epoch seconds: when it was submitted, or the retry requested
    attempts: int = 0  # attempts that have ended
    seconds: float = 0.0  # of them together
    results: int = 0  # tasks whose result it made

    @property
    def digest(self) -> str:
        return self.job.rpartition("/")[2].partition(".")[0]


def submitted_version(spec: Mapping[str, Any], at: float) -> list[ProgramVersion]:
    """The first version; none for a run that brought no program."""
    return [ProgramVersion(str(spec["job"]), at)] if "job" in spec else []
