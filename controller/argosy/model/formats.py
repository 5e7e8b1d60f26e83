"""Which formats of the stored state does this version read and write?

The format rises when an older version would misread what a newer one stores. Version N reads N and N-1, so that a
deployment goes on where the one before stopped; a state of a newer format is refused, because an older version would
drop what it does not know. Fields that merely have a default need no new format.

1  columns as .npz archives; set-backs and reopened runs unknown
2  columns as they lie in memory (`packing`); set-backs that count and the revival of a reopened run are stored
"""

from __future__ import annotations

FORMAT = 2
OLDEST = FORMAT - 1


class NewerFormat(ValueError):
    """The state was written by a newer version of Argosy; this one must not touch it."""


class OlderFormat(ValueError):
    """The state was written by a version too old to be read."""


def check(number: int) -> None:
    """Of a stored root. Raises NewerFormat, OlderFormat with a sentence."""
    if number > FORMAT:
        raise NewerFormat(f"state format {number} is newer than {FORMAT}: deploy the newer version again")
    if number < OLDEST:
        raise OlderFormat(f"state format {number} is older than {OLDEST}: deploy a version in between first")
