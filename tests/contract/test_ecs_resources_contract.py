"""Which resources does a task take and get, and which requests are refused for lack of room?"""

from __future__ import annotations

from typing import Any

import pytest

from argosy.catalogue.lookup import load_catalogue
from tests.fakes.ecs_clouds import CLUSTER, EcsCloud, refused

MEMORY_MIB = load_catalogue()["c5.2xlarge"].registered_memory_mib


def reasons(reply: dict[str, Any]) -> list[str]:
    return [each["reason"] for each in reply["failures"]]


def gpu_sets(reply: dict[str, Any]) -> list[list[str]]:
    return [container["gpuIds"] for task in reply["tasks"] for container in task["containers"]]


# --- resources -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("container", "reason"),
    [
        ({"cpu": 8193}, "RESOURCE:CPU"),
        ({"memory": MEMORY_MIB + 1}, "RESOURCE:MEMORY"),
        ({"portMappings": [{"containerPort": 22, "hostPort": 22}]}, "RESOURCE:PORTS"),
        ({"resourceRequirements": [{"type": "GPU", "value": "1"}]}, "RESOURCE:GPU"),
    ],
)
@pytest.mark.parametrize("operation", ["run_task", "start_task"])
def test_what_does_not_fit_is_a_failure_of_that_instance(
    cloud: EcsCloud, container: dict[str, Any], reason: str, operation: str
) -> None:
    instance = cloud.register("c5.2xlarge")  # 8,192 units, no GPU
    cloud.define(container=container)
    where = {"containerInstances": [instance["containerInstanceArn"]]} if operation == "start_task" else {}
    reply = getattr(cloud.client, operation)(cluster=CLUSTER, taskDefinition="digits", **where)
    assert reply["tasks"] == []
    assert [(each["arn"], each["reason"]) for each in reply["failures"]] == [(instance["containerInstanceArn"], reason)]


def test_a_task_takes_exactly_what_it_asks_for(cloud: EcsCloud) -> None:
    instance = cloud.register("c5.2xlarge")
    cloud.define(container={"portMappings": [{"containerPort": 80, "hostPort": 8080, "protocol": "udp"}]})
    cloud.run()
    left = cloud.remaining(instance)
    assert (left["CPU"], left["MEMORY"], left["PORTS_UDP"]) == (8192 - 1024, MEMORY_MIB - 1024, ["8080"])


def test_memory_reservation_wins_over_memory_and_containers_add_up(cloud: EcsCloud) -> None:
    instance = cloud.register("c5.2xlarge")
    one = {"name": "main", "image": "argosy/digits", "cpu": 100, "memory": 900, "memoryReservation": 300}
    two = {"name": "side", "image": "argosy/digits", "cpu": 50, "memory": 200, "essential": False}
    cloud.define(containers=[one, two])
    cloud.run()
    assert cloud.remaining(instance)["CPU"] == 8192 - 150
    assert cloud.remaining(instance)["MEMORY"] == MEMORY_MIB - 500


def test_task_level_sizes_win_over_the_containers(cloud: EcsCloud) -> None:
    instance = cloud.register("c5.2xlarge")
    cloud.define(cpu="2 vCPU", memory="4 GB")
    task = cloud.run()["tasks"][0]
    assert (task["cpu"], task["memory"]) == ("2048", "4096")
    assert cloud.remaining(instance)["CPU"] == 8192 - 2048


@pytest.mark.parametrize(
    "overrides",
    [
        {"cpu": "2048", "memory": "4096"},
        {"containerOverrides": [{"name": "main", "cpu": 2048, "memory": 4096}]},
    ],
)
def test_overridden_sizes_count(cloud: EcsCloud, overrides: dict[str, Any]) -> None:
    instance = cloud.register("c5.2xlarge")
    cloud.define()
    cloud.run(overrides=overrides)
    left = cloud.remaining(instance)
    assert (left["CPU"], left["MEMORY"]) == (8192 - 2048, MEMORY_MIB - 4096)


