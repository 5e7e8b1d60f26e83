"""A user's task definition may not reach the host: every way that ECS has is refused, and says its name."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest

from argosy.spec.definitions import is_allowed_family, ways_to_the_host

HARMLESS: dict[str, Any] = {
    "networkMode": "bridge",
    "pidMode": "task",
    "ipcMode": "task",
    "volumes": [
        {"name": "scratch", "host": {}},
        {"name": "shared", "dockerVolumeConfiguration": {"scope": "task", "driver": "local"}},
        {"name": "files", "efsVolumeConfiguration": {"fileSystemId": "fs-1"}},
    ],
    "containerDefinitions": [
        {
            "name": "main",
            "privileged": False,
            "dockerSecurityOptions": ["no-new-privileges"],
            "linuxParameters": {"capabilities": {"drop": ["ALL"]}, "devices": [], "tmpfs": []},
        },
        {"name": "side"},
    ],
}


def container(**fields: Any) -> dict[str, Any]:
    return {"containerDefinitions": [{"name": "main"}, {"name": "side", **fields}]}


def test_what_stays_in_its_container_is_allowed() -> None:
    assert list(ways_to_the_host(HARMLESS)) == []
    assert list(ways_to_the_host({})) == []


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ({"networkMode": "host"}, "networkMode host"),
        ({"pidMode": "host"}, "pidMode host"),
        ({"ipcMode": "host"}, "ipcMode host"),
        ({"volumes": [{"name": "v", "host": {"sourcePath": "/var/run/docker.sock"}}]}, "v: /var/run/docker.sock"),
        (
            {"volumes": [{"name": "v", "dockerVolumeConfiguration": {"driverOpts": {"type": "none", "device": "/"}}}]},
            "a volume v with a driver",
        ),
        ({"volumes": [{"name": "v", "dockerVolumeConfiguration": {"driver": "rexray"}}]}, "a volume v with a driver"),
        (container(privileged=True), "a container side that is privileged"),
        (
            container(linuxParameters={"capabilities": {"add": ["SYS_ADMIN"]}}),
            "side with added capabilities (SYS_ADMIN)",
        ),
        (container(linuxParameters={"devices": [{"hostPath": "/dev/mem"}]}), "devices of its host (/dev/mem)"),
        (container(dockerSecurityOptions=["seccomp:unconfined"]), "security options (seccomp:unconfined)"),
    ],
)
def test_a_way_to_the_host_is_found_and_named(definition: dict[str, Any], said: str) -> None:
    [way] = ways_to_the_host(definition)
    assert said in way


def test_every_value_of_awss_own_enumerations_that_says_host_is_refused() -> None:
    """Read from botocore's model, so that a mode which AWS adds is seen here."""
    model = botocore.session.get_session().get_service_model("ecs")
    for field in ("networkMode", "pidMode", "ipcMode"):
        known = model.shape_for("TaskDefinition").members[field].enum
        refused = {value for value in known if list(ways_to_the_host({field: value}))}
        assert refused == {"host"}
        assert set(known) <= {"host", "task", "none", "bridge", "awsvpc"}


def test_every_field_that_aws_has_for_a_host_is_judged_or_known_to_be_harmless() -> None:
    """A field that AWS adds makes this fail, so that it gets reviewed."""
    model = botocore.session.get_session().get_service_model("ecs")
    judged = {"capabilities", "devices"}
    harmless = {"initProcessEnabled", "sharedMemorySize", "tmpfs", "maxSwap", "swappiness"}
    assert set(model.shape_for("LinuxParameters").members) == judged | harmless
    volumes = {"host", "dockerVolumeConfiguration"}
    remote = {"efsVolumeConfiguration", "fsxWindowsFileServerVolumeConfiguration", "configuredAtLaunch", "name"}
    assert set(model.shape_for("Volume").members) - {"s3filesVolumeConfiguration"} == volumes | remote
    assert {"privileged", "dockerSecurityOptions", "linuxParameters"} <= set(
        model.shape_for("ContainerDefinition").members
    )


@pytest.mark.parametrize(
    ("family", "globs", "allowed"),
    [
        ("argosy-cpu", ("argosy-*",), True),
        ("argosy", ("argosy-*",), False),
        ("my-argosy-cpu", ("argosy-*",), False),
        ("Sweep", ("sweep",), False),
        ("x", (), False),
        ("x", ("*",), True),
    ],
)
def test_a_family_is_allowed_by_a_glob(family: str, globs: tuple[str, ...], allowed: bool) -> None:
    assert is_allowed_family(family, globs) is allowed
