"""How an instance gets its runner: the very script that ships, with a real curl against an S3 that checks signatures.

Docker and systemd are fakes with a memory: `docker info` shows the daemon.json of Docker's last restart.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.signed_s3 import ACCESS_KEY, BUCKET, REGION, SECRET_KEY, TOKEN, SignedS3, signed_s3

SCRIPT = Path(__file__).resolve().parents[3] / "stacks" / "user_data" / "install-runner.sh"
RUNNER = b"#!/bin/sh\necho argosy-runner protocol 1\n"
OTHER_MACHINE = b"\x7fELF of another machine"
SYSTEMCTL = """#!/bin/sh
echo "$*" >> "$MACHINE/systemctl"
[ "$1" = reset-failed ] && exit 0
[ -e "$MACHINE/refuses" ] && [ -e "$ARGOSY_DAEMON" ] && grep -q argosy "$ARGOSY_DAEMON" && exit 1
cp "$ARGOSY_DAEMON" "$MACHINE/running" 2>/dev/null || rm -f "$MACHINE/running"
"""
DOCKER = """#!/bin/sh
[ "$*" = "info --format {{.InitBinary}}" ] || exit 9
sed -n 's/.*"init-path": "\\([^"]*\\)".*/\\1/p' "$MACHINE/running"
"""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")]


class Metadata(BaseHTTPRequestHandler):
    """The instance metadata service, version 2: a token first. `late`: this many requests are refused."""

    late = 0

    def do_PUT(self) -> None:
        self._answer(b"token-of-the-session")

    def do_GET(self) -> None:
        roles = "/latest/meta-data/iam/security-credentials/"
        if self.headers["X-aws-ec2-metadata-token"] != "token-of-the-session" or type(self).late > 0:
            type(self).late -= 1
            self.send_error(404)
        elif self.path == roles:
            self._answer(b"argosy-instance-us-east-1")
        elif self.path == roles + "argosy-instance-us-east-1":
            keys = {"Code": "Success", "AccessKeyId": ACCESS_KEY, "SecretAccessKey": SECRET_KEY, "Token": TOKEN}
            self._answer(json.dumps(keys, indent=2).encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


@dataclass
class Machine:
    """An instance at its first boot."""

    folder: Path
    s3: SignedS3
    metadata: type[Metadata]
    port: int

    @property
    def runner(self) -> Path:
        return self.folder / "opt" / "argosy-runner"

    @property
    def daemon(self) -> Path:
        return self.folder / "docker" / "daemon.json"

    @property
    def restarts(self) -> int:
        log = self.folder / "systemctl"
        return log.read_text().count("restart docker") if log.exists() else 0

    @property
    def told_systemd(self) -> list[str]:
        return (self.folder / "systemctl").read_text().splitlines()

    def install(self, content: bytes = RUNNER, digest: str = "") -> int:
        """The script's exit code."""
        self.s3.put("runner-asset", content)
        url = f"{self.s3.endpoint}/{BUCKET}/runner-asset"
        environment = {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "MACHINE": str(self.folder),
            "ARGOSY_FOLDER": str(self.runner.parent),
            "ARGOSY_DAEMON": str(self.daemon),
            "ARGOSY_METADATA": f"http://127.0.0.1:{self.port}/latest",
        }
        words = ["bash", str(SCRIPT), url, REGION, digest or hashlib.sha256(content).hexdigest()]
        return subprocess.run(words, env=environment, capture_output=True, check=False, timeout=60).returncode


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    for name, text in (("systemctl", SYSTEMCTL), ("docker", DOCKER), ("sleep", "#!/bin/sh\n")):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    handler = type("Handler", (Metadata,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    with signed_s3() as s3:
        s3.tokens_needed = True
        yield Machine(tmp_path, s3, handler, server.server_port)
    server.shutdown()
    thread.join()
    server.server_close()


def test_docker_uses_the_runner_as_its_containers_init(machine: Machine) -> None:
    assert machine.install() == 0
    assert machine.s3.refused == []
    assert machine.runner.read_bytes() == RUNNER
    assert machine.runner.stat().st_mode & 0o777 == 0o755
    assert json.loads(machine.daemon.read_text()) == {"init-path": str(machine.runner)}
    assert machine.restarts == 1


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


@pytest.mark.parametrize("before", [None, '{"log-level": "warn"}'])
def test_a_docker_that_does_not_start_with_it_gets_its_settings_back(machine: Machine, before: str | None) -> None:
    (machine.folder / "refuses").touch()
    machine.daemon.parent.mkdir()
    if before:
        machine.daemon.write_text(before)
    assert machine.install() == 1
    assert (machine.daemon.read_text() if machine.daemon.exists() else None) == before
    assert machine.told_systemd == ["restart docker", "reset-failed docker", "restart docker"]
    assert not machine.runner.exists()


def test_another_file_than_the_one_that_was_deployed_is_not_installed(machine: Machine) -> None:
    assert machine.install(digest="0" * 64) == 1
    assert not machine.daemon.exists()
    assert [*machine.runner.parent.iterdir()] == []
    assert machine.restarts == 0


def test_a_runner_of_another_machine_is_not_installed(machine: Machine) -> None:
    assert machine.install(OTHER_MACHINE) == 1
    assert not machine.daemon.exists()
    assert machine.restarts == 0


def test_without_the_right_to_read_it_the_instance_continues_without(machine: Machine) -> None:
    machine.s3.trouble("GET", "runner-asset", 403)
    assert machine.install() == 1
    assert not machine.daemon.exists()
    assert machine.restarts == 0
