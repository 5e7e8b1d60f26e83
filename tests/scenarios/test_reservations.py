"""Capacity Reservations and Capacity Blocks of the settings: used first, within their count, and empty in time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from argosy.api.cluster.views import cluster_view
from argosy.aws.cell import Cell
from argosy.catalogue.lookup import load_catalogue, overheads_of
from argosy.cli.cluster import views
from argosy.cli.figures import money
from argosy.emulator.ec2.reservations import BLOCK, INTERRUPTIBLE, ON_DEMAND
from argosy.lifecycle.reservations import STOPS_S
from argosy.market.offers import interruption_rate_of, rate_source
from argosy.market.risk import UNKNOWN_RATE
from argosy.model.moment import Moment
from argosy.model.policy import VcpuQuota
from argosy.model.pools import Pool
from argosy.model.runs import RunStatus
from argosy.scheduler.due import next_due
from tests.builders import CELL, RUN_ID
from tests.fakes.refusing import LosesReplies
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled
from tests.scenarios.services import state_of, up

POOL = "c5.xlarge/us-east-1a"  # of 4 vCPUs
GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/reserved"


class Reserving(Controlled):
    """A cluster with one pool, whose settings name the Capacity Reservations in `named`."""

    def __init__(self, work_s: float = 60.0, **policy: Any) -> None:
        self.named: set[str] = set()
        super().__init__(types=("c5.xlarge",), zones=("us-east-1a",), work_s=work_s, **policy)

    def cells(self, ecs: Any = None) -> list[Cell]:
        return [replace(each, reservations=frozenset(self.named)) for each in super().cells(ecs)]

    def reserve(self, count: int, **how: Any) -> str:
        found = self.world.ec2.reserve(POOL, count, **how)
        self.named.add(found.reservation_id)
        self.controllers = [self.controller()]
        return found.reservation_id

    def bought(self) -> Counter[str]:
        """How many instances ever took a place of each reservation; "" = of none."""
        return Counter(each.reservation for each in self.world.ec2.ledger.instances.values())

    def pool(self, reservation: str) -> Pool:
        return state_of(self).pools[f"{CELL}/{POOL}/{reservation}"]


@pytest.mark.parametrize("purchase", ["spot", "on-demand", "spot-then-on-demand"])
@pytest.mark.parametrize("kind", [ON_DEMAND, BLOCK])
def test_a_reservation_is_used_before_anything_is_bought(purchase: str, kind: str) -> None:
    cluster = Reserving()
    reserved = cluster.reserve(2, kind=kind)
    cluster.submit(12, capacity={"purchase": purchase})
    cluster.run_to_rest()
    assert cluster.record(RUN_ID).status == RunStatus.SUCCEEDED
    assert cluster.bought() == {reserved: 2, "": 1}
    assert not cluster.live_instances()


def test_what_others_use_of_it_is_bought_instead() -> None:
    cluster = Reserving(work_s=600.0)
    reserved = cluster.reserve(3)
    cluster.world.ec2.ledger.reservations[reserved].taken = 2
    cluster.submit(8)
    cluster.run_for(300.0)
    assert cluster.bought() == {reserved: 1, "": 1}
    cluster.world.ec2.ledger.reservations[reserved].taken = 0
    cluster.run_to_rest()
    assert cluster.record(RUN_ID).status == RunStatus.SUCCEEDED


def test_a_task_that_would_outlast_a_block_is_placed_elsewhere() -> None:
    cluster = Reserving(work_s=1200.0)
    reserved = cluster.reserve(4, kind=BLOCK, lasts=(0.0, cluster.world.now + 3000.0))
    cluster.submit(4, array={"size": 4, "expectedSeconds": 1200})
    cluster.submit(4, run_id="short-270115-080000-abcd", array={"size": 4, "expectedSeconds": 60})
    cluster.world.workload = lambda task, instance: TaskBehaviour(60.0 if "short" in task["group"] else 1200.0)
    cluster.run_for(300.0)
    assert cluster.bought() == {reserved: 1, "": 1}
    cluster.run_to_rest()


@pytest.mark.parametrize("is_block", [True, False])
def test_what_runs_at_its_end_is_stopped_before_and_starts_elsewhere(is_block: bool) -> None:
    cluster = Reserving(work_s=900.0)
    left_s = 3300.0 if is_block else 1500.0  # EC2 ends the instances of a block half an hour earlier
    reserved = cluster.reserve(1, kind=BLOCK if is_block else ON_DEMAND, lasts=(0.0, cluster.world.now + left_s))
    cluster.submit(4, array={"size": 4, "expectedSeconds": 60})  # far from the truth
    cluster.world.workload = lambda task, instance: TaskBehaviour(2000.0)
    cluster.run_to_rest()
    record, ended = cluster.record(RUN_ID), cluster.world.ec2.ledger.instances
    assert record.status == RunStatus.SUCCEEDED
    assert cluster.bought() == {reserved: 1, "": 1}
    assert record.failures == ()  # they count as lost with their instance
    assert {attempt for _, attempt in cluster.starts()} == {"1", "2"}
    (first,) = [each for each in ended.values() if each.reservation]
    assert first.reason_code == "Client.UserInitiatedShutdown"
    stopped = [each["detail"].get("stoppedReason", "") for each in cluster.world.events]
    assert "argosy: its Capacity Reservation ends" in stopped


@pytest.mark.parametrize("how", ["cancelled", "left out of the settings"])
def test_instances_of_a_reservation_that_is_gone_are_emptied(how: str) -> None:
    cluster = Reserving(work_s=1500.0)
    reserved = cluster.reserve(1)
    cluster.submit(4)
    cluster.run_for(200.0)
    assert cluster.bought() == {reserved: 1}
    if how == "cancelled":
        cluster.world.ec2.ledger.reservations[reserved].is_cancelled = True
    else:
        cluster.named.clear()
        cluster.controllers = [cluster.controller()]
    cluster.run_to_rest()
    assert cluster.record(RUN_ID).status == RunStatus.SUCCEEDED
    assert cluster.bought() == {reserved: 1, "": 1}
    assert [each.reservation for each in state_of(cluster).pools.values()] == ["", *[reserved] * (how == "cancelled")]


def test_reservations_are_used_as_long_as_they_are_in_a_group_of_the_settings() -> None:
    cluster = Reserving(work_s=1500.0)
    ours, others = (cluster.world.ec2.reserve(POOL, 1) for _ in range(2))
    cluster.named.add(GROUP)
    ours.groups = ("arn:aws:resource-groups:us-east-1:123456789012:group/others", GROUP)
    cluster.controllers = [cluster.controller()]
    cluster.submit(8)
    cluster.run_for(200.0)
    assert cluster.bought() == {ours.reservation_id: 1, "": 1}
    ours.groups, others.groups = (), (GROUP,)
    cluster.run_to_rest()
    assert cluster.record(RUN_ID).status == RunStatus.SUCCEEDED
    assert cluster.bought() == {ours.reservation_id: 1, others.reservation_id: 1, "": 1}


def test_a_block_that_starts_later_is_used_from_then_on() -> None:
    cluster = Reserving(work_s=300.0)
    reserved = cluster.reserve(1, kind=BLOCK, lasts=(cluster.world.now + 600.0, cluster.world.now + 9e3))
    cluster.submit(4)
    cluster.run_for(300.0)
    assert cluster.bought() == {"": 1}
    assert "it is scheduled and starts at" in cluster.pool(reserved).unusable
    cluster.run_for(500.0)
    cluster.submit(4, run_id="later-270115-080000-abcd")
    cluster.run_to_rest()
    assert cluster.bought() == {"": 1, reserved: 1}


def test_a_reservation_without_a_fleet_of_its_type_says_what_to_do() -> None:
    cluster = Reserving()
    found = cluster.world.ec2.reserve("g4dn.xlarge/us-east-1a", 1)
    cluster.named.add(found.reservation_id)
    cluster.controllers = [cluster.controller()]
    cluster.submit(4)
    cluster.run_to_rest()
    pool = state_of(cluster).pools[f"{CELL}/g4dn.xlarge/us-east-1a/{found.reservation_id}"]
    assert "name the type in instanceTypes" in pool.unusable


@pytest.mark.parametrize(("purchase", "uses"), [("spot", True), ("spot-then-on-demand", True), ("on-demand", False)])
def test_what_may_be_taken_back_is_used_first_except_by_runs_that_want_on_demand(purchase: str, uses: bool) -> None:
    cluster = Reserving(work_s=600.0)
    lent = cluster.reserve(2, kind=INTERRUPTIBLE)
    cluster.submit(8, capacity={"purchase": purchase})
    cluster.run_for(300.0)
    assert cluster.bought() == ({lent: 2} if uses else {"": 2})
    cluster.run_to_rest()
    assert cluster.record(RUN_ID).status == RunStatus.SUCCEEDED


def test_tasks_on_an_instance_that_its_owner_takes_back_are_lost_and_start_elsewhere() -> None:
    cluster = Reserving(work_s=900.0)
    lent = cluster.reserve(2, kind=INTERRUPTIBLE)
    cluster.submit(8)
    cluster.run_for(300.0)
    assert cluster.bought() == {lent: 2}
    cluster.world.ec2.reclaim(cluster.world.ec2.ledger.reservations[lent], 1)
    cluster.run_for(60.0)
    (instance,) = [each for each in state_of(cluster).instances.values() if each.interrupted_at]
    stopped = [each["detail"].get("stoppedReason", "") for each in cluster.world.events]
    assert stopped.count("argosy: the instance is about to be interrupted")
    cluster.run_to_rest()
    record = cluster.record(RUN_ID)
    assert (record.status, record.failures) == (RunStatus.SUCCEEDED, ())
    assert cluster.bought() == {lent: 2, "": 1}
    assert {market.partition("|")[2] for market in record.costs} == {"interruptible", "spot"}
    assert (instance.reservation, state_of(cluster).interruptions) == (lent, 1)


def test_its_risk_is_its_own_and_not_that_of_spot_there() -> None:
    cluster = Reserving()
    lent = cluster.reserve(1, kind=INTERRUPTIBLE)
    cluster.run_for(30.0)
    pool, now = cluster.pool(lent), cluster.world.now
    assert interruption_rate_of(pool, pool.ordered_as, now, cluster.policy) == pytest.approx(UNKNOWN_RATE)
    assert rate_source(pool, now, cluster.policy) == "none"


def test_an_order_whose_reply_was_lost_takes_no_second_place() -> None:
    cluster = Reserving()
    reserved = cluster.reserve(2)
    cluster.ec2 = LosesReplies(cluster.ec2, left=2)
    cluster.controllers = [cluster.controller()]
    cluster.submit(4)
    cluster.run_to_rest()
    assert cluster.bought() == {reserved: 1}


def test_a_run_pays_for_disk_and_address_alone() -> None:
    cluster = Reserving(work_s=1800.0)
    cluster.reserve(1)
    cluster.submit(4)
    cluster.run_to_rest()
    record = cluster.record(RUN_ID)
    hours = sum(each.instance_seconds for each in record.costs.values()) / 3600
    assert hours > 0.5
    assert record.cost_usd == pytest.approx(hours * overheads_of(CELL, 60, has_address=True).usd_per_hour)
    assert {market.partition("|")[2] for market in record.costs} == {"reserved"}


def test_the_quota_of_on_demand_counts_all_of_a_reservation_and_none_of_a_block() -> None:
    quota = VcpuQuota(CELL, "on-demand", "standard", 12)
    cluster = Reserving(work_s=600.0, vcpu_quotas=(quota,))
    reserved = cluster.reserve(2)  # 8 of the 12 vCPUs
    block = cluster.reserve(1, kind=BLOCK)
    cluster.submit(40, capacity={"purchase": "on-demand"})
    cluster.run_for(300.0)
    assert cluster.bought() == {reserved: 2, block: 1, "": 1}


def test_a_quiet_controller_works_again_in_time_for_the_end() -> None:
    cluster = Reserving()
    ends_at = cluster.world.now + 5000.0
    cluster.reserve(1, lasts=(0.0, ends_at))
    up(cluster, 1)
    state = state_of(cluster)
    (instance,) = [each for each in state.instances.values() if each.alive]
    moment = Moment(state, load_catalogue(), cluster.world.now, cluster.policy)
    assert next_due(moment) <= instance.empty_by == ends_at - STOPS_S


def test_the_cluster_shows_what_each_has_what_is_idle_and_why_it_is_not_used() -> None:
    cluster = Reserving(work_s=600.0)
    reserved = cluster.reserve(3, lasts=(0.0, cluster.world.now + 9e3))
    block = cluster.reserve(1, kind=BLOCK, lasts=(cluster.world.now + 3e3, cluster.world.now + 9e3))
    cluster.submit(4)
    cluster.run_for(300.0)
    view = cluster_view(state_of(cluster), {}, cluster.world.now, cluster.policy)
    first, second = sorted(view["reservations"], key=lambda each: each["reservation"] != reserved)
    price = load_catalogue()["c5.xlarge"].on_demand_usd_per_hour
    assert (first["instances"], first["free"], second["reservation"]) == (3, 2, block)
    assert (first["usdPerHour"], first["idleUsdPerHour"]) == (pytest.approx(3 * price), pytest.approx(2 * price))
    assert (second["usdPerHour"], second["unusableBecause"] is None) == (None, False)
    assert [each["instanceType"] for each in view["fleets"]] == ["c5.xlarge"]
    (instance,) = view["instances"]
    assert (instance["purchase"], instance["reservation"]) == ("reserved", reserved)
    shown = [str(part) for part in views.cluster({**view, "cluster": "argosy"}, cluster.world.now, show_gone=False)]
    assert any(f"reservation {reserved}: 1 of 3 c5.xlarge in us-east-1a are in use" in each for each in shown)
    assert any(f"the rest costs {money(2 * price)} per hour" in each for each in shown)
    assert any("nothing is launched into it: it is scheduled" in each for each in shown)
