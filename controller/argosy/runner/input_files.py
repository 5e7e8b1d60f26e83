"""A task's inputs as files, and uploaded folders: which chunks a file is in, and how it is put together.

A chunk is held in memory as a whole, at most 1.75 MiB, and is verified before its pieces are written where they belong.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from argosy.model.exit_codes import WRONG_REQUEST
from argosy.model.input_folder import ADDRESS, Chunk, InputFolder, StoredFile, read_folder
from argosy.runner.objects import CONNECTIONS, Objects
from argosy.runner.order import RunnerFault, split_address

_DAMAGED = (ValueError, KeyError, TypeError, IndexError, OSError, EOFError)
Placed = tuple[StoredFile, str]  # with its name in $ARGOSY_IN


@dataclass(frozen=True, slots=True)
class FolderInput:
    """The files that one input selects from an uploaded folder, by name in $ARGOSY_IN. store: address prefix of the
    chunks."""

    address: str
    store: str
    chunks: Sequence[Chunk]
    files: dict[str, StoredFile]
    links: dict[str, str]
    empty_folders: Sequence[str]

    @classmethod
    def at(cls, address: str, read: Callable[[str, str], InputFolder]) -> FolderInput | None:
        """None for an address of objects. read: the document with this address and digest. Raises RunnerFault."""
        found = ADDRESS.fullmatch(address)
        if found is None:
            return None
        store, sha256, rest = found[1], found[2], found[3] or ""
        folder = read(f"{store}folders/{sha256}", sha256)
        if rest and not rest.endswith("/"):
            files = {rest.rpartition("/")[2]: each for each in folder.files if each.name == rest}
            made = cls(address, store, folder.chunks, files, {}, ())
        else:
            files = {each.name.removeprefix(rest): each for each in folder.files if each.name.startswith(rest)}
            links = {name.removeprefix(rest): aim for name, aim in folder.links.items() if name.startswith(rest)}
            empty = [name.removeprefix(rest) for name in folder.empty_folders if name.startswith(rest)]
            made = cls(f"{store}folders/{sha256}/{rest}", store, folder.chunks, files, links, empty)
        if not (made.files or made.links or made.empty_folders):
            raise RunnerFault(WRONG_REQUEST, f"there is nothing at the input {address}")
        made._check_links()
        return made

    def _check_links(self) -> None:
        for name, target in self.links.items():
            aim = os.path.normpath(os.path.join(os.path.dirname(name), target))
            if os.path.isabs(target) or aim == ".." or aim.startswith("../"):
                raise RunnerFault(WRONG_REQUEST, f"the input {self.uri_of(name)} is a link out of its folder")

    def uri_of(self, name: str) -> str:
        return self.address + name if self.address.endswith("/") else self.address

    def lay_out(self, folder: Path) -> None:
        """Files of zero bytes, and links, in folders that are there, and empty folders. Raises OSError."""
        for name, file in self.files.items():
            mode = 0o755 if file.is_executable else 0o644
            with open(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as opened:
                opened.truncate(file.size)
        for name, target in self.links.items():
            os.symlink(target, folder / name)
        for name in self.empty_folders:
            (folder / name).mkdir(parents=True, exist_ok=True)

    def pieces(self, folder: Path, objects: Objects) -> Iterator[Callable[[], None]]:
        """A function for each chunk that is needed: it writes the parts of files that are in it."""
        placed = sorted(
            ((each, name) for name, each in self.files.items() if each.size), key=lambda each: each[0].start
        )
        starts = [file.start for file, _ in placed]
        for chunk in self.chunks:
            first = max(0, bisect_right(starts, chunk.start) - 1)
            inside = placed[first : bisect_left(starts, chunk.start + chunk.size)]
            if inside and (inside[1:] or inside[0][0].start + inside[0][0].size > chunk.start):
                yield _Piece(f"{self.store}chunks/{chunk.sha256}", chunk, inside, folder, objects)


@dataclass(frozen=True, slots=True)
class _Piece:
    uri: str
    chunk: Chunk
    files: Sequence[Placed]
    folder: Path
    objects: Objects

    def __call__(self) -> None:
        body = _read(self.uri, self.chunk.sha256, self.objects)
        begin, end = self.chunk.start, self.chunk.start + self.chunk.size
        for file, name in self.files:
            first, last = max(begin, file.start), min(end, file.start + file.size)
            if first >= last:  # it ends where the chunk begins
                continue
            with open(self.folder / name, "r+b") as opened:
                opened.seek(first - file.start)
                opened.write(memoryview(body)[first - begin : last - begin])


def _put_together(inputs: Iterable[FolderInput]) -> list[FolderInput]:
    """Files of one folder that are named one by one become one input, because small files share a chunk."""
    kept: dict[int, FolderInput] = {}
    for each in inputs:
        key = id(each) if each.address.endswith("/") else id(each.chunks)
        if kept.setdefault(key, each) is not each:
            kept[key].files.update(each.files)
    return list(kept.values())


def _document(uri: str, sha256: str, objects: Objects) -> InputFolder:
    try:
        return read_folder(_read(uri, sha256, objects))
    except _DAMAGED as fault:
        sentence = f"the uploaded input {uri} cannot be read: {fault or type(fault).__name__}"
        raise RunnerFault(WRONG_REQUEST, sentence) from fault


def _read(uri: str, sha256: str, objects: Objects) -> bytes:
    try:
        body = objects.read(uri, "the uploaded input")
    except RunnerFault as fault:
        if fault.code != WRONG_REQUEST:
            raise
        raise RunnerFault(fault.code, f"{fault} It may have expired: submit the run again") from fault
    if hashlib.sha256(body).hexdigest() != sha256:
        raise RunnerFault(WRONG_REQUEST, f"the uploaded input {uri} has another digest than its name")
    return body


def fetch_inputs(addresses: Iterable[str], folder: Path, objects: Objects) -> None:
    """Every object into a file below `folder`. Raises RunnerFault or OSError."""
    planned: dict[str, str] = {}
    uploaded: list[FolderInput] = []
    work: list[Callable[[], None]] = []
    read = cache(partial(_document, objects=objects))
    for address in addresses:
        if (found := FolderInput.at(address, read)) is not None:
            uploaded.append(found)
            named = [(_name(each, found.uri_of(each)), found.uri_of(each)) for each in (*found.files, *found.links)]
        else:
            named = list(_named(address, objects))
            work += [partial(objects.download, uri, folder / name, "the input") for name, uri in named]
        for name, uri in named:
            if name in planned:
                raise RunnerFault(WRONG_REQUEST, f"two inputs would be the file {name}: {planned[name]} and {uri}")
            planned[name] = uri
    for name, uri in planned.items():
        _make_room(folder, name, uri, planned)
    for found in _put_together(uploaded):
        for name in found.empty_folders:
            _make_room(folder, f"{_name(name, found.uri_of(name))}/.", found.uri_of(name), planned)
        found.lay_out(folder)
        work += found.pieces(folder, objects)
    with ThreadPoolExecutor(CONNECTIONS, "argosy-input") as pool:
        list(pool.map(lambda each: each(), work))


def _named(address: str, objects: Objects) -> Iterator[tuple[str, str]]:
    """(name in the folder, address) of each object that an input names."""
    bucket, key = split_address(address, "the input")
    if key and not key.endswith("/"):
        yield _name(key.rpartition("/")[2], address), address
        return
    found = False
    for each in objects.below(address, "the input"):
        found = True
        if not each.key.endswith("/"):  # an object that consoles create to show an empty folder
            uri = f"s3://{bucket}/{each.key}"
            yield _name(each.key.removeprefix(key), uri), uri
    if not found:
        raise RunnerFault(WRONG_REQUEST, f"there is no object below the input {address}")


def _name(text: str, uri: str) -> str:
    if {"", ".", ".."} & set(text.split("/")) or "\0" in text:
        raise RunnerFault(WRONG_REQUEST, f"the key of the input {uri} is not a file path")
    return text


def _make_room(folder: Path, name: str, uri: str, planned: dict[str, str]) -> None:
    above = name.rpartition("/")[0]
    while above:
        if above in planned:
            raise RunnerFault(WRONG_REQUEST, f"the input {planned[above]} is a file where {uri} needs a folder")
        above = above.rpartition("/")[0]
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
