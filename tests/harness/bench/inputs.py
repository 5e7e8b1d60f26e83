"""How long do inputs of this machine take to upload, and how much is sent (`bench inputs`)? Beside `aws s3 sync`.

Both send to the same moto server, a process on this machine that keeps objects in memory. It takes some milliseconds
for a request, so the number of requests counts about as it does in S3.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from argosy.cli import figures
from argosy.cli.session import Session
from argosy.cli.tables import PlainTable

BUCKET = "bench"
START_S = 60.0
PLACES = 20  # changed bytes, spread over the large file


@dataclass(frozen=True)
class UploadAmounts:
    """What is uploaded."""

    files: Annotated[int, typer.Option(min=1, help="Small files.")] = 20_000
    file_bytes: Annotated[int, typer.Option(min=1, help="Bytes of each.")] = 10_000
    large_mb: Annotated[int, typer.Option(min=1, help="Megabytes (10^6) of the large file.")] = 200


@dataclass(frozen=True)
class UploadTime:
    """One upload. sent: bytes; None = unknown."""

    what: str
    by: str
    seconds: float
    sent: int | None


def inputs(session: Session, amounts: UploadAmounts) -> None:
    """Upload small files and a large one, then again after one byte has changed."""
    with TemporaryDirectory(prefix="argosy-bench-") as folder, _server() as endpoint:
        os.environ["ARGOSY_CACHE"] = f"{folder}/cache"
        rows = list(_measured(Path(folder), endpoint, amounts))
    if session.wants_json:
        session.print_json({"rows": [asdict(row) for row in rows]})
        return
    table = PlainTable("WHAT", "BY", ">SECONDS", ">SENT")
    for row in rows:
        table.add_row(row.what, row.by, f"{row.seconds:.2f}", "" if row.sent is None else figures.size(row.sent))
    session.console.print(table)


def _measured(folder: Path, endpoint: str, amounts: UploadAmounts) -> Iterator[UploadTime]:
    small, large = folder / "small", folder / "large"
    small.mkdir()
    large.mkdir()
    for number in range(amounts.files):
        (small / f"{number:06d}.bin").write_bytes(os.urandom(amounts.file_bytes))
    data = bytearray(os.urandom(amounts.large_mb * 1_000_000))
    (large / "data.bin").write_bytes(data)
    ways: list[tuple[str, Callable[[Path], int | None]]] = [("argosy", _argosy(endpoint))]
    if command := shutil.which("aws", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"):
        ways.append(("aws s3 sync", _sync(command, endpoint)))
    for name, way in ways:
        yield _timed(f"{amounts.files:,} files of {amounts.file_bytes:,} bytes", name, way, small)
        yield _timed("the same again", name, way, small)
        yield _timed(f"a file of {amounts.large_mb} MB", name, way, large)
        data[len(data) // 3] ^= 1
        (large / "data.bin").write_bytes(data)
        yield _timed("one byte of it changed", name, way, large)
    sent = []
    for place in range(0, len(data), -(-len(data) // PLACES)):
        data[place] ^= 1
        (large / "data.bin").write_bytes(data)
        sent.append(_timed("", "argosy", ways[0][1], large))
    largest = max(each.sent or 0 for each in sent)
    yield UploadTime(f"the worst of {len(sent)} changed bytes", "argosy", max(each.seconds for each in sent), largest)


def _timed(what: str, by: str, way: Callable[[Path], int | None], folder: Path) -> UploadTime:
    begin = time.perf_counter()
    sent = way(folder)
    return UploadTime(what, by, time.perf_counter() - begin, sent)


def _argosy(endpoint: str) -> Callable[[Path], int | None]:
    from argosy.client.access import Access
    from argosy.client.aws_clients import Connection
    from argosy.client.deployment import Deployment
    from argosy.client.inputs.upload import upload_folder

    access = Access(Connection(endpoint_url=endpoint, region="us-east-1"))
    access.deployment = Deployment("argosy", "us-east-1", "argosy", "", BUCKET, "")
    access.client("s3").create_bucket(Bucket=BUCKET)
    return lambda folder: upload_folder(access, folder).sent


def _sync(command: str, endpoint: str) -> Callable[[Path], int | None]:
    def sync(folder: Path) -> None:
        words = [command, "--endpoint-url", endpoint, "--region", "us-east-1", "s3", "sync", "--quiet", str(folder)]
        subprocess.run([*words, f"s3://{BUCKET}/{folder.name}/"], check=True)

    return sync


@contextmanager
def _server() -> Iterator[str]:
    """The address of a moto server."""
    os.environ |= {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench"}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    said: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, "-m", "moto.server", "-p", str(port)], **said)
    try:
        end = time.monotonic() + START_S
        while not _answers(port):
            if time.monotonic() > end or process.poll() is not None:
                raise OSError("the moto server does not start")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
