"""An instance of the wrong type is emptied for a queue that may take room: of tasks that end, and of a service's."""

from __future__ import annotations

from typing import Any

from argosy.model.policy import VcpuQuota
from argosy.model.runs import RunStatus
from argosy.model.services.environments import DeploymentStatus
from tests.builders import CELL, RUN_ID
from tests.scenarios.controlled import Controlled
from tests.scenarios.services import FOR_EVER_S, deploy, form, running, state_of, status, until

GPUS = "train-261121-070000-aaaa"
QUEUES: dict[str, Any] = {
    "version": 1,
    "queues": {"default": {}, "gpus": {"preempts": True}},
    "reclaim": {"by": "drain", "afterSeconds": 60},
}
GPU = {"queue": "gpus", "resources": {"vcpus": 2, "memory": 4096, "gpus": 1}}
TYPES = ("c5.xlarge", "g4dn.xlarge")


def shared(cluster: Controlled) -> None:
    cluster.share(QUEUES)


def types(cluster: Controlled) -> list[str]:
    return sorted(each.instance_type for each in state_of(cluster).instances.values() if each.alive)


def seconds_until_started(cluster: Controlled, limit_s: float) -> float:
    began = cluster.world.now
    cluster.tick()
    while cluster.record(GPUS).status not in (RunStatus.RUNNING, RunStatus.SUCCEEDED):
        cluster.step()
        assert cluster.world.now - began < limit_s, (cluster.record(GPUS).waiting, types(cluster))
    return cluster.world.now - began


def test_a_gpu_run_behind_20_000_cpu_tasks_starts_once_one_instance_is_empty() -> None:
    cluster = Controlled(TYPES, work_s=120.0, max_instances=4)
    shared(cluster)
    cluster.submit(20_000)
    cluster.run_for(300)
    assert types(cluster) == ["c5.xlarge"] * 4
    cluster.submit(1, GPUS, **GPU)
    seconds = seconds_until_started(cluster, 600)
    assert seconds <= 60 + 120 + 30 + 60, "it waits, the instance becomes empty, another one boots and joins"
    assert types(cluster).count("g4dn.xlarge") == 1
    cluster.cancel()
    cluster.run_to_rest()
    assert cluster.record(GPUS).status is RunStatus.SUCCEEDED


def test_so_does_one_where_all_that_instances_may_cost_is_spent() -> None:
    """maxInstances is not reached: when a large instance is released, a smaller one with a GPU can be bought."""
    cluster = Controlled(("c5.4xlarge", "g4dn.xlarge"), work_s=120.0, max_instances=40)
    document = {**QUEUES, "limits": {"usdPerHour": 0.75}}
    cluster.share(document)
    cluster.submit(2_000)
    cluster.run_for(300)
    before = types(cluster)
    assert set(before) == {"c5.4xlarge"}
    cluster.submit(1, GPUS, **GPU)
    assert seconds_until_started(cluster, 600) <= 60 + 120 + 30 + 60
    assert types(cluster).count("c5.4xlarge") == len(before) - 1
    cluster.cancel()
    cluster.run_to_rest()


def test_where_the_going_of_an_instance_does_not_help_none_is_emptied() -> None:
    quota = (VcpuQuota(CELL, "spot", "g", 0),)
    cluster = Controlled(TYPES, work_s=120.0, max_instances=4, vcpu_quotas=quota)
    shared(cluster)
    cluster.submit(400)
    cluster.run_for(300)
    cluster.submit(1, GPUS, **GPU)
    for _ in range(40):
        cluster.tick()
        assert not any(each.yields_to for each in state_of(cluster).instances.values())
    needed = "a task needs an instance of 4 vCPUs"
    assert cluster.record(GPUS).waiting == f"{needed}, the vCPU quota of spot G and VT in {CELL} is 0"
    cluster.cancel()
    cluster.cancel(GPUS)
    cluster.run_to_rest()


def web_everywhere() -> Controlled:
    """A task of a service on each of three instances, and room for two more on each."""
    cluster = Controlled(TYPES, work_s=FOR_EVER_S, max_instances=3)
    shared(cluster)
    spec = form(3)
    spec["placement"] = {**spec["placement"], "strategy": ["spread:attribute:ecs.availability-zone"]}
    spec["resources"] = {**spec["resources"], "vcpus": 1.5}
    deploy(cluster, 1, spec)
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    assert types(cluster) == ["c5.xlarge"] * 3
    return cluster


def test_a_service_moves_to_other_instances_first_and_never_has_fewer_tasks() -> None:
    cluster = web_everywhere()
    cluster.submit(1, GPUS, **GPU)
    least, most, began = 3, 3, cluster.world.now
    while not running(cluster).get(GPUS):
        cluster.step()
        of_service = sum(count for run_id, count in running(cluster).items() if run_id.startswith("web"))
        least, most = min(least, of_service), max(most, of_service)
        assert cluster.world.now - began < 600, (cluster.record(GPUS).waiting, types(cluster))
    assert (least, most) == (3, 4)
    assert types(cluster) == ["c5.xlarge"] * 2 + ["g4dn.xlarge"]
    assert not any(each.is_emptied for each in state_of(cluster).instances.values() if each.alive)


def test_an_instance_whose_services_find_no_room_elsewhere_is_not_emptied() -> None:
    cluster = web_everywhere()
    cluster.submit(100, RUN_ID, resources={"vcpus": 1, "memory": 512})  # takes what is left of every instance
    cluster.run_for(120)
    cluster.submit(1, GPUS, **GPU)
    for _ in range(30):
        cluster.tick()
        assert not any(each.yields_to for each in state_of(cluster).instances.values())
