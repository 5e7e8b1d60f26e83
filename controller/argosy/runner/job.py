"""A job document: the archives of a program, its setup, and the bounds of its result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argosy.model.exit_codes import WRONG_REQUEST
from argosy.model.input_folder import ADDRESS
from argosy.model.run_terms import RUNNER_PROTOCOL
from argosy.runner.order import RunnerFault, split_address

PROGRAM, WHEEL = "program", "wheel"
MOST_FILES = 10_000
MOST_BYTES = 50 * 1024**3


@dataclass(frozen=True, slots=True)
class JobArchive:
    """One archive: `kind` is program (.tar.gz, or an uploaded folder's address) or wheel; sha256 in hexadecimal, size
    in bytes."""

    uri: str
    sha256: str
    size: int
    kind: str

    @property
    def is_in_chunks(self) -> bool:
        return ADDRESS.fullmatch(self.uri) is not None


@dataclass(frozen=True, slots=True)
class Job:
    """The archives, the setup commands that run before the program (a shell's text), and the bounds of a result's
    folder."""

    archives: tuple[JobArchive, ...] = ()
    setup: str | None = None
    most_files: int = MOST_FILES
    most_bytes: int = MOST_BYTES

    def of(self, kind: str) -> tuple[JobArchive, ...]:
        """The archives of one kind, in the document's order."""
        return tuple(each for each in self.archives if each.kind == kind)


def read_job(text: bytes, uri: str) -> Job:
    """Unknown members are ignored: later versions may add some. Raises RunnerFault, which names the address."""
    try:
        document = json.loads(text)
        return _job(document)
    except (ValueError, TypeError, KeyError, AttributeError) as fault:
        raise RunnerFault(WRONG_REQUEST, f"the job {uri} cannot be read: {fault or type(fault).__name__}") from fault


def _job(document: Any) -> Job:
    """Raises ValueError, TypeError, KeyError or AttributeError."""
    if document["protocol"] != RUNNER_PROTOCOL:
        raise ValueError(f"it has protocol {document['protocol']}, and this runner supports {RUNNER_PROTOCOL}")
    limits = document.get("limits") or {}
    setup = document.get("setup")
    if setup is not None and not isinstance(setup, str):
        raise ValueError("setup is not text")
    return Job(
        archives=tuple(_archive(each) for each in document.get("archives") or ()),
        setup=setup or None,
        most_files=int(limits.get("resultFiles", MOST_FILES)),
        most_bytes=int(limits.get("resultBytes", MOST_BYTES)),
    )


def _archive(said: Mapping[str, Any]) -> JobArchive:
    archive = JobArchive(str(said["uri"]), str(said["sha256"]).lower(), int(said["bytes"]), str(said["kind"]))
    if archive.kind not in (PROGRAM, WHEEL):
        raise ValueError(f"{archive.kind!r} is not a kind of archive")
    split_address(archive.uri, "the archive")
    return archive
