"""Our own code fails at an environment: it is left unchanged, and everything else continues."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.inbox import EnvironmentRequest
from argosy.model.runs import RunStatus
from argosy.model.services.environments import Environment
from argosy.model.state import State
from tests.scenarios.controlled import Controlled


class Broken(Environment):
    """The runs at which the controller's code fails."""

    @property
    def target(self) -> Any:
        raise ZeroDivisionError("a fault of ours")


def broken(cluster: Controlled) -> State:
    state = cluster.controllers[0].state
    assert state is not None
    env = state.environments["web"]
    state.environments["web"] = Broken(**{name: getattr(env, name) for name in Environment.__slots__})
    return state


@pytest.mark.parametrize("ticks", [1, 20])
def test_a_batch_continues_while_our_code_fails_at_an_environment(ticks: int) -> None:
    cluster = Controlled()
    cluster.faulty = True
    cluster.put(EnvironmentRequest("web", cluster.world.now, "create", revision=1, desired=1), "web#create")
    cluster.tick()
    state = broken(cluster)
    cluster.submit(3)
    told = []
    for _ in range(ticks):
        told += cluster.controllers[0].tick().troubles
        cluster.pass_time(cluster.tick_s)
    assert any("environment web" in trouble.what and "a fault of ours" in trouble.reason for trouble in told)
    assert "web" in state.environments
    cluster.run_for(600)
    assert cluster.record().status == RunStatus.SUCCEEDED
