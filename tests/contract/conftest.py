"""Every contract case runs once per implementation."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.local.containers.engine_run import ContainerPort
from tests.container_engines import DOCKERFILE, hello, install_fake, static_busybox
from tests.fakes.ecs_clouds import IMPLEMENTATIONS, EcsCloud
from tests.fakes.serving import served


@pytest.fixture(params=sorted(IMPLEMENTATIONS))
def cloud(request: pytest.FixtureRequest) -> EcsCloud:
    """A fresh ECS with the cluster `argosy`, without instances."""
    return IMPLEMENTATIONS[request.param]()


@pytest.fixture
def virtual(cloud: EcsCloud) -> EcsCloud:
    """The same, with time that a test can advance and events that it can read."""
    if cloud.pass_time is None or cloud.events is None:
        pytest.skip("this implementation runs on the real clock")
    return cloud


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "containers" / "engine-test"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text(DOCKERFILE)
    busybox = static_busybox()
    if busybox is not None:
        shutil.copy(busybox, folder / "busybox")
    return folder.parent


@pytest.fixture
def door() -> Iterator[ContainerPort]:
    with served(hello) as server:
        yield ContainerPort(server.port, server.serve_too)


@pytest.fixture
def busybox() -> None:
    if static_busybox() is None:
        pytest.skip("there is no static busybox, whose nc is the client here")


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return install_fake(tmp_path, monkeypatch)
