"""A deployment that runs programs: each task is a process with the folders that a container's runner would make."""

# ruff: noqa: N803 - boto3's names

from __future__ import annotations

import io
import json
import os
import tarfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argosy import layout
from argosy.sdk.client import Client
from tests.fakes import zygote
from tests.fakes.cli import Objects, Pages, World, api_error, ended, refusal, run_view, tasks
from tests.fakes.sdk import client_of

AT_A_TIME = 4  # processes
WRONG = 64


class Bucket(Objects):
    """S3 that can be written, too. Writes from several threads at once are fine: each is one assignment. lists: the
    number of requests for a list."""

    lists = 0

    def get_paginator(self, operation: str) -> Pages:
        self.lists += 1
        return super().get_paginator(operation)

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> dict[str, Any]:
        self.bodies[Bucket, Key] = Body
        return {}

    def head_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        if (Bucket, Key) not in self.bodies:
            raise refusal("404", operation="HeadObject")
        return {}

    def upload_file(self, name: str, bucket: str, key: str, Callback: Callable[[int], None]) -> None:
        self.bodies[bucket, key] = Path(name).read_bytes()
        Callback(len(self.bodies[bucket, key]))

    def read(self, uri: str) -> bytes:
        bucket, key = layout.split_s3(uri)
        return bytes(self.get_object(Bucket=bucket, Key=key)["Body"].read())


@dataclass
class CalledRun:
    """A run of the fake. codes, said: exit code of each ended task, and its output."""

    id: str
    spec: dict[str, Any]
    codes: dict[int, int] = field(default_factory=dict)
    said: dict[int, str] = field(default_factory=dict)
    cancelled: bool = False
    cancelled_tasks: list[list[int]] = field(default_factory=list)

    def view(self) -> dict[str, Any]:
        total, codes = self.spec["array"]["size"], dict(self.codes)
        failed = sum(code != 0 for code in codes.values())
        pending = total - len(codes)
        counts = tasks(succeeded=len(codes) - failed, failed=failed, pending=pending)
        place = {"runId": self.id, "name": self.spec["name"], "output": f"s3://argosy-results/{self.id}/"}
        if self.cancelled:
            return ended("CANCELLED", tasks=counts, **place)
        if pending:
            return run_view(tasks=counts, **place)
        failures = [{"index": task, **self.why(code)} for task, code in sorted(codes.items()) if code]
        status = "SUCCEEDED" if not failed else "FAILED" if failed == total else "PARTIAL"
        return ended(status, tasks=counts, failures=failures, **place)

    def why(self, code: int) -> dict[str, Any]:
        return {"exitCode": code, "reason": "Essential container in task exited"}


class CallingWorld:
    """Runs start when they are submitted. Reading them waits until something has happened, so that no test spins.

    folder: where programs are unpacked. held: no task starts while it is clear.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.runs = folder, dict[str, CalledRun]()
        self.world = World(objects=Bucket(), on_sleep=lambda _: self._wait())
        self.world.answers("SubmitRun", self._submit).answers("DescribeRun", self._describe)
        self.world.answers("CancelRun", self._cancel)
        self.world.answers("DescribeTask", self._task_view).others = {"logs": self}
        self.held = threading.Event()
        self.held.set()
        self._changed = threading.Condition()
        self._pool = ThreadPoolExecutor(AT_A_TIME)

    @property
    def client(self) -> Client:
        return client_of(self.world)

    @property
    def bucket(self) -> Bucket:
        assert isinstance(self.world.objects, Bucket)
        return self.world.objects

    @property
    def specs(self) -> list[dict[str, Any]]:
        """Of all runs, in the order in which they were submitted."""
        return [run.spec for run in self.runs.values()]

    def close(self) -> None:
        self.held.set()
        self._pool.shutdown(cancel_futures=True)

    def get_log_events(self, *, logStreamName: str, **request: Any) -> dict[str, Any]:
        run, _, task = logStreamName.partition("/")
        return {"events": [{"message": line} for line in self.runs[run].said[int(task)].splitlines()]}

    def _submit(self, request: dict[str, Any]) -> dict[str, Any]:
        spec = request["spec"]
        run = CalledRun(f"{spec['name']}-{len(self.runs)}", spec)
        self.runs[run.id] = run
        program = self.folder / run.id
        self._unpack(spec["job"], program)
        for index in range(spec["array"]["size"]):
            self._pool.submit(self._task, run, index, program)
        return run.view()

    def _describe(self, request: dict[str, Any]) -> dict[str, Any]:
        run = self.runs.get(request["runId"])
        return api_error(404, "ResourceNotFoundException", "there is no such run") if run is None else run.view()

    def _task_view(self, request: dict[str, Any]) -> dict[str, Any]:
        run, index = self.runs[request["runId"]], request["index"]
        place = {"logGroup": "/g", "logStream": f"{run.id}/{index}", "region": "us-east-1"}
        return {"index": index, "attempts": [{"attempt": 1, **run.why(run.codes[index]), **place}]}

    def _cancel(self, request: dict[str, Any]) -> dict[str, Any]:
        run = self.runs[request["runId"]]
        run.cancelled_tasks += request.get("tasks", ())
        run.cancelled = run.cancelled or "tasks" not in request
        return self.runs[request["runId"]].view()

    def _unpack(self, job: str, program: Path) -> None:
        for archive in json.loads(self.bucket.read(job))["archives"]:
            with tarfile.open(fileobj=io.BytesIO(self.bucket.read(archive["uri"]))) as packed:
                packed.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
                packed.extractall(program)

    def _task(self, run: CalledRun, index: int, program: Path) -> None:
        self.held.wait()
        given, out = self.folder / f"{run.id}-in-{index}", self.folder / f"{run.id}-out-{index}"
        given.mkdir()
        out.mkdir()
        for uri in run.spec["inputs"]:
            address = uri.replace("${index}", str(index))
            (given / address.rpartition("/")[2]).write_bytes(self.bucket.read(address))
        code = 0 if run.cancelled else self._attempts(run, index, program, given, out)
        for file in out.iterdir() if code == 0 else ():
            self.bucket.put(layout.part_uri(run.view()["output"], index, file.suffix), file.read_bytes())
        run.codes[index] = code
        with self._changed:
            self._changed.notify_all()

    def _attempts(self, run: CalledRun, index: int, program: Path, given: Path, out: Path) -> int:
        environment = {"ARGOSY_IN": str(given), "ARGOSY_OUT": str(out), "PATH": os.environ["PATH"]}
        for attempt in range(run.spec["retryStrategy"]["attempts"]):
            environment |= {"ARGOSY_TASK_INDEX": str(index), "ARGOSY_TASK_ATTEMPT": str(attempt + 1)}
            said = self.folder / f"{run.id}-said-{index}"
            code = zygote.run(run.spec["run"][1:], program, environment, said)
            run.said[index] = said.read_text()
            if code in (0, WRONG):
                break
        return code

    def _wait(self) -> None:
        with self._changed:
            self._changed.wait(0.02)
