"""Purchases and releases, which must not work against each other. The real engine in a simulated AWS."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from argosy.model.policy import VcpuQuota
from argosy.model.runs import RunStatus
from tests.builders import CELL
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled

CPU = {"vcpus": 1, "memory": 1024}
WIDE = {"vcpus": 3, "memory": 2048}
DEEP = {"vcpus": 0.5, "memory": 13_000}
GPU = {"vcpus": 2, "memory": 4096, "gpus": 1}


def submit(cluster: Controlled, name: str, tasks: int, resources: dict[str, Any], **overrides: Any) -> str:
    return cluster.submit(tasks, run_id=f"{name}-261121-062733-aaaa", name=name, resources=resources, **overrides)


def per_zone(prices: dict[str, float]) -> Any:
    return lambda instance_type, zone, *when: prices.get(zone[-1], 1.0)


def rises_then_falls(seen: list[int]) -> bool:
    top = seen.index(max(seen))
    return seen[: top + 1] == sorted(seen[: top + 1]) and seen[top:] == sorted(seen[top:], reverse=True)


def test_a_mixed_backlog_on_an_empty_cluster_grows_the_right_fleets_once_and_then_lets_them_go() -> None:
    types = ("c5.xlarge", "c5.4xlarge", "m5.2xlarge", "r5.2xlarge", "g4dn.xlarge")
    cluster = Controlled(types=types, work_s=50.0, linger_s=30.0)
    submit(cluster, "wide", 30, WIDE)
    submit(cluster, "deep", 30, DEEP)
    submit(cluster, "gpus", 6, GPU)
    seen: dict[str, list[int]] = {}
    for _ in range(25):
        cluster.tick()
        for pool, target in cluster.fleet_targets().items():
            seen.setdefault(pool, []).append(target)
    assert all(rises_then_falls(targets) for targets in seen.values()), seen
    grown = {pool.split("/")[0]: max(targets) for pool, targets in seen.items() if any(targets)}
    assert sum(max(targets) for pool, targets in seen.items() if pool.startswith("g4dn")) == 6
    assert "c5.xlarge" not in grown  # half the price of a 4xlarge's quarter, but the others share better
    cluster.run_to_rest()
    assert set(cluster.fleet_targets().values()) == {0}


def test_a_shortage_in_the_cheapest_pool_moves_to_the_next_within_two_ticks() -> None:
    cluster = Controlled(zones=("us-east-1a", "us-east-1b"), prices=per_zone({"a": 0.05, "b": 0.09}))
    cluster.world.ec2.set_shortage("c5.xlarge/us-east-1a", 0)
    cluster.submit(8)
    targets = []
    for _ in range(12):
        cluster.tick()
        targets.append(
            (cluster.fleet_targets()["c5.xlarge/us-east-1a"], cluster.fleet_targets()["c5.xlarge/us-east-1b"])
        )
    first = targets.index((2, 0))
    assert (0, 2) in targets[first : first + 3]  # ordered, told so, ordered elsewhere


@pytest.mark.parametrize("linger_s", [60.0, 600.0])
def test_scale_in_returns_to_zero_within_linger_and_five_minutes(linger_s: float) -> None:
    cluster = Controlled(linger_s=linger_s)
    cluster.submit(24)
    cluster.tick()
    while cluster.record().status != RunStatus.SUCCEEDED:
        cluster.step()
    done_at = cluster.world.now
    while cluster.live_instances():
        cluster.step()
    assert cluster.world.now - done_at <= linger_s + 300.0
    cluster.run_to_rest()
    assert set(cluster.fleet_targets().values()) == {0}


def test_a_run_with_a_zone_constraint_buys_in_that_zone_only_whatever_it_costs() -> None:
    cluster = Controlled(prices=per_zone({"a": 0.02, "b": 0.5, "c": 0.02}))
    cluster.submit(8, placement={"constraints": ["attribute:ecs.availability-zone == us-east-1b"]})
    bought: Counter[str] = Counter()
    while not cluster.step():
        bought.update(pool for pool, target in cluster.fleet_targets().items() if target)
    assert set(bought) == {"c5.xlarge/us-east-1b"}


def test_a_vcpu_quota_of_the_settings_is_never_exceeded_and_the_run_says_so() -> None:
    quotas = (VcpuQuota(CELL, "spot", "standard", 12),)
    cluster = Controlled(vcpu_quotas=quotas)
    cluster.submit(32)
    vcpus, said = [], set()
    while not cluster.step():
        vcpus.append(4 * sum(cluster.fleet_targets().values()))
        said.add(cluster.record().waiting)
    assert max(vcpus) == 12
    assert "held back by the vCPU quota of spot Standard in us-east-1 (12)" in said
    assert cluster.record().status == RunStatus.SUCCEEDED


def test_a_quota_that_only_the_account_knows_turns_work_to_types_of_another_quota() -> None:
    """Fleets say that the quota of c5 is full: no other pool that draws on it is tried, a GPU type is."""
    cluster = Controlled(types=("c5.xlarge", "m5.xlarge", "g4dn.xlarge"))
    cluster.world.ec2.set_spot_quota("Standard", 0)
    cluster.submit(8)
    cluster.run_for(40)
    bought = {pool.split("/")[0] for pool, target in cluster.fleet_targets().items() if target}
    assert bought == {"g4dn.xlarge"}
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED


def test_the_configured_number_of_idle_instances_is_kept_and_the_most_expensive_go_first() -> None:
    cluster = Controlled(
        types=("c5.xlarge",), min_idle=2, linger_s=20.0, prices=per_zone({"a": 0.06, "b": 0.061, "c": 0.062})
    )
    cluster.submit(24)
    cluster.run_for(900)
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert [each["Placement"]["AvailabilityZone"] for each in cluster.live_instances()] == ["us-east-1a"] * 2
    assert cluster.fleet_targets()["c5.xlarge/us-east-1a"] == 2


def test_an_instance_that_its_owner_keeps_stays_until_the_mark_is_removed() -> None:
    cluster = Controlled(zones=("us-east-1a",), linger_s=20.0)
    cluster.submit(12)
    cluster.run_for(120)
    kept = cluster.ecs.list_container_instances(cluster=cluster.world.cluster)["containerInstanceArns"][0]
    keep = {"name": "argosy.keep", "value": "true", "targetType": "container-instance", "targetId": kept}
    cluster.ecs.put_attributes(cluster=cluster.world.cluster, attributes=[keep])
    cluster.run_for(900)
    assert len(cluster.live_instances()) == 1
    cluster.ecs.delete_attributes(
        cluster=cluster.world.cluster,
        attributes=[{"name": "argosy.keep", "targetType": "container-instance", "targetId": kept}],
    )
    cluster.run_to_rest()
    assert not cluster.live_instances()


def test_nothing_is_let_go_while_more_of_its_type_was_ordered_a_moment_ago() -> None:
    """An instance idles past its linger while another type of work makes its fleets grow."""

    def lives_after(cool_down_s: float) -> int:
        cluster = Controlled(zones=("us-east-1a", "us-east-1b"), linger_s=40.0, work_s=40.0, cool_down_s=cool_down_s)
        cluster.submit(4, placement={"constraints": ["attribute:ecs.availability-zone == us-east-1a"]})
        cluster.run_for(130)  # its only instance idles
        later = {"constraints": ["attribute:ecs.availability-zone == us-east-1b"]}
        submit(cluster, "later", 4, CPU, placement=later)
        cluster.run_for(40)
        return sum(each["Placement"]["AvailabilityZone"] == "us-east-1a" for each in cluster.live_instances())

    assert lives_after(0.0) == 0
    assert lives_after(300.0) == 1


def test_a_cluster_is_brought_to_its_least_size_while_runs_are_open_and_to_zero_afterwards() -> None:
    cluster = Controlled(min_instances=3, linger_s=20.0, work_s=300.0)
    cluster.submit(1)
    sizes = []
    for _ in range(25):
        cluster.tick()
        sizes.append(sum(cluster.fleet_targets().values()))
    assert sizes == sorted(sizes)
    assert sizes[-1] == 3
    cluster.run_to_rest()
    assert not cluster.live_instances()


def test_work_is_steered_to_busy_instances_so_that_the_tail_empties_sooner() -> None:
    """Small jobs keep trickling in next to a long one: best fit alone would revive the small idle instances forever."""

    def instance_seconds(strategy: dict[str, Any]) -> float:
        cluster = Controlled(types=("c5.4xlarge", "c5.large"), zones=("us-east-1a",), work_s=1200.0, linger_s=90.0)
        only = "attribute:ecs.instance-type == {}"
        submit(cluster, "long", 1, {"vcpus": 4, "memory": 4096}, placement={"constraints": [only.format("c5.4xlarge")]})
        submit(cluster, "wide", 6, {"vcpus": 2, "memory": 2048}, placement={"constraints": [only.format("c5.large")]})
        cluster.world.workload = _by_run(cluster, {"long": 1200.0}, 30.0)
        cluster.run_for(120)
        for number in range(12):
            submit(cluster, f"trickle{number}", 1, CPU, **strategy)
            cluster.run_for(60)
        return sum(_lived(cluster, "c5.large"))

    assert instance_seconds({}) < 0.7 * instance_seconds({"placement": {"strategy": ["best-fit"]}})


def _by_run(cluster: Controlled, long: dict[str, float], otherwise: float) -> Any:
    def course(task: Any, instance: Any) -> TaskBehaviour:
        values = {e["name"]: e["value"] for e in task["overrides"]["containerOverrides"][0]["environment"]}
        return TaskBehaviour(duration_s=long.get(values["ARGOSY_RUN_ID"].split("-")[0], otherwise))

    return course


def _lived(cluster: Controlled, instance_type: str) -> list[float]:
    now = cluster.world.now
    return [
        (instance.ended_at or now) - instance.launched_at
        for instance in cluster.world.ec2.ledger.instances.values()
        if instance.instance_type == instance_type
    ]


def test_what_strangers_take_of_our_instances_is_seen_and_bought_around() -> None:
    """A user starts a large foreign task on our only instance: ours find room elsewhere, without a storm of
    refusals."""
    cluster = Controlled(zones=("us-east-1a",), work_s=60.0, linger_s=600.0)
    cluster.submit(4)
    cluster.run_for(90)
    strange = cluster.ecs.register_task_definition(
        family="strange", containerDefinitions=[{"name": "x", "image": "x", "cpu": 3072, "memory": 5000}]
    )["taskDefinition"]["taskDefinitionArn"]
    cluster.run_for(90)  # ours have ended, the instance idles
    cluster.world.workload = _by_run_or_stranger(cluster)
    cluster.ecs.run_task(cluster=cluster.world.cluster, taskDefinition=strange, count=1, launchType="EC2")
    second = submit(cluster, "second", 8, CPU)
    cluster.run_for(600)
    assert cluster.record(second).status == RunStatus.SUCCEEDED
    refusals = [reason for reason in cluster.record(second).reasons if reason.startswith("RESOURCE")]
    assert len(refusals) <= 1
    assert len({each["InstanceId"] for each in cluster.live_instances()}) >= 2


def _by_run_or_stranger(cluster: Controlled) -> Any:
    ours = _by_run(cluster, {}, 60.0)

    def course(task: Any, instance: Any) -> TaskBehaviour:
        mine = task["overrides"].get("containerOverrides")
        return ours(task, instance) if mine and mine[0].get("environment") else TaskBehaviour(duration_s=36_000.0)

    return course
