"""Which images has the range? The files of a folder or S3 prefix in the order of their names, or those of a list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import argosy_storage as storage

from inference.arguments import Request

SUFFIXES = (".jpg", ".jpeg", ".png", ".gif", ".bmp")


@dataclass(frozen=True)
class Picture:
    """One image of the range. `name` is what a list calls it; `listed` ones may be dead, which is no fault of ours."""

    index: int
    address: str
    name: str = ""
    listed: bool = False


def pictures(request: Request, first: int) -> list[Picture]:
    """The images from number `first` to the end of the range. Raises storage.Temporary or storage.Refused."""
    every = _listed(request.urls) if request.urls else _below(request.images)
    found: list[Picture] = []
    seen = 0
    for name, address in islice(every, request.end):
        if seen >= first:
            found.append(Picture(seen, address, name, bool(request.urls)))
        seen += 1
    if seen < request.end:
        kind = "addresses" if request.urls else "images"
        raise storage.Refused(
            f"the range {request.start}:{request.end} ends past the {seen} {kind} of {request.source}"
        )
    return found


def _below(folder: str) -> Iterator[tuple[str, str]]:
    for address in storage.names_below(folder):
        if address.lower().endswith(SUFFIXES):
            yield "", address


def _listed(address: str) -> Iterator[tuple[str, str]]:
    """ImageNet's own form, NAME<tab>ADDRESS, or the address alone; empty lines and # comments are skipped."""
    for line in storage.lines(address):
        text = line.strip()
        if text and not text.startswith("#"):
            name, _, rest = text.rpartition("\t")
            yield name.strip(), rest.strip()
