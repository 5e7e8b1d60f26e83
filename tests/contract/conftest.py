"""Every contract case runs once per implementation."""

from __future__ import annotations

import pytest

from tests.fakes.ecs_clouds import IMPLEMENTATIONS, EcsCloud


@pytest.fixture(params=sorted(IMPLEMENTATIONS))
def cloud(request: pytest.FixtureRequest) -> EcsCloud:
    """A fresh ECS with the cluster `argosy`, without instances."""
    return IMPLEMENTATIONS[request.param]()


@pytest.fixture
def virtual(cloud: EcsCloud) -> EcsCloud:
    """The same, where time can be passed and events can be read."""
    if cloud.pass_time is None or cloud.events is None:
        pytest.skip("this implementation runs on the real clock")
    return cloud
