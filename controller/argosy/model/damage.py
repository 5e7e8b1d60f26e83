"""Which parts of the stored state cannot be read, and what follows?

A document with a wrong checksum, column or member stops neither the controller nor the other runs. It is left out and
named here; `lifecycle.quarantine` repairs what depends on it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:  # it needs numpy, and commands that read schedules do without
    from argosy.model.run_record import RunRecord

T = TypeVar("T")

# What unpacking and reading the bytes of a damaged document can raise; CorruptChunk, UnicodeDecodeError and
# JSONDecodeError are ValueErrors.
FAULTS = (ValueError, KeyError, TypeError, AttributeError, OverflowError, zlib.error)


# Rises when an older version would misread what a newer one stores. Version N reads formats N and N-1, so that a
# deployment resumes where the previous one stopped. Fields that merely have a default need no new format, and terms of
# a run that an earlier version did not store are read from its spec (`spec.earlier_versions`).
FORMAT = 1


class CorruptChunk(ValueError):
    """A stored chunk whose checksum, columns or length are wrong."""


class UnreadableState(ValueError):
    """The root of the state cannot be read. Without it nothing is known, so nothing is touched."""


class NewerFormat(ValueError):
    """The state was written by a newer version of Argosy. This version would misread it, so it leaves it unchanged."""


class OlderFormat(ValueError):
    """The state was written by a version too old to be read."""


UNREADABLE = (CorruptChunk, UnreadableState, NewerFormat, OlderFormat)  # what reading the state refuses with a sentence


@dataclass(frozen=True, slots=True)
class Damage:
    """One unreadable document. `run_id`: its run; `record`: its record if readable, or `body`, its bytes."""

    document: str
    reason: str
    run_id: str = ""
    record: RunRecord | None = None
    body: bytes = b""

    @property
    def sentence(self) -> str:
        return f"the stored {self.document} is corrupt: {self.reason}"


@dataclass(slots=True)
class Losses:
    """The damage that a load found, and the repairs that remain. Not stored: the next load finds it again."""

    found: list[Damage] = field(default_factory=list)
    runs: list[Damage] = field(default_factory=list)  # of open runs that are not set aside yet
    kept: set[str] = field(default_factory=set)  # documents that stay as they are until a person restores them
    buckets: set[int] = field(default_factory=set)  # of instances, to be written again
    attempts: bool = False  # rows without an open run, or tasks whose row is lost
    blind: bool = False  # instances or fleets are unknown until a sweep shows them: nothing is bought before
    seen: set[str] = field(default_factory=set)  # cells that a complete sweep has shown while others are unknown


def tried(document: str, read: Callable[[], T], run_id: str = "", record: RunRecord | None = None) -> T | Damage:
    """The result of `read`, or the damage that it met."""
    try:
        return read()
    except Exception as fault:  # noqa: BLE001 - FAULTS, or our own fault at this document: the others continue
        reason = str(fault) if isinstance(fault, CorruptChunk) else f"{type(fault).__name__}: {fault}"
        return Damage(document, reason[:300], run_id, record)


def check_format(number: int, newest: int = FORMAT) -> None:
    """Check a stored root's format, for a version that writes `newest`. Raises NewerFormat, OlderFormat with a
    sentence."""
    if number > newest:
        raise NewerFormat(f"state format {number} is newer than {newest}: deploy the newer version again")
    if number < newest - 1:
        raise OlderFormat(f"state format {number} is older than {newest - 1}: deploy an intermediate version first")
