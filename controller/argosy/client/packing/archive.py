"""A program's folder as one object: a .tar.gz whose bytes depend on the files alone."""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from argosy.client.packing.folder import ChangedMeanwhile, Entry


@dataclass(frozen=True, slots=True)
class Parcel:
    """Data on this disk that a program needs in its tasks. kind: program | wheel. is_stored: known to be in S3."""

    path: Path
    sha256: str
    size: int  # bytes
    kind: str
    is_stored: bool = False


def pack_folder(entries: Sequence[Entry], target: Path) -> Parcel:
    """Writes the archive to `target`. It contains neither times nor owners, so that the same files make the same bytes.

    Raises ChangedMeanwhile for a file that changes during packing or that is gone.
    """
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for entry in entries:
            _add(archive, entry)
    return parcel_of(target, "program")


def parcel_of(path: Path, kind: str) -> Parcel:
    """The digest of a complete file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Parcel(path, digest, path.stat().st_size, kind)


def _add(archive: tarfile.TarFile, entry: Entry) -> None:
    member = tarfile.TarInfo(entry.name)
    member.mode = 0o755 if entry.is_executable or not entry.is_file else 0o644
    if entry.target:
        member.type, member.linkname = tarfile.SYMTYPE, entry.target
        archive.addfile(member)
    elif not entry.is_file:
        member.type = tarfile.DIRTYPE
        archive.addfile(member)
    else:
        _add_file(archive, member, entry)


def _add_file(archive: tarfile.TarFile, member: tarfile.TarInfo, entry: Entry) -> None:
    member.size = entry.size
    try:
        with entry.path.open("rb") as file:
            before = os.fstat(file.fileno())
            archive.addfile(member, file)
            after = os.fstat(file.fileno())
        if (after.st_size, after.st_mtime_ns) != (entry.size, before.st_mtime_ns):
            raise OSError  # as for a file that ends too early
    except OSError as fault:
        why = fault.strerror or "it changed in the meantime"
        raise ChangedMeanwhile(f"{entry.path} could not be packed: {why}.", next_step="try again") from fault
