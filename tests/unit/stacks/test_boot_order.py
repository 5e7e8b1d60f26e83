"""In which order does an instance boot? Its user data under a real systemd, with Docker at three times."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from argosy.settings.settings import load_settings
from stacks.boot import user_data
from tests.fakes.booting import DOCKER, Instance, why_not
from tests.fakes.instance_metadata import instance_metadata
from tests.fakes.signed_s3 import BUCKET, REGION, SignedS3, signed_s3

RUNNER = b"#!/bin/sh\necho argosy-runner protocol 1\n"
PLACE = "/opt/argosy/argosy-runner"
ON_TIME, EARLY = "before the boot script", "before everything"
OWN, WITH_RUNNER = {"team": "vision"}, {"team": "vision", "argosy.runner": "1"}
NO_RUNNER = "no runner, so this instance takes no runs with a program of their own: "

Boot = Callable[..., Instance]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]


@pytest.fixture
def s3() -> Iterator[SignedS3]:
    with signed_s3() as store:
        store.tokens_needed = True
        store.put("runner-asset", RUNNER)
        yield store


@pytest.fixture
def boot(s3: SignedS3, tmp_path: Path) -> Iterator[Boot]:
    url = shlex.quote(f"{s3.endpoint}/{BUCKET}/runner-asset")
    arguments = f"{url} {REGION} {hashlib.sha256(RUNNER).hexdigest()}"
    given = user_data(load_settings({"attributes": {"*": OWN}}), "c5.large", arguments)
    with instance_metadata() as metadata:
        yield lambda docker, changes={}: Instance(tmp_path, given, metadata.url, docker, changes).boot()


@pytest.mark.parametrize("docker", [name for name in DOCKER if name != EARLY])
def test_docker_first_starts_with_the_runner_and_is_never_restarted(boot: Boot, docker: str) -> None:
    booted = boot(docker)
    started = [line for line in booted.log if line.startswith(("docker", "agent"))]
    assert started == [f"docker starts with {PLACE}", "agent starts"]
    assert booted.log.index("script") < booted.log.index(started["before" in docker])
    assert [json.loads(each) for each in booted.attributes] == [WITH_RUNNER]
    assert sorted(booted.console) == [
        "the agent has joined as arn:of:host",
        "the agent starts; containers have the runner as their init",
        "the firewall is up and the agent is configured for the cluster argosy",
        "the runner is in place",
    ]


def test_a_docker_that_was_quicker_is_restarted_before_the_agent_starts(boot: Boot) -> None:
    booted = boot(EARLY)
    assert [line for line in booted.log if line.startswith(("docker", "agent"))] == [
        "docker starts with docker-init",
        f"docker starts with {PLACE}",
        "agent starts",
    ]
    assert [json.loads(each) for each in booted.attributes] == [WITH_RUNNER]


@pytest.mark.parametrize("docker", DOCKER)
def test_without_a_runner_an_instance_joins_without_the_attribute_and_says_why(
    boot: Boot, s3: SignedS3, docker: str
) -> None:
    s3.trouble("GET", "runner-asset", 403, times=99)
    booted = boot(docker)
    assert booted.log.count("docker starts with docker-init") == 1
    assert [json.loads(each) for each in booted.attributes] == [OWN]
    assert any(line.startswith(NO_RUNNER) and "403" in line for line in booted.console)
    assert "the agent starts without the runner; Docker's init is docker-init" in booted.console
    assert booted.read("/etc/docker/daemon.json") is None


def test_a_docker_that_does_not_start_with_the_runner_starts_without(boot: Boot, tmp_path: Path) -> None:
    (tmp_path / "refuses").touch()
    booted = boot(ON_TIME)
    assert booted.log[-3:] == [f"docker starts with {PLACE}", "docker starts with docker-init", "agent starts"]
    assert [json.loads(each) for each in booted.attributes] == [OWN]
    assert f"{NO_RUNNER}Docker does not start with it (exit-code)" in booted.console


def test_the_agent_waits_for_a_slow_runner_no_longer_than_its_unit_says(boot: Boot, s3: SignedS3) -> None:
    """On an instance that is 75 s, here one."""
    s3.trouble("GET", "runner-asset", "held")
    booted = boot(ON_TIME, {"argosy-runner.service.d/short.conf": "[Service]\nTimeoutStartSec=1\n"})
    s3.release()
    assert [json.loads(each) for each in booted.attributes] == [OWN]
    assert any("the agent starts without the runner" in line for line in booted.console)


def test_an_instance_whose_firewall_fails_says_so_and_does_not_join(boot: Boot, tmp_path: Path) -> None:
    (tmp_path / "no-firewall").touch()
    booted = boot(ON_TIME)
    assert "agent starts" not in booted.log
    assert any("does not join" in line and "argosy-firewall.service" in line for line in booted.console)
    assert booted.console[-1].startswith("the agent has not joined in three minutes; docker: active, ecs: inactive")


def test_an_agent_that_cannot_join_has_its_errors_on_the_console(boot: Boot, tmp_path: Path) -> None:
    (tmp_path / "mute").touch()
    assert boot(ON_TIME).console[-2:] == [
        "the agent has not joined in three minutes; docker: active, ecs: active; its last errors:",
        'level=error msg="AccessDeniedException: no"',
    ]


def test_a_second_boot_fetches_nothing_and_ends_alike(boot: Boot, s3: SignedS3) -> None:
    first = boot(ON_TIME)
    s3.trouble("GET", "runner-asset", 403, times=99)
    before = first.attributes
    again = first.boot(again=True)
    assert again.log == ["boothook", f"docker starts with {PLACE}", "agent starts"]
    assert again.attributes == before