def test_an_override_counts_for_its_own_container_and_dynamic_ports_take_none(cloud: EcsCloud) -> None:
    instance = cloud.register("c5.2xlarge")
    one = {"name": "main", "image": "argosy/digits", "cpu": 100, "memory": 100, "portMappings": [{"containerPort": 80}]}
    two = {"name": "side", "image": "argosy/digits", "cpu": 10, "memory": 10}
    cloud.define(containers=[one, two])
    before = cloud.remaining(instance)
    task = cloud.run(overrides={"containerOverrides": [{"name": "side", "cpu": 50}]})["tasks"][0]
    assert [container["cpu"] for container in task["containers"]] == ["100", "50"]
    assert cloud.remaining(instance) == {**before, "CPU": before["CPU"] - 150, "MEMORY": before["MEMORY"] - 110}


def test_partial_success_has_tasks_and_failures(cloud: EcsCloud) -> None:
    cloud.register("c5.large")  # 2,048 units
    cloud.define()
    reply = cloud.run(count=3)
    assert (len(reply["tasks"]), reasons(reply)) == (2, ["RESOURCE:CPU"])


def test_a_port_is_taken_once_per_protocol(cloud: EcsCloud) -> None:
    cloud.register()
    for family, protocol in (("tcp", "tcp"), ("udp", "udp")):
        mapping = {"containerPort": 53, "hostPort": 5353, "protocol": protocol}
        cloud.define(family, container={"portMappings": [mapping]})
    assert cloud.run("tcp")["tasks"]
    assert cloud.run("udp")["tasks"]
    assert reasons(cloud.run("tcp")) == ["RESOURCE:PORTS"]


def test_an_instance_reserves_a_hundred_ports_at_most_its_own_among_them(cloud: EcsCloud) -> None:
    instance = cloud.register()
    own = len(cloud.remaining(instance)["PORTS"])
    for family, first, count in (("most", 1_000, 100 - own), ("one-more", 2_000, 1)):
        ports = range(first, first + count)
        cloud.define(family, container={"portMappings": [{"containerPort": each, "hostPort": each} for each in ports]})
    assert cloud.run("most")["tasks"]
    assert reasons(cloud.run("one-more")) == ["RESOURCE:PORTS"]


def test_what_a_stopped_task_held_is_free_again_once(cloud: EcsCloud) -> None:
    instance = cloud.register("p3.8xlarge")
    cloud.define(gpus=2)
    before = cloud.remaining(instance)
    arn = cloud.run()["tasks"][0]["taskArn"]
    assert cloud.remaining(instance) != before
    for _ in range(2):
        cloud.report(arn, "STOPPED", exitCode=0)
        cloud.client.stop_task(cluster=CLUSTER, task=arn)
    assert cloud.remaining(instance) == before


# --- GPUs ----------------------------------------------------------------------------------------------------------


def test_gpus_of_co_located_tasks_are_disjoint(cloud: EcsCloud) -> None:
    """Fenzo once counted GPUs twice; the DSSTNE template showed every container all of them."""
    cloud.register("p3.8xlarge")
    cloud.define(gpus=1)
    pinned = gpu_sets(cloud.run(count=4))
    assert len({gpu for ids in pinned for gpu in ids}) == 4
    assert reasons(cloud.run()) == ["RESOURCE:GPU"]


def test_gpus_are_given_by_container(cloud: EcsCloud) -> None:
    instance = cloud.register("p3.8xlarge")
    two = [{"type": "GPU", "value": "2"}]
    containers = [
        {"name": "main", "image": "argosy/digits", "memory": 100, "resourceRequirements": two},
        {"name": "side", "image": "argosy/digits", "memory": 100},
    ]
    cloud.define(containers=containers)
    main, side = cloud.run()["tasks"][0]["containers"]
    assert len(main["gpuIds"]) == 2
    assert "gpuIds" not in side
    assert set(cloud.remaining(instance)["GPU"]).isdisjoint(main["gpuIds"])


def test_a_gpu_count_can_be_overridden_but_not_added(cloud: EcsCloud) -> None:
    cloud.register("p3.8xlarge")
    cloud.define("with", gpus=1)
    cloud.define("without")
    four = {"containerOverrides": [{"name": "main", "resourceRequirements": [{"type": "GPU", "value": "4"}]}]}
    assert len(gpu_sets(cloud.run("with", overrides=four))[0]) == 4
    with refused("InvalidParameterException", "GPU"):
        cloud.run("without", overrides=four)


def test_a_task_without_gpus_may_run_on_a_gpu_instance(cloud: EcsCloud) -> None:
    cloud.register("p3.2xlarge")
    cloud.define()
    assert "gpuIds" not in cloud.run()["tasks"][0]["containers"][0]
