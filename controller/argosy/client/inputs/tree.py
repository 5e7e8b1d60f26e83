"""Which files does an input of this machine have? All of them: a link that leads out of the folder is followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from argosy.client.errors import InvalidInput
from argosy.client.packing.folder import Entry

COUNT_LIMIT = 1_000_000  # files, links and empty folders
SIZE_LIMIT = 256 * 1024**3  # bytes: their document is what each task reads


def input_entries(path: Path) -> list[Entry]:
    """The files, links and empty folders of a folder, or the one file, sorted by name. Raises InvalidInput."""
    top = Path(os.path.abspath(path))
    if not top.exists():
        raise InvalidInput(f"There is no file or folder {path}.", next_step="check the input's path")
    found: list[Entry] = []
    size = 0
    for entry in _walk(top, top, (os.path.realpath(top),)) if top.is_dir() else [_file(top.name, top)]:
        found.append(entry)
        size += entry.size
        if len(found) > COUNT_LIMIT or size > SIZE_LIMIT:
            raise InvalidInput(
                f"{path} has more than {COUNT_LIMIT:,} files or {SIZE_LIMIT >> 30} GiB.",
                next_step="name folders in it as several inputs, or put it into S3 with the AWS CLI",
            )
    if not found:
        raise InvalidInput(f"{path} is empty.", next_step="check the input's path")
    return sorted(found, key=lambda each: os.fsencode(each.name))


def _walk(top: Path, folder: Path, above: tuple[str, ...]) -> Iterator[Entry]:
    """above: the real paths of this folder and those around it."""
    try:
        children = list(os.scandir(folder))
    except OSError as fault:
        raise _unreadable(folder, fault) from fault
    if not children and folder != top:
        yield Entry(os.path.relpath(folder, top), folder)
    for child in children:
        path = folder / child.name
        name = os.path.relpath(path, top) if folder != top else child.name
        if child.is_symlink() and (target := _inner_target(top, path)):
            yield Entry(name, path, target=target)
        elif child.is_dir():
            real = os.path.realpath(path)
            if real in above:
                raise InvalidInput(f"{path} is a link to a folder that it is in: remove it.")
            yield from _walk(top, path, (*above, real))
        else:
            yield _file(name, path)


def _inner_target(top: Path, path: Path) -> str:
    """The target of a link, if it is in the folder wherever the folder is; otherwise empty."""
    target = os.readlink(path)
    aim = os.path.normpath(path.parent / target)
    return target if not os.path.isabs(target) and Path(aim).is_relative_to(top) and aim != str(top) else ""


def _file(name: str, path: Path) -> Entry:
    try:
        seen = path.stat()
    except OSError as fault:
        raise _unreadable(path, fault) from fault
    if not stat.S_ISREG(seen.st_mode):
        raise InvalidInput(f"{path} is neither a file nor a folder, so it cannot be uploaded.", next_step="remove it")
    return Entry(name, path, seen.st_size, is_file=True, is_executable=bool(seen.st_mode & stat.S_IXUSR))


def _unreadable(path: Path, fault: OSError) -> InvalidInput:
    is_link = "is a link to" if path.is_symlink() else "cannot be read"
    why = f"{os.readlink(path)}, which is not there" if path.is_symlink() else f": {fault.strerror}"
    return InvalidInput(f"{path} {is_link}{' ' if path.is_symlink() else ''}{why}.")
