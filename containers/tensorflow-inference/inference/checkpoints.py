"""Which images had an earlier attempt at this range finished? Its rows, kept every so often and when it was stopped.

The attempts of one task have their folders next to each other (`.../attempts/<index>/<attempt>/`), and next to those
are their checkpoints (`.../attempts/<index>/checkpoints/<attempt>/`): files in an attempt's own folder are part of its
result, and a task may not delete them. A retry takes the one with the most rows. Its first line says what the rows
belong to.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import argosy_storage as storage

from inference.arguments import Request

FOLDER, NAME = "checkpoints", "checkpoint.jsonl"
KEEPING_SHARE = 0.1  # of the time, at most: all rows are written each time


@dataclass(frozen=True)
class Checkpoint:
    """`rows` are finished JSON lines, those of the images from the range's start on."""

    address: str
    rows: tuple[str, ...]


NOTHING = Checkpoint("", ())


def address(request: Request) -> str:
    """This attempt's own checkpoint."""
    return f"{_siblings(request)}{FOLDER}/{request.attempt_folder.rstrip('/').rpartition('/')[2]}/{NAME}"


def _siblings(request: Request) -> str:
    folder, slash, _ = request.attempt_folder.rstrip("/").rpartition("/")
    return folder + slash or "./"


def save(request: Request, rows: Sequence[str]) -> str:
    """The address. Raises storage.Temporary or storage.Refused."""
    text = "".join(f"{line}\n" for line in [json.dumps(_header(request)), *rows])
    storage.write(address(request), text.encode())
    return address(request)


class Keeper:
    """Keeps the rows every so often, so that a host that dies without a warning costs no more than that."""

    def __init__(self, request: Request, kept: int, clock: Callable[[], float] = time.monotonic) -> None:
        """kept: how many rows an earlier attempt's checkpoint has."""
        self._request, self._kept, self._clock = request, kept, clock
        self._due = clock() + request.checkpoint_seconds

    def look(self, rows: Sequence[str], count: int) -> None:
        """Keep the first `count` of `rows` if it is time and there are new ones. Trouble is printed, not raised."""
        began = self._clock()
        if not self._request.checkpoint_seconds or began < self._due or count == self._kept:
            return
        told = f"the first {count} of {self._request.count} images"
        try:
            where = save(self._request, rows[:count])
        except (storage.Temporary, storage.Refused) as fault:
            print(f"inference: {told} are not kept: {fault}", file=sys.stderr)
        else:
            self._kept = count
            print(f"kept {told}: {where}", flush=True)
        ended = self._clock()
        self._due = ended + max(self._request.checkpoint_seconds, (ended - began) / KEEPING_SHARE)


def find(request: Request) -> Checkpoint:
    """The longest one that fits; NOTHING when there is none. Raises storage.Temporary."""
    try:
        names = [name for name in storage.names_below(_siblings(request)) if name.endswith(f"/{NAME}")]
    except storage.Missing:
        return NOTHING  # no attempt has left anything
    except storage.Refused as fault:
        print(f"inference: no checkpoint can be looked for: {fault}", file=sys.stderr)
        return NOTHING
    return max([NOTHING, *(_read(request, name) for name in names)], key=lambda each: len(each.rows))


def _read(request: Request, address: str) -> Checkpoint:
    """NOTHING, with a line in the log, for one that cannot be used. Raises storage.Temporary."""
    try:
        first, *rows = storage.read(address).decode("utf-8", "replace").splitlines() or [""]
    except storage.Refused as fault:
        print(f"inference: the checkpoint {address} cannot be read and is passed over: {fault}", file=sys.stderr)
        return NOTHING
    try:
        header = json.loads(first)
        indexes = [json.loads(row)["index"] for row in rows]
    except (ValueError, KeyError, TypeError) as fault:
        print(f"inference: {address} is no checkpoint and is passed over: {fault}", file=sys.stderr)
        return NOTHING
    if header != _header(request) or indexes != list(range(request.start, request.start + len(rows))):
        print(f"inference: {address} belongs to other work and is passed over", file=sys.stderr)
        return NOTHING
    return Checkpoint(address, tuple(rows))


def _header(request: Request) -> dict[str, object]:
    return {
        "checkpoint": 1,
        "range": f"{request.start}:{request.end}",
        "source": request.source,
        "model": request.model,
        "top": request.top,
        "imageSize": request.image_size,
    }
