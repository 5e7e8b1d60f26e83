"""Do `least-interrupted` and `finish-together` change where a task goes in a living cluster?

Two instances of one size are up, c6i.xlarge registered first; with equal keys the first one wins.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.controlled import Controlled

FIRST, SECOND, THIRD = "first-261121-062733-k3f9", "second-261121-062734-aaaa", "third-261121-062735-bbbb"
EARLIER, LATER = "c6i.xlarge", "c5.xlarge"  # interruption bands 15-20% and <5%


def only_on(instance_type: str) -> dict[str, Any]:
    return {"constraints": [f"attribute:ecs.instance-type == {instance_type}"]}


def cluster_of_two(work_s: float, first_s: float, second_s: float) -> Controlled:
    """Each instance was bought for a different task, which expects to take `first_s` or `second_s`."""
    cluster = Controlled(types=(EARLIER, LATER), zones=("us-east-1a",), work_s=work_s, linger_s=3600.0)
    cluster.submit(1, FIRST, array={"size": 1, "expectedSeconds": first_s}, placement=only_on(EARLIER))
    cluster.run_for(300)
    cluster.submit(1, SECOND, array={"size": 1, "expectedSeconds": second_s}, placement=only_on(LATER))
    cluster.run_for(300)
    assert len(cluster.live_instances()) == 2
    return cluster


def type_it_went_to(cluster: Controlled, run_id: str) -> str:
    name = cluster.world.cluster
    arns = cluster.ecs.list_tasks(cluster=name)["taskArns"]
    tasks = cluster.ecs.describe_tasks(cluster=name, tasks=arns)["tasks"]
    [arn] = [task["containerInstanceArn"] for task in tasks if task["group"] == f"run:{run_id}"]
    [seen] = cluster.ecs.describe_container_instances(cluster=name, containerInstances=[arn])["containerInstances"]
    return next(str(each["value"]) for each in seen["attributes"] if each["name"] == "ecs.instance-type")


@pytest.mark.parametrize(("strategy", "goes_to"), [(["best-fit"], EARLIER), (["least-interrupted"], LATER)])
def test_least_interrupted_takes_the_type_that_is_interrupted_less_often(strategy: list[str], goes_to: str) -> None:
    cluster = cluster_of_two(work_s=100.0, first_s=100.0, second_s=100.0)
    cluster.submit(1, THIRD, placement={"strategy": strategy})
    cluster.run_for(30)
    assert type_it_went_to(cluster, THIRD) == goes_to


@pytest.mark.parametrize(("strategy", "goes_to"), [(["best-fit"], EARLIER), (["finish-together"], LATER)])
def test_finish_together_takes_the_instance_whose_work_ends_with_the_task(strategy: list[str], goes_to: str) -> None:
    cluster = cluster_of_two(work_s=7200.0, first_s=7200.0, second_s=1200.0)
    cluster.submit(1, THIRD, array={"size": 1, "expectedSeconds": 600.0}, placement={"strategy": strategy})
    cluster.run_for(30)
    assert type_it_went_to(cluster, THIRD) == goes_to
    assert len(cluster.live_instances()) == 2
