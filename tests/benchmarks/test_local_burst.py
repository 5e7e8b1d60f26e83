"""How soon does local mode answer a burst: 300 submits by 10 clients, behind a running run of 150 tasks?

Floor: 95 of 100 answers within a second, and a page of the list as well. `make bench` prints the figures.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from argosy.client.local_key import LocalKey
from argosy.local.clients import LocalClients
from argosy.local.cloud import LocalAws
from argosy.local.options import LocalOptions
from tests.fakes.waiting import until

CLIENTS, SUBMITS, BEFORE = 10, 300, 150
DOCKERFILE = 'FROM python:3.12-slim\nENTRYPOINT ["sleep"]\n'


@dataclass(frozen=True)
class Asking:
    """A user's program."""

    clients: LocalClients
    function: str

    def __call__(self, action: str, **request: Any) -> tuple[float, dict[str, Any]]:
        """(seconds, body of the reply)."""
        began = time.perf_counter()
        payload = json.dumps({"action": action, **request}).encode()
        answer = self.clients("lambda").invoke(FunctionName=self.function, Payload=payload)
        reply = json.loads(answer["Payload"].read())
        assert reply["statusCode"] == 200, reply
        return time.perf_counter() - began, reply["body"]


def spec(name: str, tasks: int, seconds: float) -> dict[str, Any]:
    container = {"image": "argosy/tool", "command": [str(seconds)]}
    resources = {"vcpus": 1, "memory": 64}
    return {"version": 1, "name": name, "container": container, "resources": resources, "array": {"size": tasks}}


def burst(endpoint: str, key: LocalKey, function: str) -> list[float]:
    """Seconds of each submit."""
    ask = Asking(LocalClients(endpoint, key.region, key), function)

    def submit(number: int) -> float:
        return ask("SubmitRun", clientToken=f"small-{number}", spec=spec("small", 1, 0.1))[0]

    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(submit, range(SUBMITS)))


@pytest.mark.benchmark
def test_a_burst_of_submits_is_answered_within_a_second(tmp_path: Path) -> None:
    tool = tmp_path / "containers" / "tool"
    tool.mkdir(parents=True)
    (tool / "Dockerfile").write_text(DOCKERFILE)
    options = LocalOptions(images_root=tool.parent, state_dir=tmp_path / "state")
    with LocalAws(options=options) as aws:
        ask = Asking(LocalClients(aws.endpoint_url, aws.region, aws.key), aws.names.api_function)
        _, body = ask("SubmitRun", clientToken="before", spec=spec("before", BEFORE, 2.0))
        until(lambda: ask("DescribeRun", runId=body["runId"])[1]["tasks"]["running"])
        began = time.perf_counter()
        with ProcessPoolExecutor(1, get_context("spawn")) as users:  # who do not share the embedded AWS's interpreter
            seconds = users.submit(burst, aws.endpoint_url, aws.key, aws.names.api_function).result()
        took_s = time.perf_counter() - began
        listed_s, page = ask("ListRuns", maxResults=20)
        described_s, _ = ask("DescribeRun", runId=body["runId"])
    p50, p95, most = np.percentile(seconds, [50, 95, 100])
    print(
        f"\n{SUBMITS} submits by {CLIENTS} clients in {took_s:.1f} s: median {p50:.2f} s, p95 {p95:.2f} s,"
        f" longest {most:.2f} s; then ListRuns of 20 in {listed_s:.2f} s, DescribeRun in {described_s:.2f} s"
    )
    assert len(page["runs"]) == 20
    assert p95 < 1
    assert max(listed_s, described_s) < 1
