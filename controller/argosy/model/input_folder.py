"""A folder from a user's machine in S3: chunks of one byte stream, and a document that says which bytes form which
file.

The files' contents, in the order of the document, are one stream, which is cut into chunks that are stored under their
SHA-256. The document is gzipped lines of JSON: a header, `["c", sha256, size]` for each chunk, then `["f", name, size]`
(`x` if it is executable), `["l", name, target]` for a link and `["d", name]` for an empty folder. In names each
character is a byte, so that a name need not be UTF-8. `containers/runner/folders.go` reads the same format.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

FORM = 1
# An input `s3://BUCKET/<this>/REST` is read as though the folder's files were objects with these addresses.
ADDRESS = re.compile(r"(s3://[^/]+/argosy/programs/(?:inputs|kept)/)folders/([0-9a-f]{64})(?:/(.*))?", re.DOTALL)


class Chunk(NamedTuple):
    """A piece of the stream. start, size: bytes."""

    sha256: str
    start: int
    size: int


class StoredFile(NamedTuple):
    """A file. name: relative, with slashes. start: of its content in the stream; start, size: bytes."""

    name: str
    start: int
    size: int
    is_executable: bool


@dataclass(frozen=True, slots=True)
class InputFolder:
    """The content of a document. chunks and files are in the order of the stream. links: name -> target."""

    chunks: tuple[Chunk, ...]
    files: tuple[StoredFile, ...]
    links: dict[str, str]
    empty_folders: tuple[str, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(each.size for each in self.files)

    def document(self) -> bytes:
        """Equal folders give equal bytes."""
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in self._lines())
        return gzip.compress(text.encode(), 6, mtime=0)

    def _lines(self) -> Iterator[Any]:
        yield {"form": FORM, "files": len(self.files), "bytes": self.size}
        for chunk in self.chunks:
            yield "c", chunk.sha256, chunk.size
        for file in self.files:
            yield "x" if file.is_executable else "f", _characters(file.name), file.size
        for name, target in self.links.items():
            yield "l", _characters(name), _characters(target)
        for name in self.empty_folders:
            yield "d", _characters(name)


def folder_of(sized_chunks: list[tuple[str, int]], files: list[tuple[str, int, bool]], **more: Any) -> InputFolder:
    """sized_chunks: (sha256, size); files: (name, size, is executable); more: the other fields."""
    starts = accumulate((size for _, size in sized_chunks), initial=0)
    chunks = tuple(Chunk(sha256, start, size) for (sha256, size), start in zip(sized_chunks, starts, strict=False))
    begins = accumulate((size for _, size, _ in files), initial=0)
    laid = tuple(StoredFile(name, start, size, is_x) for (name, size, is_x), start in zip(files, begins, strict=False))
    return InputFolder(chunks, laid, **more)


def read_folder(document: bytes) -> InputFolder:
    """Raises ValueError, KeyError, TypeError, IndexError, OSError or EOFError for bytes that are not such a
    document."""
    header, *lines = (json.loads(line) for line in gzip.decompress(document).splitlines())
    if header["form"] != FORM:
        raise ValueError(f"it has form {header['form']}, and this version reads {FORM}")
    by_kind: dict[str, list[Any]] = {kind: [] for kind in "cfxld"}
    files = []
    for kind, *values in lines:
        by_kind[kind].append(values)
        if kind in "fx":
            files.append((_name(values[0]), int(values[1]), kind == "x"))
    found = folder_of(
        [(str(sha256), int(size)) for sha256, size in by_kind["c"]],
        files,
        links={_name(name): _name(target) for name, target in by_kind["l"]},
        empty_folders=tuple(_name(name) for (name,) in by_kind["d"]),
    )
    if found.size != sum(each.size for each in found.chunks):
        raise ValueError("its chunks are not as long as its files")
    return found


def _characters(name: str) -> str:
    return os.fsencode(name).decode("latin-1")


def _name(characters: str) -> str:
    return os.fsdecode(characters.encode("latin-1"))
