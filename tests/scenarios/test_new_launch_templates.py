"""A deployment with a new AMI makes a new version of the launch templates, in the middle of work or at rest."""

from __future__ import annotations

import pytest

from argosy.model.tasks import TaskStatus
from tests.scenarios.controlled import Controlled

ZONE = "us-east-1a"


def busy() -> Controlled:
    """Four instances with 16 tasks, five allowed."""
    cluster = Controlled(zones=(ZONE,), max_instances=5, linger_s=60.0, work_s=900.0)
    cluster.submit(40)
    while not cluster.live_instances() or cluster.record().counts[TaskStatus.RUNNING] < 16:
        cluster.step()
    return cluster


def deploy_new_ami(cluster: Controlled) -> None:
    cluster.world.ec2.add_launch_template("argosy", image_id="ami-2", tags={"argosy:stage": "main"})


def images(cluster: Controlled) -> dict[str, str]:
    return {each["InstanceId"]: each["ImageId"] for each in cluster.live_instances()}


def test_running_tasks_and_their_instances_survive_a_new_ami() -> None:
    cluster = busy()
    before = images(cluster)
    deploy_new_ami(cluster)
    cluster.run_for(300.0)  # two sweeps
    assert images(cluster).items() >= before.items()
    assert cluster.record().counts[TaskStatus.RUNNING] >= 16
    cluster.run_to_rest()
    assert cluster.record().counts[TaskStatus.SUCCEEDED] == 40
    assert set(cluster.starts().values()) == {1}
    assert {attempt for _, attempt in cluster.starts()} == {"1"}


def test_what_a_fleet_replaces_by_itself_starts_from_the_new_ami() -> None:
    cluster = busy()
    deploy_new_ami(cluster)
    cluster.run_for(300.0)
    before = images(cluster)
    assert set(before.values()) == {"ami-1"}
    cluster.world.ec2.lose(next(iter(before)))
    cluster.run_for(30.0)
    assert [image for name, image in images(cluster).items() if name not in before] == ["ami-2"]


@pytest.mark.parametrize("fresh", [False, True], ids=["a sweep later", "a fresh controller"])
def test_the_first_instance_after_a_rest_starts_from_the_new_ami(fresh: bool) -> None:
    cluster = Controlled(zones=(ZONE,), linger_s=30.0)
    cluster.submit(2)
    cluster.run_to_rest()
    deploy_new_ami(cluster)
    if fresh:
        cluster.controllers = [cluster.controller()]
    else:
        cluster.run_for(cluster.policy.sweep_s + 10)
    cluster.submit(2, "next-261121-062801-aaaa")
    while not images(cluster):
        cluster.step()
    assert set(images(cluster).values()) == {"ami-2"}
