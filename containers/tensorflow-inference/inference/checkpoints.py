"""What had an earlier attempt at this range finished? Its rows, left in its own folder when it was stopped.

The attempts of one task lie beside each other (`.../attempts/<index>/<attempt>/`), so a retry looks through its
siblings and takes the checkpoint with the most rows. The first line says what the rows belong to.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

from inference import storage
from inference.arguments import Request

NAME = "checkpoint.jsonl"


@dataclass(frozen=True)
class Checkpoint:
    """`rows` are finished JSON lines, those of the images from the range's start on."""

    address: str
    rows: tuple[str, ...]


NOTHING = Checkpoint("", ())


def save(request: Request, rows: list[str]) -> str:
    """The address. Raises storage.Temporary or storage.Refused."""
    address = request.attempt_folder + NAME
    text = "".join(f"{line}\n" for line in [json.dumps(_header(request)), *rows])
    storage.write(address, text.encode())
    return address


def find(request: Request) -> Checkpoint:
    """The longest one that fits; NOTHING when there is none. Raises storage.Temporary."""
    siblings = request.attempt_folder.rstrip("/").rpartition("/")[0] + "/"
    try:
        names = [name for name in storage.names_below(siblings) if name.endswith(f"/{NAME}")]
        found = [_read(request, name) for name in names]
    except storage.Missing:
        return NOTHING  # no attempt has left a folder
    except storage.Refused as fault:
        print(f"inference: no checkpoint can be looked for: {fault}", file=sys.stderr)
        return NOTHING
    return max([NOTHING, *found], key=lambda each: len(each.rows))


def _read(request: Request, address: str) -> Checkpoint:
    """NOTHING, with a line in the log, for one that cannot be used."""
    first, *rows = storage.read(address).decode("utf-8", "replace").splitlines() or [""]
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
