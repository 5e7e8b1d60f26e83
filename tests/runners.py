"""Starts a runner for the contract's tests, in either implementation, with something to run."""

from __future__ import annotations

import ctypes
import hashlib
import io
import json
import os
import platform
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argosy.local.forks import Fork, Forks
from tests.fakes.signed_s3 import ACCESS_KEY, BUCKET, SECRET_KEY, SignedS3
from tests.fakes.waiting import until

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 60
RUN = "run/"
PART = f"{RUN}parts/part-0000007.jsonl"
OUTPUT = f"{RUN}attempts/0000007/2/"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def built_runner() -> Path | None:
    """The Go runner: what TEST_RUNNER names, or what `make runner` has built for this machine from the present source;
    None without."""
    if named := os.environ.get("TEST_RUNNER"):
        return Path(named)
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    path = ROOT / "build" / "runner" / architecture / "argosy-runner"
    newest = max(each.stat().st_mtime for each in (ROOT / "containers" / "runner").glob("*.go"))
    return path if path.is_file() and path.stat().st_mtime >= newest else None


@dataclass(frozen=True)
class Ended:
    """How a runner ended. `code` as a shell gives it: 128 + signal."""

    code: int
    out: bytes
    err: bytes

    @property
    def sentence(self) -> str:
        """The runner's own message, which is one line, and the last."""
        lines = self.err.decode().splitlines()
        ours = [line for line in lines if line.startswith("argosy: ")]
        assert len(ours) == 1, self.err
        assert lines[-1] == ours[0], self.err
        return ours[0].removeprefix("argosy: ")

    @property
    def is_silent(self) -> bool:
        """Whether the runner has printed no message of its own."""
        return b"argosy: " not in self.err


class Started:
    """A runner that runs."""

    def __init__(self, process: subprocess.Popen[bytes] | Fork) -> None:
        self.process = process
        self._out: list[bytes] = []
        self._err: list[bytes] = []
        self._threads = [
            threading.Thread(target=self._read, args=pair)
            for pair in ((process.stdout, self._out), (process.stderr, self._err))
        ]
        for thread in self._threads:
            thread.start()

    def _read(self, pipe: Any, into: list[bytes]) -> None:
        with pipe:
            into.extend(iter(lambda: pipe.read1(65_536), b""))

    def said(self, text: bytes) -> None:
        """Wait until this is in its output."""
        until(lambda: text in b"".join(self._out), PATIENCE_S)

    def heard(self, text: bytes) -> None:
        """Wait until this is in its errors."""
        until(lambda: text in b"".join(self._err), PATIENCE_S)

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def end(self) -> Ended:
        """Wait for it."""
        code = self.process.wait(PATIENCE_S)
        for thread in self._threads:
            thread.join(PATIENCE_S)
        return Ended(128 - code if code < 0 else code, b"".join(self._out), b"".join(self._err))


def signal_another_thread(process: int, number: int) -> None:
    """Linux gives a process's signal to its main thread if it can, and to any other thread if not."""
    other = next(int(task.name) for task in Path(f"/proc/{process}/task").iterdir() if int(task.name) != process)
    assert ctypes.CDLL(None).tgkill(process, other, number) == 0


def forked_runners() -> Forks:
    """A separate runner process takes 0.4 s of CPU time to import botocore, and 500 are started."""
    return Forks("tests.runners.warm", {"PYTHONPATH": str(Path(__file__).resolve().parents[1])})


def warm() -> None:
    """Load a runner's modules, and botocore's with its description of S3."""
    import argosy.runner.__main__  # noqa: F401
    from argosy.local.clients import share_models
    from argosy.runner.objects import client_of

    share_models()
    client_of(()).close()
    client_of.cache_clear()


