"""An S3 of this process, and the program of an image as Argosy runs it: a process, judged by output and exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONTAINERS = Path(__file__).resolve().parents[2] / "containers"
BUCKET = "results"
PYTORCH = CONTAINERS.parent / ".venv-pytorch" / "bin" / "python"
PATIENCE_S = 900  # TensorFlow's start takes ten seconds of CPU time, and the machine may be busy


@dataclass(frozen=True)
class Ended:
    """How a program ended."""

    code: int
    out: str
    err: str


def start(image: str, module: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(PYTORCH) if image.startswith("pytorch-") else sys.executable, "-m", module, *arguments],
        cwd=CONTAINERS / image,
        env=dict(os.environ) | {"CUDA_VISIBLE_DEVICES": "", "PYTHONUNBUFFERED": "1"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(image: str, module: str, *arguments: str, **environment: str) -> Ended:
    process = start(image, module, *arguments, **environment)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in err, err
    return Ended(process.returncode, out, err)


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


class Bucket:
    """The bucket's operations for tests."""

    def __init__(self, endpoint: str, client: Any, name: str = BUCKET) -> None:
        self.endpoint, self._client, self._name = endpoint, client, name

    def put(self, key: str, body: bytes) -> str:
        self._client.put_object(Bucket=self._name, Key=key, Body=body)
        return f"s3://{self._name}/{key}"

    def put_folder(self, prefix: str, folder: Path) -> str:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(prefix + path.relative_to(folder).as_posix(), path.read_bytes())
        return f"s3://{self._name}/{prefix}"

    def rows(self, key: str) -> list[dict[str, Any]]:
        return rows(self._client.get_object(Bucket=self._name, Key=key)["Body"].read().decode())

    def metadata(self, key: str) -> dict[str, str]:
        return dict(self._client.head_object(Bucket=self._name, Key=key)["Metadata"])

    def keys(self, prefix: str) -> list[str]:
        found = self._client.list_objects_v2(Bucket=self._name, Prefix=prefix)
        return [each["Key"] for each in found.get("Contents", ())]


def make_bucket(endpoint: str, name: str = BUCKET) -> Bucket:
    import boto3

    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    client.create_bucket(Bucket=name)
    return Bucket(endpoint, client, name)


@contextmanager
def bucket() -> Iterator[Bucket]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield make_bucket(f"http://{host}:{port}")
    finally:
        server.stop()
