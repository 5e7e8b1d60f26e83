"""On-demand instances come by orders of their own, which EC2 answers at once and never repeats. The real engine."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.emulator.readings import TOTAL_ONLY
from argosy.model.instances import Purchase
from argosy.model.pools import Pool
from argosy.model.runs import RunStatus
from tests.builders import CELL, RUN_ID
from tests.fakes.refusing import DENIED, LosesReplies, refusing
from tests.scenarios.controlled import Controlled
from tests.scenarios.services import state_of

TYPE, ZONE = "c5.xlarge", "us-east-1a"  # of 4 vCPUs
ON_DEMAND = {"purchase": "on-demand"}


def one_pool(work_s: float = 60.0, **policy: Any) -> Controlled:
    return Controlled(types=(TYPE,), zones=(ZONE,), work_s=work_s, **policy)


def bought(cluster: Controlled) -> list[str]:
    """How each instance that ever was has been bought."""
    return [each.purchase for each in cluster.world.ec2.ledger.instances.values()]


def the_pool(cluster: Controlled) -> Pool:
    return state_of(cluster).pools[f"{CELL}/{TYPE}/{ZONE}"]


def targets(cluster: Controlled) -> set[int]:
    return set(cluster.fleet_targets().values())


@pytest.mark.parametrize("readings", [set(), {TOTAL_ONLY}], ids=["usual", TOTAL_ONLY])
def test_they_are_bought_without_any_fleets_target_and_given_back(readings: set[str]) -> None:
    cluster = one_pool()
    cluster.world.readings |= readings
    cluster.submit(8, capacity=ON_DEMAND)
    cluster.run_for(150.0)
    assert (bought(cluster), targets(cluster)) == (["on-demand"] * 2, {0})
    cluster.run_to_rest()
    assert cluster.record(RUN_ID).status == RunStatus.SUCCEEDED
    assert not cluster.live_instances()


def test_one_that_works_for_long_is_seen_in_every_sweep() -> None:
    cluster = one_pool(work_s=1500.0)
    cluster.submit(1, capacity=ON_DEMAND)
    cluster.run_to_rest()
    assert bought(cluster) == ["on-demand"]
    assert cluster.starts().total() == 1


def test_an_order_whose_reply_was_lost_is_sent_again_under_its_token_and_buys_nothing_more() -> None:
    cluster = one_pool()
    cluster.ec2 = LosesReplies(cluster.ec2, left=3)
    cluster.controllers = [cluster.controller()]
    cluster.submit(8, capacity=ON_DEMAND)
    cluster.run_to_rest()
    assert bought(cluster) == ["on-demand"] * 2


def test_an_order_whose_reply_was_lost_before_a_new_template_version_is_sent_again_once() -> None:
    cluster = one_pool(work_s=600.0)
    cluster.ec2 = ec2 = LosesReplies(cluster.ec2, left=1)
    cluster.controllers = [cluster.controller()]
    cluster.submit(8, capacity=ON_DEMAND)
    while not bought(cluster):
        cluster.tick()
    cluster.world.ec2.add_launch_template("argosy", image_id="ami-2", tags={"argosy:stage": "main"})
    cluster.controllers = [cluster.controller()]  # it reads the newest version first
    cluster.run_to_rest()
    assert cluster.record(RUN_ID).status == RunStatus.SUCCEEDED
    assert (bought(cluster), ec2.calls) == (["on-demand"] * 2, 2)


def test_a_controller_that_dies_after_an_order_sends_the_same_one_again() -> None:
    cluster = one_pool()
    cluster.ec2 = LosesReplies(cluster.ec2, left=1)
    cluster.controllers = [cluster.controller()]
    cluster.submit(8, capacity=ON_DEMAND)
    while not bought(cluster):
        cluster.tick()
    cluster.controllers = [cluster.controller()]
    cluster.run_to_rest()
    assert bought(cluster) == ["on-demand"] * 2


def test_ec2_replaces_none_so_the_controller_orders_again() -> None:
    cluster = one_pool(work_s=300.0)
    cluster.submit(4, capacity=ON_DEMAND)
    cluster.run_for(120.0)
    (lost,) = cluster.world.ec2.ledger.instances
    cluster.world.ec2.lose(lost)
    cluster.run_to_rest()
    assert cluster.record(RUN_ID).status == RunStatus.SUCCEEDED
    assert bought(cluster) == ["on-demand"] * 2


def test_what_a_zone_cannot_deliver_is_short_on_demand_alone() -> None:
    cluster = one_pool(work_s=600.0)
    cluster.world.ec2.set_shortage(f"{TYPE}/{ZONE}/on-demand", 1)
    cluster.submit(8, capacity=ON_DEMAND)
    cluster.run_for(60.0)
    pool, now = the_pool(cluster), cluster.world.now
    assert (bought(cluster), pool.on_demand_target, pool.on_demand_count) == (["on-demand"], 1, 0)
    assert (pool.on_demand_short_until > now, pool.short_until > now) == (True, False)
    assert "InsufficientInstanceCapacity" in pool.short_reason


def test_a_refusal_is_learned_and_keeps_spot_out_of_it() -> None:
    cluster = one_pool()
    ec2 = refusing(cluster, "ec2")
    ec2.answers["create_fleet"] = DENIED
    cluster.submit(4, capacity=ON_DEMAND)
    cluster.run_for(240.0)
    assert ec2.refused == 1
    assert DENIED[0] in cluster.explained()
    cluster.submit(4, run_id="another-270115-080000-abcd")
    cluster.run_for(300.0)
    assert set(bought(cluster)) == {"spot"}
    ec2.answers.clear()
    cluster.run_to_rest()
    assert cluster.record(RUN_ID).status == RunStatus.SUCCEEDED


def test_an_on_demand_target_that_an_earlier_version_gave_to_a_fleet_is_brought_to_an_end() -> None:
    cluster = one_pool()
    (fleet,) = cluster.world.ec2.ledger.fleets
    cluster.world.ec2.modify_fleet(
        FleetId=fleet,
        TargetCapacitySpecification={"TotalTargetCapacity": 2, "OnDemandTargetCapacity": 2, "SpotTargetCapacity": 0},
    )
    cluster.submit(8, capacity=ON_DEMAND)
    cluster.run_for(90.0)
    assert targets(cluster) == {0}
    cluster.run_to_rest()
    assert cluster.record(RUN_ID).status == RunStatus.SUCCEEDED
    assert Purchase.SPOT not in bought(cluster)
    assert not cluster.live_instances()
