"""An embedded AWS with its own image, for end-to-end tests: real processes, real handlers, real HTTP."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from argosy.local.clients import LocalClients
from argosy.local.cloud import LocalAws
from argosy.local.deployment import local_settings
from argosy.local.forks import Forks
from argosy.local.options import EAGER_POLICY, LocalOptions
from tests.fakes.local_mode import local_aws

PATIENCE_S = 240.0  # of a busy machine
PAUSE = threading.Event()
WORKER = '''
"""Writes its part, or fails in the way it is told: `worker.py MODE PART [SECONDS]`."""

import hashlib
import hmac
import os
import sys
import time
import urllib.request
from urllib.parse import urlsplit


def signed(url):
    at, where = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()), urlsplit(url)
    lines = ["PUT", where.path, "", f"host:{where.netloc}", f"x-amz-date:{at}", "", "host;x-amz-date", NO_DIGEST]
    scope = [at[:8], "us-east-1", "s3", "aws4_request"]
    text = ["AWS4-HMAC-SHA256", at, "/".join(scope), hashlib.sha256("\\n".join(lines).encode()).hexdigest()]
    key = b"AWS4" + os.environ["AWS_SECRET_ACCESS_KEY"].encode()
    for each in [*scope, "\\n".join(text)]:
        key = hmac.new(key, each.encode(), "sha256").digest()
    credential = os.environ["AWS_ACCESS_KEY_ID"] + "/" + "/".join(scope)
    proof = f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host;x-amz-date, Signature={key.hex()}"
    return {"Authorization": proof, "X-Amz-Date": at, "X-Amz-Content-SHA256": NO_DIGEST}


NO_DIGEST = "UNSIGNED-PAYLOAD"
mode, part = sys.argv[1:3]
if len(sys.argv) > 3:
    time.sleep(float(sys.argv[3]))
if mode.startswith("exit"):
    print("failing as told")
    sys.exit(int(mode.removeprefix("exit")))
if mode == "hog":
    held = bytearray(400 << 20)
    time.sleep(30)
if mode == "second" and int(os.environ["ARGOSY_TASK_INDEX"]) % 3 == 0 and os.environ["ARGOSY_TASK_ATTEMPT"] == "1":
    sys.exit(1)
if mode in ("write", "second"):
    attempt = os.environ["ARGOSY_TASK_ATTEMPT"]
    body = f"{os.environ['ARGOSY_TASK_INDEX']} {os.environ.get('NVIDIA_VISIBLE_DEVICES')}"
    url = part.replace("s3://", os.environ["AWS_ENDPOINT_URL"] + "/")
    headers = {"Content-Type": "text/plain", "If-None-Match": "*", "x-amz-meta-argosy-attempt": attempt}
    request = urllib.request.Request(url, data=body.encode(), method="PUT", headers=headers | signed(url))
    urllib.request.urlopen(request)
'''


class Cluster:
    """A running embedded AWS, and a user's actions on it."""

    def __init__(self, aws: LocalAws, clients: LocalClients) -> None:
        self.aws, self.clients = aws, clients
        self.s3, self.ecs = clients("s3"), clients("ecs")

    def ask(self, action: str, **fields: Any) -> dict[str, Any]:
        """The api's reply body. Fails the test on anything but 200."""
        reply = self.invoke({"action": action, **fields})
        assert reply["statusCode"] == 200, reply
        return dict(reply["body"])

    def invoke(self, request: dict[str, Any]) -> dict[str, Any]:
        """Without HTTP, whose 8 ms of CPU time are half of a look (`tests/contract/test_local_aws.py` has it)."""
        outcome = self.aws.functions["argosy-api"].invoke(json.dumps(request).encode(), str(uuid.uuid4()))
        assert outcome.error is None, outcome
        return dict(json.loads(outcome.payload))

    def submit(self, command: list[str], tasks: int, **fields: Any) -> str:
        spec = {
            "version": 1,
            "name": "worker",
            "container": {"image": "argosy/worker", "command": command},
            "resources": {"vcpus": 1, "memory": 256},
            "array": {"size": tasks},
            **fields,
        }
        return str(self.ask("SubmitRun", spec=spec)["runId"])

    def run(self, run_id: str) -> dict[str, Any]:
        return self.ask("DescribeRun", runId=run_id, include=["tasks"])

    def finished(self, run_id: str) -> dict[str, Any]:
        """The run once it is over."""
        terminal = ("SUCCEEDED", "PARTIAL", "FAILED", "CANCELLED")
        self.until(lambda: self.ask("DescribeRun", runId=run_id)["status"] in terminal)
        return self.run(run_id)

    def until(self, condition: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
        """The value of `condition` once it is true; fails after a while, with the end of the controller's log."""
        deadline, pause_s = time.monotonic() + patience_s, 0.05
        while not (value := condition()):
            assert time.monotonic() < deadline, self.controller_log()[-4000:]
            PAUSE.wait(pause_s)  # between two looks
            pause_s = min(0.5, pause_s * 1.5)  # a look takes 10 ms of CPU time
        return value

    def keys(self, run_id: str) -> list[str]:
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket="argosy-results", Prefix=f"{run_id}/")
        return [each["Key"].removeprefix(f"{run_id}/") for page in pages for each in page.get("Contents", ())]

    def read(self, key: str) -> bytes:
        return bytes(self.s3.get_object(Bucket="argosy-results", Key=key)["Body"].read())

    def ecs_tasks(self, run_id: str) -> list[dict[str, Any]]:
        """Every ECS task of the run that ECS lists, running and stopped."""
        arns: list[str] = []
        for status in ("RUNNING", "STOPPED"):
            for page in self.ecs.get_paginator("list_tasks").paginate(cluster="argosy", desiredStatus=status):
                arns += page["taskArns"]
        described: list[dict[str, Any]] = []
        for start in range(0, len(arns), 100):
            described += self.ecs.describe_tasks(cluster="argosy", tasks=arns[start : start + 100])["tasks"]
        return [task for task in described if task["group"] == f"run:{run_id}"]

    def controller_log(self) -> str:
        return (self.aws.state_dir / "argosy-controller.log").read_text()

    def kill_controller(self) -> None:
        self.aws.functions["argosy-controller"].kill()


@contextmanager
def cluster(
    folder: Path, cells: Sequence[str] = ("us-east-1",), forks: Forks | None = None, **policy: float
) -> Iterator[Cluster]:
    image = folder / "containers" / "worker"
    image.mkdir(parents=True)
    (image / "Dockerfile").write_text('FROM scratch\nENTRYPOINT ["python", "worker.py"]\n')
    (image / "worker.py").write_text(WORKER)
    settings = local_settings(cells=list(cells))
    options = LocalOptions(settings, folder / "containers", boot_s=0.2, tick_s=0.3, stop_timeout_s=5.0)
    options = replace(options, policy={**EAGER_POLICY, **policy}, state_dir=folder / "state")
    with local_aws(options, forks) as aws:
        clients = LocalClients(aws.endpoint_url, "us-east-1", aws.key)
        try:
            yield Cluster(aws, clients)
        finally:
            clients.close()
