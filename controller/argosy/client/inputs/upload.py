"""Uploading a folder as an input: chunks that S3 lacks, then the document that names them.

Chunks are shared by all folders and all users of a deployment. Where the bucket deletes them after `inputDays`, one
that is there counts only while it is younger than half of that; an older one is sent again, which makes it young. So
no upload relies on a chunk that is about to go. A folder's document is written after its chunks, and for a quarter of
`inputDays` it vouches for them. From then on each submission looks at them again, so that a folder stays for at least
a quarter of `inputDays` after the last submission that names it.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.client.access import Access
from argosy.client.errors import InvalidInput, error_code
from argosy.client.inputs.tree import input_entries
from argosy.client.packing.folder import ChangedMeanwhile, Entry
from argosy.client.packing.upload import ABSENT, Progress, explained, quiet
from argosy.client.packing.wheels import cache_folder
from argosy.layout import INPUTS, KEPT, split_s3
from argosy.model.input_folder import ADDRESS, InputFolder, folder_of, read_folder

if TYPE_CHECKING:
    from argosy.client.inputs.chunker import Chunker

AT_ONCE = 16  # chunks on their way
_WAITING = 32  # chunks in memory


@dataclass(frozen=True, slots=True)
class Upload:
    """A folder in S3. uri: as an input names it, ending in a slash. sent: bytes that were not there yet."""

    uri: str
    folder: InputFolder
    sent: int


@dataclass
class ChunkStore:
    """The chunks and documents below one prefix of the deployment's bucket.

    days: after which they are deleted; 0 = never. present: digests that need no look.
    """

    s3: Any
    bucket: str
    prefix: str
    days: float
    present: set[str] = field(default_factory=set)
    sent: int = 0

    @classmethod
    def of(cls, access: Access, prefix: str) -> ChunkStore:
        days = access.deployment.input_days if prefix != KEPT else 0
        return cls(access.client("s3"), access.deployment.bucket, prefix, days)

    def send(self, chunk: bytes) -> tuple[str, int]:
        """(SHA-256, size) of a chunk that is in S3 by then."""
        sha256 = hashlib.sha256(chunk).hexdigest()
        if sha256 not in self.present:
            self._send(f"{self.prefix}chunks/{sha256}", chunk)
            self.present.add(sha256)
        return sha256, len(chunk)

    def copy(self, sha256: str) -> None:
        """Make a chunk of an uploaded input one of this store, and young, within S3."""
        key = f"{self.prefix}chunks/{sha256}"
        if not self._is_there(key, 2):
            source = {"Bucket": self.bucket, "Key": f"{INPUTS}chunks/{sha256}"}
            with explained(self.bucket):
                self.s3.copy_object(Bucket=self.bucket, Key=key, CopySource=source, MetadataDirective="REPLACE")

    def write(self, folder: InputFolder) -> str:
        """The address of a folder whose chunks are there."""
        document = folder.document()
        key = f"{self.prefix}folders/{hashlib.sha256(document).hexdigest()}"
        self._send(key, document, share=4)
        return f"s3://{self.bucket}/{key}/"

    def read(self, uri: str) -> InputFolder | None:
        """What a folder's document says, if it vouches for its chunks."""
        try:
            reply = self.s3.get_object(Bucket=self.bucket, Key=split_s3(uri)[1].rstrip("/"))
        except Exception as fault:
            if error_code(fault) in ABSENT:
                return None
            raise
        return read_folder(reply["Body"].read()) if self._is_young(reply, 4) else None

    def _send(self, key: str, body: bytes, share: int = 2) -> None:
        if not self._is_there(key, share):
            with explained(self.bucket):
                self.s3.put_object(Bucket=self.bucket, Key=key, Body=body)
            self.sent += len(body)

    def _is_there(self, key: str, share: int) -> bool:
        try:
            with explained(self.bucket):
                reply = self.s3.head_object(Bucket=self.bucket, Key=key)
        except Exception as fault:
            if error_code(fault) in ABSENT:
                return False
            raise
        return self._is_young(reply, share)

    def _is_young(self, reply: Any, share: int) -> bool:
        """Whether less than this share of its days has passed."""
        if not self.days:
            return True
        age_s = (datetime.now(UTC) - reply["LastModified"]).total_seconds()
        return bool(age_s < self.days * 86_400 / share)


