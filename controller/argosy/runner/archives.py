"""Unpacking an untrusted archive so that nothing lands outside its folder.

Names are checked one by one, at the time of writing, so that a link from the archive itself cannot lead elsewhere. Only
files, folders and links that stay inside are written; no owner, no set-user-id, no device. The size that
an archive may unpack to is limited, because all tasks share the disk.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from argosy.model.exit_codes import WRONG_REQUEST
from argosy.runner.order import RunnerFault

LEAST_BYTES, MOST_TIMES = 1 << 30, 20  # an archive may unpack to 1 GiB, or to 20 times its size if that is more
ENTRY_BYTES = 512  # counted for each entry besides its content
_DAMAGED = (tarfile.TarError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)
_IMPORTABLE = ("purelib", "platlib")  # folders of NAME.data whose files belong at the top (PEP 427)


def unpack_program(archive: Path, folder: Path, uri: str) -> None:
    """A .tar.gz. Raises RunnerFault, which names the address, or OSError of the disk."""
    with _readable(uri), tarfile.open(archive, "r:gz") as opened:
        left = _most_of(archive)
        for member in opened:
            left = _less(left, member.size, archive, uri)  # its content cannot be longer
            _unpack_member(opened, member, folder, uri)


def unpack_wheel(archive: Path, folder: Path, uri: str) -> None:
    """A wheel's importable files. Raises RunnerFault, which names the address, or OSError of the disk."""
    with _readable(uri), zipfile.ZipFile(archive) as opened:
        left = _most_of(archive)
        for info in opened.infolist():
            left = _less(left, info.file_size, archive, uri)
            name = _importable(info.filename)
            if name and not info.is_dir():
                target = _inside(folder, name, uri)
                with opened.open(info) as source:
                    _write(target, source, executable=bool(info.external_attr >> 16 & 0o111))


def _most_of(archive: Path) -> int:
    return max(LEAST_BYTES, MOST_TIMES * archive.stat().st_size)


def _less(left: int, size: int, archive: Path, uri: str) -> int:
    """The bytes that are left for further entries. Raises RunnerFault."""
    if (after := left - size - ENTRY_BYTES) < 0:
        says = f"the archive {uri} would unpack to more than {_most_of(archive) >> 20} MiB"
        raise RunnerFault(WRONG_REQUEST, says)
    return after


@contextmanager
def _readable(uri: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGED as fault:
        raise RunnerFault(
            WRONG_REQUEST, f"the archive {uri} cannot be read: {fault or type(fault).__name__}"
        ) from fault
    except RuntimeError as fault:  # zipfile: it is encrypted
        raise RunnerFault(WRONG_REQUEST, f"the archive {uri} cannot be read: {fault}") from fault


def _unpack_member(opened: tarfile.TarFile, member: tarfile.TarInfo, folder: Path, uri: str) -> None:
    target = _inside(folder, member.name, uri)
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
    elif member.isreg():
        source = opened.extractfile(member)
        assert source is not None  # it is a file
        with source:
            _write(target, source, executable=bool(member.mode & 0o111))
    elif member.issym():
        if os.path.isabs(member.linkname) or not _is_inside(folder, target.parent / member.linkname):
            raise RunnerFault(WRONG_REQUEST, f"the archive {uri} has a link out of its folder: {member.name}")
        _cleared(target).symlink_to(member.linkname)
    else:
        raise RunnerFault(
            WRONG_REQUEST, f"the archive {uri} has an entry that is not a file, folder or link: {member.name}"
        )


def _inside(folder: Path, name: str, uri: str) -> Path:
    """Where a member is written; its parent is there, and inside, whatever links have been unpacked before."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise RunnerFault(WRONG_REQUEST, f"the archive {uri} has a name that leaves its folder: {name}")
    target = folder.joinpath(*path.parts)
    if target != folder:
        if not _is_inside(folder, target.parent):
            raise RunnerFault(
                WRONG_REQUEST, f"the archive {uri} has a name that leaves its folder through a link: {name}"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
    return target


def _is_inside(folder: Path, path: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _write(target: Path, source: IO[bytes], *, executable: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    opened = os.open(_cleared(target), flags, 0o755 if executable else 0o644)
    with open(opened, "wb") as file:
        shutil.copyfileobj(source, file, 1024 * 1024)


def _cleared(target: Path) -> Path:
    """If an earlier member or archive has used a name, the last one counts."""
    if target.is_symlink() or target.is_file():
        target.unlink()
    return target


def _importable(name: str) -> str:
    """Where a wheel's file belongs; empty for one that Python does not import."""
    first, _, rest = name.partition("/")
    if not first.endswith(".data"):
        return name
    kind, _, below = rest.partition("/")
    return below if kind in _IMPORTABLE else ""


UNPACK: dict[str, Callable[[Path, Path, str], None]] = {"program": unpack_program, "wheel": unpack_wheel}
