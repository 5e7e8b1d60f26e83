"""Which files of a folder are uploaded with a program? In order, or with a sentence about files that cannot be."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy.client.errors import InvalidInput
from argosy.client.packing.ignore_rules import IgnoreRules

SIZE_LIMIT = 4 * 1024**3  # bytes of all files, which every task would have to fetch
COUNT_LIMIT = 100_000  # files and folders: a larger folder is probably the wrong one
_NAMED = 5  # the largest entries that are named if a folder is too large
_NEVER = frozenset({".git", "__pycache__"})
_VIRTUAL_ENVIRONMENT = "pyvenv.cfg"  # in a folder of links to this machine's Python
HINT = "list what to leave out in .gitignore or .argosyignore, or upload another folder"


class ChangedMeanwhile(InvalidInput):
    """A file changed while it was read: another reading may succeed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, a folder or a link. name: from the top of the folder, with slashes."""

    name: str
    path: Path
    size: int = 0  # bytes of a file
    is_file: bool = False
    is_executable: bool = False
    target: str = ""  # of a link


def packed_entries(folder: Path, without: Collection[Path] = (), most: int = COUNT_LIMIT) -> list[Entry]:
    """Sorted by name. without: paths that are always left out, such as a file that is written there;
    most:

    how many entries it may have.
    Raises InvalidInput: too large, not readable, a link that leads out of it, or something that is not a file.
    """
    top = folder.resolve()
    if not top.is_dir():
        raise InvalidInput(f"{folder} is not a folder.")
    left_out = {each.parent.resolve() / each.name for each in without}
    try:
        rules = IgnoreRules.above(top)
    except OSError as fault:
        raise _unreadable(Path(fault.filename or top), fault) from fault
    entries = []
    for entry in _walk(top, top, rules, left_out):
        entries.append(entry)
        if len(entries) > most:
            raise InvalidInput(f"{folder} has more than {most:,} files and folders.", next_step=HINT)
    _check_size(folder, entries)
    return sorted(entries, key=lambda each: each.name)


def _walk(top: Path, folder: Path, rules: IgnoreRules, left_out: Collection[Path]) -> Iterator[Entry]:
    try:
        rules = rules.within(folder)
        children = sorted(os.scandir(folder), key=lambda each: each.name)
    except OSError as fault:
        raise _unreadable(Path(fault.filename or folder), fault) from fault
    for child in children:
        path = Path(child.path)
        is_folder = child.is_dir(follow_symlinks=False)
        if child.name in _NEVER or path in left_out or rules.ignore(path, is_folder):
            continue
        if is_folder:
            if not (path / _VIRTUAL_ENVIRONMENT).exists():
                yield Entry(_name(top, path), path)
                yield from _walk(top, path, rules, left_out)
        else:
            yield _entry(top, path)


def _entry(top: Path, path: Path) -> Entry:
    name, seen = _name(top, path), path.lstat()
    if stat.S_ISLNK(seen.st_mode):
        return Entry(name, path, target=_inner_target(top, path))
    if not stat.S_ISREG(seen.st_mode):
        raise InvalidInput(f"{path} is neither a file nor a folder, so it cannot be uploaded.", next_step=HINT)
    if not os.access(path, os.R_OK):
        raise _unreadable(path, PermissionError(13, "Permission denied"))
    return Entry(name, path, seen.st_size, is_file=True, is_executable=bool(seen.st_mode & stat.S_IXUSR))


def _name(top: Path, path: Path) -> str:
    name = path.relative_to(top).as_posix()
    try:
        name.encode()
    except UnicodeEncodeError as fault:
        raise InvalidInput(f"{os.fsencode(path)!r} has a name that is not UTF-8: rename it.") from fault
    return name


def _inner_target(top: Path, path: Path) -> str:
    """The target of a link, if it is in the folder wherever the folder is."""
    target = os.readlink(path)
    aim = Path(os.path.normpath(path.parent / target))
    if os.path.isabs(target) or not aim.is_relative_to(top):
        raise InvalidInput(
            f"{path} is a link that points outside {top} (to {target}): it would be broken on another machine.",
            next_step="copy its target into the folder, or " + HINT,
        )
    return target


def _unreadable(path: Path, fault: OSError) -> InvalidInput:
    return InvalidInput(f"{path} cannot be read: {fault.strerror}.", next_step=HINT)


def written_here(entries: Sequence[Entry]) -> list[Entry]:
    """The files among these that this process's standard output or standard error goes to."""
    streams = []
    for descriptor in (1, 2):
        with suppress(OSError):  # it is closed
            if stat.S_ISREG((about := os.fstat(descriptor)).st_mode):
                streams.append((about.st_dev, about.st_ino))
    return [each for each in entries if streams and each.is_file and _identity(each.path) in streams]


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def left_out(run: Any, folder: Path, entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """(name, why) of each file or folder that the words of a command name, which is there and is not uploaded."""
    words = re.split(r"[\s\"';|&<>()]+", run) if isinstance(run, str) else [w for w in run or () if isinstance(w, str)]
    top, names = folder.resolve(), {each.name for each in entries}
    for word in dict.fromkeys(part for each in words for part in (each, each.partition("=")[2])):
        name = os.path.relpath(os.path.normpath(top / word.replace("$${", "${")), top)
        if os.path.isabs(word) or name.startswith("..") or name in names or not os.path.exists(top / name):
            continue
        if why := _why_left_out(top, name):
            yield word, why


def _why_left_out(top: Path, name: str) -> str:
    rules, path = IgnoreRules.above(top), top
    for part in Path(name).parts:
        rules, path = rules.within(path), path / part
        pattern = rules.deciding(path, path.is_dir() and not path.is_symlink())
        if part in _NEVER or (path / _VIRTUAL_ENVIRONMENT).exists():
            return f"{part} never is"
        if pattern is not None and pattern.ignores:
            return pattern.where
    return ""


def _check_size(folder: Path, entries: Sequence[Entry]) -> None:
    total = sum(each.size for each in entries)
    if total <= SIZE_LIMIT:
        return
    sizes: dict[str, int] = {}
    for each in entries:
        first = each.name.partition("/")[0] + ("/" if "/" in each.name else "")
        sizes[first] = sizes.get(first, 0) + each.size
    largest = sorted(sizes.items(), key=lambda each: -each[1])[:_NAMED]
    raise InvalidInput(
        f"{folder} has {mib(total)}; the limit for a program's folder is {mib(SIZE_LIMIT)}.",
        details=[f"{mib(size):>12}  {name}" for name, size in largest if size],
        next_step=HINT + "; make data an input (--input DIR)",
    )


def mib(size: int) -> str:
    """Bytes, for a sentence."""
    return f"{size / 1024 / 1024:,.1f} MiB" if size >= 1024**2 / 10 else f"{size:,} bytes"
