"""How quick is local mode with tiny tasks: 1,000 x `true`, and the first task of a run on a running local mode?

Side by side with xargs and GNU parallel on the same machine, whose processes know nothing of results, retries or
limits. `make bench` prints the figures. The floors leave room for a machine that is busy with other things.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from argosy.local.clients import LocalClients
from argosy.local.cloud import LocalAws
from argosy.local.options import LocalOptions
from tests.fakes.waiting import until

TASKS, AT_ONCE = 1_000, 2
PATIENCE_S = 600.0
MOST_FIRST_S, MOST_MANY_S = 3.0, 200.0  # of a machine of two cores that is busy; idle, they take 0.3 and 10
DOCKERFILE = 'FROM scratch\nENTRYPOINT ["true"]\n'


class User:
    """A user's program, which asks the deployment's api."""

    def __init__(self, aws: LocalAws) -> None:
        self._lambda = LocalClients(aws.endpoint_url, aws.region, aws.key)("lambda")
        self._function = aws.names.api_function

    def ask(self, action: str, **request: Any) -> dict[str, Any]:
        """The body of the reply."""
        payload = json.dumps({"action": action, **request}).encode()
        reply = json.loads(self._lambda.invoke(FunctionName=self._function, Payload=payload)["Payload"].read())
        assert reply["statusCode"] == 200, reply
        return dict(reply["body"])

    def submit(self, name: str, tasks: int) -> str:
        """The run's id."""
        container = {"image": "argosy/tool"}
        resources = {"vcpus": 1, "memory": 64}
        spec = {"version": 1, "name": name, "container": container, "resources": resources, "array": {"size": tasks}}
        return str(self.ask("SubmitRun", clientToken=name, spec=spec)["runId"])

    def seconds_until(self, run_id: str, began: float, state: str, count: int) -> float:
        """From `began` until that many of the run's tasks have reached the status."""

        def far_enough() -> bool:
            tasks = self.ask("DescribeRun", runId=run_id)["tasks"]
            return bool(sum(tasks[each] for each in ("running", "succeeded") if each in (state, "succeeded")) >= count)

        until(far_enough, PATIENCE_S)
        return time.perf_counter() - began


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    root = tmp_path_factory.mktemp("speed")
    tool = root / "containers" / "tool"
    tool.mkdir(parents=True)
    (tool / "Dockerfile").write_text(DOCKERFILE)
    options = LocalOptions(images_root=tool.parent, state_dir=root / "logs")
    with LocalAws(options=options) as aws:
        yield User(aws)


def other(program: str, *arguments: str) -> str:
    """The row of another program that starts as many processes."""
    if shutil.which(program) is None:
        return f"{program:<14} not installed"
    numbers = "\n".join(map(str, range(TASKS))).encode()
    began = time.perf_counter()
    subprocess.run([program, *arguments], input=numbers, check=True, capture_output=True)
    return f"{program:<14} {time.perf_counter() - began:6.1f} s"


@pytest.mark.benchmark
def test_first_task_and_a_thousand(user: User) -> None:
    firsts = []
    for number in range(3):
        began = time.perf_counter()
        firsts.append(user.seconds_until(user.submit(f"first-{number}", 1), began, "succeeded", 1))
    began = time.perf_counter()
    took_s = user.seconds_until(user.submit("many", TASKS), began, "succeeded", TASKS)
    rows = [
        f"{'argosy local':<14} {took_s:6.1f} s",
        other("xargs", f"-P{AT_ONCE}", "-n1", "sh", "-c", "true"),
        other("parallel", f"-j{AT_ONCE}", "true"),
    ]
    said = ", ".join(f"{each:.2f}" for each in firsts)
    print(f"\n{TASKS} x true:\n  " + "\n  ".join(rows) + f"\none task, submit to end: {said} s")
    assert min(firsts) < MOST_FIRST_S
    assert took_s < MOST_MANY_S
