"""The cost of a steady service is visible although no attempt ends for days."""

from __future__ import annotations

import pytest

from argosy.api.actions import Api
from tests.fakes.api import Wake
from tests.scenarios.services import service, state_of, up

DAY_S = 86_400.0


def test_each_day_of_a_steady_service_is_in_its_cost_when_it_is_over() -> None:
    cluster = service()
    up(cluster, 2)
    api = Api(cluster.store, Wake(), None, None, "argosy", ["us-east-1"], cluster.world.clock)  # type: ignore[arg-type]

    def cost() -> float:
        answer = api.handle({"action": "DescribeEnvironment", "name": "web"}, "request-1")
        return float(answer["body"]["costUsd"])

    [instance] = state_of(cluster).instances.values()
    before = cost()
    for day in (1, 2, 3):
        cluster.world.run_for(DAY_S)
        assert cost() - before == pytest.approx(day * 24 * instance.price_usd_per_hour, rel=0.01)