@dataclass
class RunnerUnderTest:
    """One implementation. `folder` is the test's own; the runner unpacks into `roots`."""

    command: list[str]
    s3: SignedS3
    folder: Path
    stopped: list[Callable[[], None]] = field(default_factory=list)
    forks: Forks | None = None  # runs what `run` is given, if it is not the runner itself that is stopped

    @property
    def roots(self) -> Path:
        return self.folder / "roots"

    def environment(self) -> dict[str, str]:
        """The variables of every task, without the protocol."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TMPDIR": str(self.roots),
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.s3.endpoint,
            "AWS_MAX_ATTEMPTS": "3",
            "ARGOSY_TASK_ATTEMPT": "2",
        }

    def protocol(
        self, result: str = "none", job: Mapping[str, Any] | None = None, inputs: Iterable[str] = ()
    ) -> dict[str, str]:
        """The variables of a task of a run with a program."""
        told = {
            "ARGOSY_RUNNER": "1",
            "ARGOSY_RESULT": result,
            "ARGOSY_PART_URI": f"s3://{BUCKET}/{PART}",
            "ARGOSY_OUTPUT_URI": f"s3://{BUCKET}/{OUTPUT}",
        }
        if job is not None:
            told["ARGOSY_JOB"] = self.s3.put("argosy/programs/jobs/job.json", json.dumps(job).encode())
        if given := list(inputs):
            told["ARGOSY_INPUTS"] = json.dumps(given)
        return told

    def start(self, *words: str, changes: Mapping[str, str | None] | None = None, **told: Any) -> Started:
        """With the protocol if any of `result`, `job` and `inputs` is given. changes: of variables; None removes."""
        environment = self._told(changes, told)
        process = subprocess.Popen(
            [*self.command, *words],
            env=environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.stopped.append(process.kill)
        return Started(process)

    def _told(self, changes: Mapping[str, str | None] | None, told: dict[str, Any]) -> dict[str, str]:
        self.roots.mkdir(exist_ok=True)
        environment = self.environment() | (self.protocol(**told) if told else {})
        for name, value in (changes or {}).items():
            environment.pop(name, None)
            if value is not None:
                environment[name] = value
        return environment

    def run(self, *words: str, changes: Mapping[str, str | None] | None = None, **told: Any) -> Ended:
        if self.forks is None:
            return self.start(*words, changes=changes, **told).end()
        forked = self.forks.start("argosy.runner.__main__.main", words, self._told(changes, told), self.folder)
        forked.stdin.close()
        self.stopped.append(forked.kill)
        return Started(forked).end()

    def shell(self, script: str, changes: Mapping[str, str | None] | None = None, **told: Any) -> Ended:
        """The way in which a program in the form of a text is sent."""
        return self.run("argosy:program", "sh", "-c", script, changes=changes, **told)

    def python(self, script: str, changes: Mapping[str, str | None] | None = None, **told: Any) -> Ended:
        return self.run("argosy:program", sys.executable, "-c", script, changes=changes, **told)

    def job(self, *archives: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """A job document."""
        return {"protocol": 1, "archives": list(archives), "setup": None, "limits": {}, **more}

    def archive(self, data: bytes, kind: str = "program") -> dict[str, Any]:
        """Stored, with its entry in a job document."""
        digest = hashlib.sha256(data).hexdigest()
        suffix = ".whl" if kind == "wheel" else ".tar.gz"
        uri = self.s3.put(f"argosy/programs/{digest}{suffix}", data)
        return {"uri": uri, "sha256": digest, "bytes": len(data), "kind": kind}

    def program(self, files: Mapping[str, str]) -> dict[str, Any]:
        """An archive of plain files; one that begins with `#!` is executable."""
        members = [
            member(name, text.encode(), mode=0o755 if text.startswith("#!") else 0o644) for name, text in files.items()
        ]
        return self.archive(tar(*members))


def member(name: str, data: bytes = b"", **about: Any) -> tuple[tarfile.TarInfo, bytes]:
    """One entry of an archive; `about` are attributes of TarInfo."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for attribute, value in about.items():
        setattr(info, attribute, value)
    return info, data


def tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz", compresslevel=1) as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return held.getvalue()


def wheel(files: Mapping[str, str]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return held.getvalue()
