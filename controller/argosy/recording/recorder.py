"""The recorder of a controller's facts and decisions, and of the code that made them: any tick can be replayed.

Segments are files of JSON lines; each line is a load, a sweep or a tick. A chain of segments begins with a load and
ends with the next. A segment is stored once it is large or old enough, or the invocation ends, always after the commits
that it records. A dead controller loses its last minutes of record, never a commit.
"""

from __future__ import annotations

import hashlib
import json
import logging
import platform
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import argosy
from argosy.layout import JOURNAL
from argosy.model.actions import Action
from argosy.model.events import Event, Observed, RunClosed
from argosy.model.policy import Policy
from argosy.model.stored.documents import Documents, StoredItems
from argosy.ports import Archive, Switches
from argosy.recording.codec import action_to_json, dumped, fact_to_json, text_of, to_text

# The inputs of a decision. The parsers of messages are not among them: facts are recorded after parsing.
DECIDING = ("catalogue", "engine", "lifecycle", "market", "model", "placement", "scheduler")
LIBRARIES = ("numpy", "highspy")


@cache
def code_digest() -> str:
    """Digest of the files that decide, with the catalogue's figures: 16 hexadecimal digits."""
    root = Path(argosy.__file__).parent
    digest = hashlib.sha256()
    for folder in DECIDING:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".py", ".lark", ".json"):
                digest.update(f"\0{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def platform_now() -> dict[str, str]:
    """Floating-point results, and so decisions, may differ between machines and between versions of these."""
    return {
        "machine": platform.machine(),
        "python": platform.python_version(),
        **{name: _version(name) for name in LIBRARIES},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # a bundle may leave the metadata of its packages out
        return "unknown"


@dataclass(slots=True)
class TickRecord:
    """Filled during the tick. Times are epoch seconds, as the controller's clock gave them."""

    facts: list[tuple[Event, float]] = field(default_factory=list)  # applied, with the time they count from
    passed_at: float = 0.0
    decided_at: float = 0.0
    switches: Switches = field(default_factory=Switches)
    deletions: int = 0
    actions: Sequence[Action] = ()
    digest: str = ""  # of the documents that had changed
    version: int | None = None  # that it committed; None = it had nothing to commit
    fault: str = ""  # failures of Argosy's own code, whose effects cannot be replayed


def digest_of(puts: Documents) -> str:
    """Of the documents' contents, 16 hexadecimal digits. Each is compressed and ends with the checksum of its content
    (RFC 1950). Using that checksum saves reading megabytes again, and another compressor gives the same value."""
    digest = hashlib.sha256()
    for (partition, name), body in sorted(puts.items()):
        digest.update(f"{partition}\0{name}\0".encode() + body[-4:])
    return digest.hexdigest()[:16]


def switches_to_json(switches: Switches) -> list[object]:
    return [switches.deployment, dict(switches.cells)]


def switches_from_json(values: Sequence[object]) -> Switches:
    deployment, cells = values
    assert deployment is None or isinstance(deployment, str)
    assert isinstance(cells, Mapping)
    return Switches(deployment, dict(cells))


FORMAT = 1
SEGMENT_BYTES = 4_000_000  # compressed
SEGMENT_S = 60.0
LEVEL = 1  # of compression: a sweep of the largest cluster is 20 MB of text
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Start:
    """The load that a controller began to work from."""

    at: float
    epoch: str
    is_new: bool  # the first load of its process: suspended runs are tried again at once


class _Sweep:
    """A sweep whose sightings are applied one by one, over several ticks: stored once and referred to."""

    def __init__(self, seen: Observed) -> None:
        self.seen = seen
        self.parts = [*seen.fleets, *seen.hosts, *seen.container_instances, *seen.tasks]
        self.number = {id(part): number for number, part in enumerate(self.parts)}

    def part(self, event: Event) -> int | None:
        number = self.number.get(id(event))
        return number if number is not None and self.parts[number] is event else None


@dataclass(slots=True)
class Recorder:
    """The recorder of one controller. It raises nothing: a gap in the record ends the chain."""

    archive: Archive
    policy: Policy = field(default_factory=Policy)
    owner: str = "0"  # distinguishes two controllers that load at the same time
    chain: str = ""  # names the load that the present segments continue; "" = nothing is recorded before the next one
    part: int = 0  # of the chain
    opened_at: float = 0.0
    size: int = 0  # bytes that are compressed already
    pieces: list[bytes] = field(default_factory=list)
    pack: Any = None  # a compressor, which keeps what it has not written yet
    sweep: _Sweep | None = None

    def loaded(self, stored: StoredItems | None, start: Start) -> None:
        """The controller works on this load from now on. None: on a state that cannot be replayed."""
        with _RecordingGuard(self):
            self.flush()
            self.chain = ""
            if stored is None:
                return
            moment = datetime.fromtimestamp(start.at, UTC)
            self.chain = f"{moment:%Y-%m-%d/%H%M%S.%f}-{stored.version:012d}-{self.owner}"
            self.part, self.sweep = 0, None
            self._open(start.at)
            runs = {name: [text_of(record), to_text(rest)] for name, (record, rest) in stored.runs.items()}
            body = {"version": stored.version, "items": to_text(stored.items), "runs": runs, **asdict(start)}
            self._write(b'["load",' + json.dumps(body, separators=(",", ":")).encode() + b"]")

    def observed(self, sweep: Observed) -> None:
        """A sweep has arrived; its sightings are applied from now on."""
        with _RecordingGuard(self):
            if self.chain:
                self._open(sweep.at)
                self.sweep = _Sweep(sweep)
                self._write(b'["sweep",' + dumped(sweep) + b"]")

    def tick(self, record: TickRecord) -> None:
        """A tick is over, its commit included."""
        with _RecordingGuard(self):
            if not self.chain:
                return
            self._open(record.decided_at)
            self._write(self._line(record))
            if record.fault:
                self.flush()
                self.chain = ""
            elif self._is_due(record):
                self.flush()

    def flush(self) -> None:
        """Store the record so far."""
        if self.pack is None:
            return
        body = b"".join([*self.pieces, self.pack.flush()])
        name = f"{JOURNAL}{self.chain}-{self.part:04d}.jsonl.gz"
        self.pack, self.pieces, self.size, self.part = None, [], 0, self.part + 1
        with _RecordingGuard(self):
            self.archive.put(name, body)

    def _is_due(self, record: TickRecord) -> bool:
        """Also flush when a run is over, because people ask about it then."""
        is_large = self.size > SEGMENT_BYTES or record.decided_at - self.opened_at > SEGMENT_S
        return is_large or any(isinstance(event, RunClosed) for event, _ in record.facts)

    def _open(self, now: float) -> None:
        """The next segment, unless one is open."""
        if self.pack is not None:
            return
        self.pack, self.opened_at = zlib.compressobj(LEVEL, wbits=31), now  # 31: with gzip's head and end
        head = {
            "format": FORMAT, "chain": self.chain, "part": self.part, "code": code_digest(), "platform": platform_now(),
            "policy": asdict(self.policy),
        }  # fmt: skip
        self._write(json.dumps(head, separators=(",", ":")).encode())

    def _write(self, line: bytes) -> None:
        piece = self.pack.compress(line + b"\n")
        self.pieces.append(piece)
        self.size += len(piece)

    def _line(self, record: TickRecord) -> bytes:
        known = {
            "passedAt": record.passed_at, "decidedAt": record.decided_at, "version": record.version,
            "switches": switches_to_json(record.switches), "deletions": record.deletions, "digest": record.digest,
            "fault": record.fault,
        }  # fmt: skip
        facts = b",".join(self._fact(event, at) for event, at in record.facts)
        actions = b",".join(action_to_json(each) for each in record.actions)
        head = json.dumps(known, separators=(",", ":")).encode()
        return b'["tick",' + head + b",[" + facts + b"],[" + actions + b"]]"

    def _fact(self, event: Event, at: float) -> bytes:
        """`[at,["Kind",{...}]]`; `[at,number]` for a part of the last sweep, -1 for the whole of it."""
        number = None
        if self.sweep is not None:
            number = -1 if event is self.sweep.seen else self.sweep.part(event)
        if number == -1:
            self.sweep = None
        said = fact_to_json(event) if number is None else str(number).encode()
        return b"[" + repr(at).encode() + b"," + said + b"]"


class _RecordingGuard:
    """A failure in here ends the chain: recording must never fail a tick."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, Exception):
            return False
        log.exception("a tick could not be recorded", exc_info=error)
        self.recorder.chain, self.recorder.pack, self.recorder.pieces = "", None, []
        return True
