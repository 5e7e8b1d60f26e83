"""Room that the settings keep for further tasks: the real engine."""

from __future__ import annotations

import numpy as np
import pytest

from argosy.model.policy import SparePlaces
from argosy.model.resources import Resources
from argosy.model.runs import RunStatus
from tests.harness.simulation.world.world import START
from tests.scenarios.controlled import Controlled

ONE = ("us-east-1a",)
ONE_VCPU = Resources(1024, 1024)
CAPPED = "capped-261121-062733-k3f9"
LARGE = {"vcpus": 8, "memory": 2048, "gpus": 0}


def test_further_tasks_start_at_once_and_nothing_is_kept_after_the_last_run() -> None:
    cluster = Controlled(zones=ONE, work_s=900.0, linger_s=20.0, headroom=(SparePlaces(4, ONE_VCPU),))
    cluster.submit(1)
    sizes = set()
    for _ in range(30):
        cluster.tick()
        sizes.add(sum(cluster.fleet_targets().values()))
    assert max(sizes) == 2
    cluster.submit(4, run_id="later-261121-062733-k3f9")
    cluster.tick()
    cluster.tick()
    state = cluster.controllers[0].state
    assert state is not None
    assert len(state.attempts.placed()) == 5
    cluster.run_to_rest()
    assert not cluster.live_instances()


def test_an_instance_goes_when_a_limit_holds_tasks_back_that_do_not_fit_there() -> None:
    room = (SparePlaces(7, ONE_VCPU),)
    cluster = Controlled(
        ("c5.xlarge", "c5.2xlarge"), ONE, work_s=1800.0, linger_s=20.0, cool_down_s=0.0, max_instances=2, headroom=room
    )
    cluster.submit(1, placement={"constraints": ["attribute:ecs.instance-type == c5.xlarge"]})
    cluster.run_for(300)
    assert len(cluster.live_instances()) == 2
    cluster.submit(1, run_id="large-261121-062733-k3f9", resources=LARGE)
    cluster.run_for(600)
    assert sorted(each["InstanceType"] for each in cluster.live_instances()) == ["c5.2xlarge", "c5.xlarge"]
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED


def test_no_run_pays_for_it_out_of_its_cap() -> None:
    """Its two instances and one more exceed the cap, so none of its tasks would start, and all three would go again."""
    room = (SparePlaces(4, ONE_VCPU),)
    cluster = Controlled(zones=ONE, work_s=300.0, prices=lambda kind, zone, at: 0.1, headroom=room)
    cluster.submit(8, capacity={"maxHourlyCost": 0.25})
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert len(cluster.world.ec2.ledger.instances) == 2


def placed_of(cluster: Controlled, run_id: str) -> int:
    state = cluster.controllers[0].state
    assert state is not None
    return int(np.count_nonzero(state.attempts["run"][state.attempts.placed()] == state.runs[run_id].number))


@pytest.mark.parametrize("cap", [{"maxHourlyCost": 0.25}, {"budgetUsd": 0.05}], ids=["an hour", "in all"])
def test_what_is_kept_stays_beside_a_run_that_is_at_its_cap(cap: dict[str, float]) -> None:
    """It has a part of the large instance, and cannot pay for a small one. These went while its tasks were held back,
    and were bought again."""
    cluster = Controlled(
        ("c5.xlarge", "c5.2xlarge"),
        ONE,
        work_s=1200.0,
        linger_s=0.0,
        prices=lambda kind, zone, at: 0.1 if kind == "c5.xlarge" else 0.2,
        headroom=(SparePlaces(4, ONE_VCPU),),
    )
    cluster.submit(6)
    cluster.run_for(10)
    cluster.submit(12, run_id=CAPPED, capacity=cap)
    cluster.run_for(300)
    known = len(cluster.world.ec2.ledger.instances)
    cluster.run_for(600)
    assert len(cluster.world.ec2.ledger.instances) == known


def test_a_run_with_an_hourly_cap_buys_what_it_can_pay_for_and_does_not_wait_for_what_is_kept() -> None:
    """After two instances it can pay for a third one at the new price, but not for the idle one, which costs more."""
    cluster = Controlled(
        zones=ONE,
        work_s=3000.0,
        prices=lambda kind, zone, at: 0.1 if at < START + 600 else 0.04,
        headroom=(SparePlaces(4, ONE_VCPU),),
    )
    cluster.submit(4)
    cluster.submit(12, run_id=CAPPED, capacity={"maxHourlyCost": 0.28})
    cluster.run_for(500)
    assert (placed_of(cluster, CAPPED), len(cluster.live_instances())) == (8, 4)
    cluster.run_for(700)
    assert (placed_of(cluster, CAPPED), len(cluster.live_instances())) == (12, 5)
    assert len(cluster.world.ec2.ledger.instances) == 6, "what was kept before is kept"