def upload_folder(
    access: Access, path: Path, progress: Progress = quiet, prefix: str = INPUTS, only: Collection[str] | None = None
) -> Upload:
    """Uploads what S3 lacks of a folder, or of a file. progress: bytes looked at, and bytes in all. only: names of
    files; None = all, and links and empty folders.

    Raises InvalidInput for a file that cannot be read or that changes meanwhile, ArgosyError, or boto3's errors. What
    was sent by then is not sent again.
    """
    wanted = None if only is None else set(only)
    entries = [each for each in input_entries(path) if wanted is None or each.name in wanted]
    return upload_entries(access, path, entries, progress, prefix)


def upload_entries(access: Access, path: Path, entries: Sequence[Entry], progress: Progress, prefix: str) -> Upload:
    """`upload_folder` with these files, links and folders, sorted by name. A folder that has others needs no entry."""
    store = ChunkStore.of(access, prefix)
    memory = _Memory(path, f"{store.bucket}/{prefix}")
    if (last := memory.uri()) and (known := store.read(last)):
        store.present |= {each.sha256 for each in known.chunks}
    total = sum(each.size for each in entries)
    sized = list(_sent(store, _chunks_of(entries), progress, total))
    folder = folder_of(
        sized,
        [(each.name, each.size, each.is_executable) for each in entries if each.is_file],
        links={each.name: each.target for each in entries if each.target},
        empty_folders=tuple(_empty_folders(entries)),
    )
    uri = store.write(folder)
    memory.keep(uri)
    return Upload(uri, folder, store.sent)


def _empty_folders(entries: Sequence[Entry]) -> Iterator[str]:
    parents = {each.name.rpartition("/")[0] for each in entries}
    return (each.name for each in entries if not each.is_file and not each.target and each.name not in parents)


def _sent(store: ChunkStore, chunks: Iterable[bytes], progress: Progress, total: int) -> Iterator[tuple[str, int]]:
    """In their order, a bounded number at a time."""
    under_way: deque[Future[tuple[str, int]]] = deque()
    done = 0
    pool = ThreadPoolExecutor(AT_ONCE, "argosy-upload")
    try:
        for chunk in chunks:
            under_way.append(pool.submit(store.send, chunk))
            while len(under_way) >= _WAITING or (under_way and under_way[0].done()):
                yield under_way[0].result()
                done += under_way.popleft().result()[1]
                progress(done, total)
        yield from (each.result() for each in under_way)
        progress(total, total)
    finally:  # Ctrl-C too
        pool.shutdown(cancel_futures=True)


def _chunks_of(entries: Iterable[Entry]) -> Iterator[bytes]:
    from argosy.client.inputs.chunker import Chunker  # numpy takes 0.1 s, and most programs are small

    cutter = Chunker()
    for entry in entries:
        if entry.is_file and entry.size:
            yield from _chunks_with(cutter, entry)
    yield from cutter.rest()


def _chunks_with(cutter: Chunker, entry: Entry) -> Iterator[bytes]:
    try:
        with open(entry.path, "rb", buffering=0) as file:
            before, read = os.fstat(file.fileno()), 0
            while count := file.readinto(cutter.room()):
                read += count
                yield from cutter.taken(count)
            after = os.fstat(file.fileno())
    except OSError as fault:
        raise InvalidInput(f"{entry.path} cannot be read: {fault.strerror}.") from fault
    if not before.st_size == after.st_size == read == entry.size or before.st_mtime_ns != after.st_mtime_ns:
        raise ChangedMeanwhile(
            f"{entry.path} changed while it was uploaded.", next_step="try again when nothing writes to it"
        )


class _Memory:
    """Which folder was uploaded last from a path: a hint, whose truth is looked up in S3."""

    def __init__(self, path: Path, place: str) -> None:
        name = hashlib.sha256(os.fsencode(f"{place}\n{os.path.abspath(path)}")).hexdigest()[:32]
        self._file = cache_folder() / "inputs" / name

    def uri(self) -> str | None:
        try:
            text = self._file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        return text if ADDRESS.fullmatch(text) else None

    def keep(self, uri: str) -> None:
        """A cache that cannot be written costs requests only."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(uri, encoding="utf-8")
        except OSError:
            return
