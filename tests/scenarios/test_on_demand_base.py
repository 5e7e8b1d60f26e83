"""A service with some tasks on on-demand instances, which AWS does not reclaim. The real engine."""

from __future__ import annotations

from collections import Counter
from typing import Any

from argosy.model.instances import Purchase
from argosy.model.policy import VcpuQuota
from argosy.model.services.environments import DeploymentStatus
from tests.builders import CELL
from tests.scenarios.controlled import Controlled
from tests.scenarios.services import ask, deploy, form, running, service, state_of, status, until

ONE = ("us-east-1a",)


def based(base: int, desired: int, command: str = "serve") -> dict[str, Any]:
    return form(desired, command, {"onDemandBase": base}, healthySeconds=5)


def where(cluster: Controlled) -> dict[Purchase, int]:
    """RUNNING tasks, by how their instances were bought."""
    state = state_of(cluster)
    rows = state.attempts.live().tolist()
    found = Counter(instance.purchase for row in rows if (instance := state.instance_of(row)) is not None)
    return dict(found)


def up(desired: int, base: int, **policy: Any) -> Controlled:
    cluster = service(zones=ONE, linger_s=60.0, cool_down_s=0.0, **policy)
    deploy(cluster, 1, based(base, desired))
    return cluster


def complete(cluster: Controlled) -> None:
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)


def test_as_many_tasks_as_the_base_says_run_on_demand_and_the_others_on_spot() -> None:
    cluster = up(5, 2)
    complete(cluster)
    assert where(cluster) == {Purchase.ON_DEMAND: 2, Purchase.SPOT: 3}


def test_a_base_that_is_larger_than_what_is_desired_takes_all() -> None:
    cluster = up(2, 7)
    complete(cluster)
    assert where(cluster) == {Purchase.ON_DEMAND: 2}


def test_scaling_down_stops_spot_first_and_nothing_keeps_an_instance_of_the_base() -> None:
    cluster = up(5, 2)
    complete(cluster)
    ask(cluster, "scale", desired=2)
    until(cluster, lambda: where(cluster) == {Purchase.ON_DEMAND: 2})
    until(cluster, lambda: len(cluster.live_instances()) == 1)
    ask(cluster, "scale", desired=4)
    until(cluster, lambda: where(cluster) == {Purchase.ON_DEMAND: 2, Purchase.SPOT: 2})
    ask(cluster, "scale", desired=0)
    until(cluster, lambda: not cluster.live_instances())


def test_while_on_demand_is_short_the_others_serve_and_the_base_follows() -> None:
    cluster = up(3, 1)
    cluster.world.ec2.set_shortage("c5.xlarge/us-east-1a/on-demand", 0)
    until(cluster, lambda: sum(running(cluster).values()) == 2)
    cluster.run_for(300)
    assert where(cluster) == {Purchase.SPOT: 2}
    assert status(cluster) is DeploymentStatus.WAITING
    cluster.world.ec2.set_shortage("c5.xlarge/us-east-1a/on-demand", None)
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED, 3600.0)
    assert where(cluster) == {Purchase.ON_DEMAND: 1, Purchase.SPOT: 2}


def test_where_on_demand_can_never_be_bought_all_run_on_spot() -> None:
    cluster = up(3, 2, vcpu_quotas=(VcpuQuota(CELL, "on-demand", "standard", 0),))
    complete(cluster)
    assert where(cluster) == {Purchase.SPOT: 3}


def test_a_lost_task_of_the_base_comes_back_on_demand_and_an_update_keeps_it() -> None:
    cluster = up(4, 1)
    complete(cluster)
    state = state_of(cluster)
    (name,) = [each.id for each in state.instances.values() if each.purchase is Purchase.ON_DEMAND]
    cluster.world.ec2.lose(name)
    until(cluster, lambda: where(cluster) == {Purchase.ON_DEMAND: 1, Purchase.SPOT: 3} and name not in live(cluster))
    deploy(cluster, 2, based(1, 4, "again"))
    until(cluster, lambda: len(state_of(cluster).environments["web"].deployments) == 2)
    complete(cluster)
    assert where(cluster) == {Purchase.ON_DEMAND: 1, Purchase.SPOT: 3}


def test_a_base_that_an_update_brings_along_moves_one_task_after_the_other() -> None:
    cluster = up(3, 0)
    complete(cluster)
    assert where(cluster) == {Purchase.SPOT: 3}
    deploy(cluster, 2, based(2, 3, "again"))
    until(cluster, lambda: len(state_of(cluster).environments["web"].deployments) == 2)
    complete(cluster)
    assert where(cluster) == {Purchase.ON_DEMAND: 2, Purchase.SPOT: 1}


def test_the_commit_that_completes_a_deployment_stops_none_of_the_tasks_that_it_counts() -> None:
    """Both tasks are on spot, stopped at once for the base, and were counted in the same tick."""
    cluster = service(zones=ONE)
    cluster.world.ec2.set_shortage("c5.xlarge/us-east-1a/on-demand", 0)
    deploy(cluster, 1, form(3, "serve", {"onDemandBase": 1}, minHealthyPercent=0, maxOverPercent=0))
    until(cluster, lambda: where(cluster) == {Purchase.SPOT: 2} and sum(running(cluster).values()) == 2)
    ask(cluster, "stop", reason="so it is wanted")
    ask(cluster, "scale", desired=1)
    cluster.run_for(60)
    ask(cluster, "thaw")
    until(cluster, lambda: len(state_of(cluster).environments["web"].deployments) == 2)
    assert status(cluster) is not DeploymentStatus.COMPLETED
    cluster.world.ec2.set_shortage("c5.xlarge/us-east-1a/on-demand", None)
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED, 3600.0)
    assert where(cluster) == {Purchase.ON_DEMAND: 1}


def live(cluster: Controlled) -> set[str]:
    return {each["InstanceId"] for each in cluster.live_instances()}
