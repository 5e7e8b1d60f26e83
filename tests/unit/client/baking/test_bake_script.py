"""The instance that becomes an AMI: its user data under a real systemd, and its script with stand-ins for programs."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from argosy.client.baking.user_data import SCRIPT, held_digest, last_lines, user_data
from tests.fakes.answering import Answering, answering
from tests.fakes.booting import Instance, why_not
from tests.fakes.instance_metadata import instance_metadata
from tests.fakes.signed_s3 import ACCESS_KEY, TOKEN

DIGEST = f"sha256:{'0123456789abcdef' * 4}"
IMAGE, REGISTRY = "public.ecr.aws/team/train:7", "123456789012.dkr.ecr.eu-west-1.amazonaws.com"
PARTS = 'Content-Type: multipart/mixed; boundary="B"\n\n--B\n\ntrue\n--B\n\n{}\n--B--\n'
LOGIN = base64.b64encode(b"AWS:secret").decode()
DOCKER = """case "$*" in
pull*) [ ! -e refused ] || { cat refused; exit 1; }; cp $DOCKER_CONFIG/config.json login 2>/dev/null || true ;;
*RepoDigests*) echo "$5@$(cat digest)" ;;
*.Architecture*) cat architecture ;;
*Server.Arch*) echo arm64 ;;
esac"""
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")


@pytest.mark.slow
@pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")
@pytest.mark.parametrize("docker", ["before the boot script", "after the boot script"])
def test_the_instance_pulls_whenever_docker_starts_and_no_agent_starts(docker: str, tmp_path: Path) -> None:
    (tmp_path / "digest").write_text(DIGEST)
    left = [tmp_path / "upper" / each for each in ("var/lib/cloud/sem", "var/lib/ecs/data/agent.db")]
    for each in left:
        each.parent.mkdir(parents=True)
        each.touch()
    booted = Instance(tmp_path, PARTS.format(user_data(IMAGE)), "", docker).boot()
    assert "agent starts" not in booted.log
    assert [line for line in booted.log if line.startswith("shutdown")] == ["shutdown -h +45", "shutdown -h now"]
    assert held_digest((tmp_path / "console").read_text()) == DIGEST
    assert json.loads(booted.read("/etc/docker/daemon.json") or "") == {"data-root": "/var/lib/docker"}
    assert booted.read("/etc/machine-id") == ""
    assert not any(each.is_file() for each in left), "the AMI holds nothing of the instance's own"


def baked(folder: Path, image: str, **environment: str) -> list[str]:
    """The console's lines. The files `refused`, `digest` and `architecture` steer the stand-in for Docker."""
    (folder / "digest").write_text(DIGEST)
    if not (folder / "architecture").exists():
        (folder / "architecture").write_text("arm64")
    stand_ins: Mapping[str, str] = {"docker": DOCKER, "sleep": "echo $1 >>slept", "shutdown": "echo $* >>ended"}
    for name, text in {**stand_ins, "cloud-init": "exit 1", "sync": ""}.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    (folder / "root/etc").mkdir(parents=True, exist_ok=True)
    paths = {"ARGOSY_ROOT": str(folder / "root"), "ARGOSY_CONSOLE": str(folder / "console")}
    given = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "IMAGE": image, **paths, **environment}
    subprocess.run(["bash", SCRIPT], cwd=folder, env=given, check=True, timeout=60)
    assert (folder / "ended").read_text() == "-h now\n"
    return (folder / "console").read_text().splitlines()


@pytest.mark.slow
@needs_curl
def test_the_instances_role_logs_in_to_ecr_and_the_ami_keeps_no_token(tmp_path: Path) -> None:
    class Ecr(Answering):
        def do_POST(self) -> None:  # noqa: N802 - a name of the standard library
            assert f"Credential={ACCESS_KEY}/" in self.headers["Authorization"]
            assert "/eu-west-1/ecr/aws4_request" in self.headers["Authorization"]
            assert self.headers["X-Amz-Security-Token"] == TOKEN
            assert self.headers["X-Amz-Target"].endswith(".GetAuthorizationToken")
            self.answer(json.dumps({"authorizationData": [{"authorizationToken": LOGIN}]}).encode())

    image = f"{REGISTRY}/team/train:7"
    with instance_metadata() as metadata, answering(Ecr) as url:
        lines = baked(tmp_path, image, ARGOSY_METADATA=metadata.url, ARGOSY_ECR=url)
    assert lines == [f"argosy bake: holds {image} as {DIGEST}"]
    assert json.loads((tmp_path / "login").read_text()) == {"auths": {REGISTRY: {"auth": LOGIN}}}
    kept = [path for path in (tmp_path / "root").rglob("*") if path.is_file() and LOGIN in path.read_text()]
    assert [path.relative_to(tmp_path / "root").parts[0] for path in kept] == ["run"], "in memory, on an instance"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "text", "says", "slept"),
    [
        ("refused", "manifest unknown\nfor :7", "failed: manifest unknown for :7", "10 30 60"),
        ("architecture", "amd64", f"failed: {IMAGE} is for amd64, and this instance is arm64", "60"),
        ("root/etc/docker/daemon.json", "{", "failed: python3", "60"),
    ],
)
def test_the_console_has_the_reason_why_there_is_no_image(
    tmp_path: Path, file: str, text: str, says: str, slept: str
) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    (line,) = baked(tmp_path, IMAGE)
    assert line.startswith(f"argosy bake: {says}")
    assert held_digest(line) is None
    assert (tmp_path / "slept").read_text().split() == slept.split()


def test_the_last_lines_of_a_console_are_ours_once_each_else_the_last_of_any() -> None:
    boots = [f"[    {number}.0] kernel" for number in range(9)]
    assert last_lines("\r\n".join(boots)) == boots[-5:]
    ours = ["argosy bake: failed: one", "argosy bake: failed: one", "[ 12.0] argosy bake: two\r"]
    assert last_lines("\n".join([*boots, *ours])) == ["argosy bake: failed: one", "argosy bake: two"]
    assert last_lines("") == []


def test_an_images_name_is_one_word_of_the_shell() -> None:
    assert "--setenv=IMAGE='$(reboot)' /bin/bash" in user_data("$(reboot)")
