"""How an instance gets its runner: the very script that ships, with a real curl against an S3 that checks signatures.

Docker does not run yet, as at a boot. tests/unit/stacks/test_boot_order.py has the boot around it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fakes.instance_metadata import InstanceMetadata, instance_metadata
from tests.fakes.signed_s3 import BUCKET, REGION, SignedS3, signed_s3

SCRIPT = Path(__file__).resolve().parents[3] / "stacks" / "user_data" / "argosy-boot.sh"
RUNNER = b"#!/bin/sh\necho argosy-runner protocol 1\n"
OTHER_MACHINE = b"\x7fELF of another machine"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")]


@dataclass
class Machine:
    """An instance at its first boot."""

    folder: Path
    s3: SignedS3
    metadata: type[InstanceMetadata]

    @property
    def runner(self) -> Path:
        return self.folder / "opt" / "argosy-runner"

    @property
    def daemon(self) -> Path:
        return self.folder / "docker" / "daemon.json"

    def install(self, content: bytes = RUNNER, digest: str = "") -> int:
        """The script's exit code."""
        self.s3.put("runner-asset", content)
        url = f"{self.s3.endpoint}/{BUCKET}/runner-asset"
        environment = {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "ARGOSY_FOLDER": str(self.runner.parent),
            "ARGOSY_DAEMON": str(self.daemon),
            "ARGOSY_METADATA": self.metadata.url,
            "ARGOSY_CONSOLE": str(self.folder / "console"),
        }
        words = ["bash", str(SCRIPT), "install", url, REGION, digest or hashlib.sha256(content).hexdigest()]
        return subprocess.run(words, env=environment, capture_output=True, check=False, timeout=60).returncode


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    for name, text in (("systemctl", "exit 3"), ("sleep", "exit 0")):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    with signed_s3() as s3, instance_metadata() as metadata:
        s3.tokens_needed = True
        yield Machine(tmp_path, s3, metadata)


def test_docker_uses_the_runner_as_its_containers_init(machine: Machine) -> None:
    assert machine.install() == 0
    assert machine.s3.refused == []
    assert machine.runner.read_bytes() == RUNNER
    assert machine.runner.stat().st_mode & 0o777 == 0o755
    assert json.loads(machine.daemon.read_text()) == {"init-path": str(machine.runner)}


def test_keys_that_come_late_are_waited_for(machine: Machine) -> None:
    machine.metadata.late = 3
    assert machine.install() == 0


def test_what_an_image_has_set_in_docker_stays(machine: Machine) -> None:
    machine.daemon.parent.mkdir()
    machine.daemon.write_text('{"log-level": "warn", "default-ulimits": {"nofile": {"Soft": 1}}}')
    assert machine.install() == 0
    assert json.loads(machine.daemon.read_text()) == {
        "log-level": "warn",
        "default-ulimits": {"nofile": {"Soft": 1}},
        "init-path": str(machine.runner),
    }


def test_another_file_than_the_one_that_was_deployed_is_not_installed(machine: Machine) -> None:
    assert machine.install(digest="0" * 64) == 1
    assert not machine.daemon.exists()
    assert [*machine.runner.parent.iterdir()] == []


def test_a_runner_of_another_machine_is_not_installed(machine: Machine) -> None:
    assert machine.install(OTHER_MACHINE) == 1
    assert not machine.daemon.exists()


def test_without_the_right_to_read_it_the_instance_continues_without(machine: Machine) -> None:
    machine.s3.trouble("GET", "runner-asset", 403)
    assert machine.install() == 1
    assert not machine.daemon.exists()
