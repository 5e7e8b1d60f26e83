"""Errors of GPUs in the kernel's log: the shipped script, with a real curl against an ECS that checks signatures."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from argosy.messages.health import XIDS
from argosy.settings.settings import load_settings
from stacks.boot import user_data
from tests.fakes.answering import Answering, answering
from tests.fakes.instance_metadata import instance_metadata
from tests.fakes.signed_s3 import ACCESS_KEY, SECRET_KEY, TOKEN

SCRIPT = Path(__file__).resolve().parents[3] / "stacks" / "user_data" / "argosy-boot.sh"
ARN = "arn:aws:ecs:eu-west-1:123456789012:container-instance/argosy/0123"
LOG = """\
NVRM: loading NVIDIA UNIX Open Kernel Module
NVRM: Xid (PCI:0000:00:1e.0): 13, pid=4242, name=python, Graphics SM Warp Exception
NVRM: Xid (PCI:0000:00:1e.0): 43, pid=4242, name=python, Ch 00000010
NVRM: Xid (PCI:0000:00:1e.0): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
NVRM: Xid (PCI:0000:00:1e.0): 45, pid=4242, name=python, Ch 00000010
a program says: Xid 48
"""
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")


class Ecs(Answering):
    """The agent's metadata, and ECS. `told`: bodies of calls. `failures`: this many calls are refused first."""

    told: list[dict[str, Any]]
    failures = 0

    def do_GET(self) -> None:  # noqa: N802 - a name of the standard library
        self.answer(json.dumps({"Cluster": "argosy", "ContainerInstanceArn": ARN}).encode())

    def do_POST(self) -> None:  # noqa: N802 - a name of the standard library
        body = self.rfile.read(int(self.headers["Content-Length"]))
        named = {name.lower(): value for name, value in self.headers.items()}
        signed = named["authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
        url = f"http://{named['host']}{self.path}"
        request = AWSRequest("POST", url, {name: named[name] for name in signed}, body)
        request.context["timestamp"] = named["x-amz-date"]
        signer = SigV4Auth(Credentials(ACCESS_KEY, SECRET_KEY), "ecs", "eu-west-1")
        expected = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
        right = named["authorization"].endswith(f"Signature={expected}") and named["x-amz-security-token"] == TOKEN
        if not right or type(self).failures > 0:
            type(self).failures -= 1
            self.send_error(400)
            return
        self.told.append({"target": named["x-amz-target"], **json.loads(body)})
        self.answer(b"{}")


@contextmanager
def ecs(failures: int) -> Iterator[tuple[type[Ecs], str]]:
    handler: type[Ecs] = type("Handler", (Ecs,), {"told": [], "failures": failures})
    with answering(handler) as url:
        yield handler, url


@pytest.mark.slow
@needs_curl
@pytest.mark.parametrize("failures", [0, 2])
def test_an_error_that_concerns_the_instance_becomes_its_attribute_and_an_applications_does_not(
    tmp_path: Path, failures: int
) -> None:
    (tmp_path / "log").write_text(LOG)
    for name, text in (("journalctl", f"exec cat {tmp_path}/log"), ("sleep", "exit 0")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    with ecs(failures) as (handler, url), instance_metadata() as metadata:
        environment = {
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "ARGOSY_METADATA": metadata.url,
            "ARGOSY_CONSOLE": str(tmp_path / "console"),
            "ARGOSY_AGENT": url,
            "ARGOSY_ECS": url,
        }
        words = ["bash", str(SCRIPT), "xids", *map(str, XIDS)]
        subprocess.run(words, env=environment, capture_output=True, check=True, timeout=60)
    attribute = {"name": "argosy.xid", "value": "79", "targetId": ARN}
    target = "AmazonEC2ContainerServiceV20141113.PutAttributes"
    assert handler.told == [{"target": target, "cluster": "argosy", "attributes": [attribute]}]
    said = (tmp_path / "console").read_text().splitlines()
    assert sum("GPU has fallen off the bus" in line for line in said) == 1
    assert sum("ECS has not taken it" in line for line in said) == failures


def test_instances_with_gpus_alone_watch_the_log_for_errors() -> None:
    with_gpus, without = (user_data(load_settings({}), name, "URL") for name in ("g5.xlarge", "c5.large"))
    assert f"argosy-boot xids {' '.join(map(str, XIDS))}" in with_gpus
    assert "start --no-block argosy-xids.service" in with_gpus
    assert "start --no-block argosy-xids.service" not in without
    assert "sysctl" not in with_gpus + without
    assert "sysctl --write vm.overcommit_memory=1" in user_data(load_settings({}), "g6f.large", "URL")
    assert max(map(len, (with_gpus, without))) < 16_384  # what EC2 takes
