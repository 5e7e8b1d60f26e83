"""A minimum size that a user requests: bought without work, replaced, and released again. The real engine."""

from __future__ import annotations

from typing import Any

from argosy.model.inbox import ScaleRequest
from argosy.model.policy import VcpuQuota
from argosy.model.pools import NO_FLOOR
from argosy.model.state import State
from argosy.model.stored import documents
from tests.builders import CELL
from tests.scenarios.controlled import Controlled

ONE = ("us-east-1a",)


def ask(cluster: Controlled, instances: int, *types: str, until: float = 0.0) -> None:
    request = ScaleRequest(cluster.world.now, instances, types, until)
    cluster.put(request, f"cluster#scale#{cluster.world.now}")


def live(cluster: Controlled) -> int:
    return len(cluster.live_instances())


def state_of(cluster: Controlled) -> State:
    state = cluster.controllers[0].state
    assert state is not None
    return state


def followed_within(cluster: Controlled, wanted: int, limit_s: float) -> bool:
    began = cluster.world.now
    while live(cluster) != wanted and cluster.world.now - began < limit_s:
        cluster.step()
    return live(cluster) == wanted


def test_instances_are_bought_and_kept_without_any_run_and_go_when_none_are_wanted() -> None:
    cluster = Controlled(zones=ONE, linger_s=60.0, cool_down_s=60.0)
    for wanted in (1, 2, 10):
        ask(cluster, wanted)
        assert followed_within(cluster, wanted, 120.0)
    cluster.run_for(900)
    assert live(cluster) == 10
    assert max(cluster.fleet_targets().values()) == 10
    ask(cluster, 4)
    assert followed_within(cluster, 4, 120.0)
    cluster.run_for(300)
    assert live(cluster) == 4
    ask(cluster, 0)
    assert followed_within(cluster, 0, 120.0)
    cluster.run_to_rest()
    assert set(cluster.fleet_targets().values()) == {0}


def test_what_is_wanted_outlives_the_controller_and_ends_by_itself() -> None:
    cluster = Controlled(zones=ONE, linger_s=30.0)
    ask(cluster, 2, until=cluster.world.now + 600)
    cluster.run_for(60)
    cluster.controllers = [cluster.controller()]
    cluster.run_for(300)
    assert (live(cluster), state_of(cluster).floor.instances) == (2, 2)
    cluster.run_for(600)
    assert (live(cluster), state_of(cluster).floor) == (0, NO_FLOOR)
    cluster.run_to_rest()


def test_one_that_spot_takes_is_replaced() -> None:
    cluster = Controlled(linger_s=30.0)
    ask(cluster, 3)
    assert followed_within(cluster, 3, 120.0)
    cluster.run_for(60)
    first = cluster.live_instances()[0]["InstanceId"]
    cluster.world.interrupt(first)
    cluster.run_for(300)
    assert first not in {each["InstanceId"] for each in cluster.live_instances()}
    assert live(cluster) == 3


def test_only_the_types_that_are_named_count_and_are_bought() -> None:
    cluster = Controlled(types=("c5.xlarge", "r5.2xlarge"), zones=ONE, work_s=3000.0)
    cluster.submit(4)
    ask(cluster, 2, "r5.2xlarge")
    cluster.run_for(200)
    assert cluster.fleet_targets() == {"c5.xlarge/us-east-1a": 1, "r5.2xlarge/us-east-1a": 2}


def test_running_work_is_never_killed_and_its_instances_count() -> None:
    cluster = Controlled(zones=ONE, work_s=900.0, linger_s=30.0, cool_down_s=0.0)
    cluster.submit(8)
    cluster.run_for(120)
    assert live(cluster) == 2
    ask(cluster, 2)
    cluster.run_for(60)
    assert live(cluster) == 2
    ask(cluster, 0)
    cluster.run_for(300)
    assert live(cluster) == 2
    cluster.run_to_rest()
    assert max(cluster.starts().values()) == 1


def test_a_limit_of_the_deployment_holds_and_the_reason_is_shown() -> None:
    quotas = (VcpuQuota(CELL, "spot", "standard", 8), VcpuQuota(CELL, "on-demand", "standard", 0))
    cluster = Controlled(zones=ONE, vcpu_quotas=quotas)
    ask(cluster, 5)
    cluster.run_for(120)
    assert live(cluster) == 2
    said = state_of(cluster).floor.waiting
    assert "vCPU quota" in said
    ask(cluster, 2)
    cluster.run_for(30)
    assert state_of(cluster).floor.waiting == ""


def test_the_reason_is_stored_and_the_controller_does_not_rest() -> None:
    cluster = Controlled(zones=ONE, max_usd_per_hour=0.001)
    ask(cluster, 1)
    assert not cluster.tick()  # nothing can be bought, and yet it does not go to rest
    assert not cluster.tick()
    root = documents.decode(cluster.store.read((documents.STATE, documents.ROOT)) or b"")
    assert "price caps" in root["floor"]["waiting"]


def test_growth_is_never_shown_as_a_reason() -> None:
    cluster = Controlled(zones=ONE, growth_per_tick=2)
    ask(cluster, 5)
    told: set[str] = set()
    while live(cluster) < 5:
        cluster.step()
        told.add(state_of(cluster).floor.waiting)
    assert told <= {"", "the fleets of this deployment are not listed yet"}


def test_a_fleet_that_does_not_deliver_gives_up_and_another_one_is_asked() -> None:
    def price(kind: str, zone: str, at: float) -> float:
        return 0.02 if zone.endswith("a") else 0.05

    cluster = Controlled(zones=("us-east-1a", "us-east-1b"), prices=price)
    cluster.world.ec2.set_shortage("c5.xlarge/us-east-1a", 0)
    ask(cluster, 2)
    cluster.run_for(600)
    assert cluster.fleet_targets()["c5.xlarge/us-east-1b"] == 2
    assert live(cluster) == 2


def test_idle_time_of_kept_instances_is_charged_to_no_run() -> None:
    cluster = Controlled(zones=ONE, linger_s=30.0)
    cluster.submit(4)
    ask(cluster, 3)
    cluster.run_for(3000)
    state: Any = state_of(cluster)
    alive = sum(each.hours(cluster.world.now) * each.price_usd_per_hour for each in state.instances.values())
    record = cluster.record()
    assert record.status == "SUCCEEDED"
    assert record.cost_usd < 0.2 * alive


def test_the_setting_and_the_wish_hold_at_once_and_the_larger_one_counts() -> None:
    cluster = Controlled(zones=ONE, min_instances=2, work_s=2000.0)
    cluster.submit(4)
    ask(cluster, 3)
    cluster.run_for(120)
    assert live(cluster) == 3
