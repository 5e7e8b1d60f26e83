"""Do container instances, their attributes and their events behave as on ECS?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.ecs_clouds import CLUSTER, EcsCloud, refused


def values(cloud: EcsCloud, arn: str) -> dict[str, str | None]:
    return {each["name"]: each.get("value") for each in cloud.instance(arn)["attributes"]}


# --- registration --------------------------------------------------------------------------------------------------


def test_an_instance_is_registered_as_given(cloud: EcsCloud) -> None:
    instance = cloud.register("p3.8xlarge", attributes={"pool": "gpu"})
    sizes = {each["name"]: each for each in instance["registeredResources"]}
    assert sizes["CPU"]["integerValue"] == 32_768
    assert len(sizes["GPU"]["stringSetValue"]) == 4
    assert instance["registeredResources"] == instance["remainingResources"]
    assert (instance["status"], instance["agentConnected"], instance["version"]) == ("ACTIVE", True, 1)
    assert (instance["runningTasksCount"], instance["pendingTasksCount"]) == (0, 0)
    assert values(cloud, instance["containerInstanceArn"])["pool"] == "gpu"
    assert values(cloud, instance["containerInstanceArn"])["ecs.os-type"] == "linux"
    assert instance["versionInfo"]["agentVersion"] == "1.106.2"


def test_ecs_knows_type_and_zone_from_the_identity_document(cloud: EcsCloud) -> None:
    document = (
        '{"instanceId": "i-0aa", "instanceType": "c5.large", "availabilityZone": "us-east-1c", "imageId": "ami-1"}'
    )
    arn = cloud.register(instanceIdentityDocument=document)["containerInstanceArn"]
    assert cloud.instance(arn)["ec2InstanceId"] == "i-0aa"
    assert values(cloud, arn)["ecs.ami-id"] == "ami-0123456789abcdef0"  # what the agent says wins


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"instanceIdentityDocument": "{"}, "ClientException"),
        ({"instanceIdentityDocument": "[]"}, "ClientException"),
        ({"totalResources": []}, "InvalidParameterException"),
        ({"totalResources": [{"name": "CPU", "type": "FLUID"}]}, "InvalidParameterException"),
        ({"tags": [{"key": "aws:x", "value": ""}]}, "InvalidParameterException"),
    ],
)
def test_a_bad_registration_is_refused(cloud: EcsCloud, change: dict[str, Any], code: str) -> None:
    with refused(code):
        cloud.register(**change)
    assert cloud.client.list_container_instances(cluster=CLUSTER)["containerInstanceArns"] == []


def test_an_instance_outside_ec2_has_no_identity_document(cloud: EcsCloud) -> None:
    instance = cloud.client.register_container_instance(
        cluster=CLUSTER,
        totalResources=[
            {"name": "CPU", "type": "INTEGER", "integerValue": 1024},
            {"name": "MEMORY", "type": "INTEGER", "integerValue": 1024},
            {"name": "FPGA", "type": "INTEGER", "integerValue": 2},
        ],
    )["containerInstance"]
    assert (instance["ec2InstanceId"], instance["status"]) == ("", "ACTIVE")
    assert {each["name"] for each in instance["remainingResources"]} == {"CPU", "MEMORY", "FPGA", "PORTS", "PORTS_UDP"}
    query = {"cluster": CLUSTER, "filter": "runningTasksCount == 0"}
    assert cloud.client.list_container_instances(**query)["containerInstanceArns"] == [instance["containerInstanceArn"]]


def test_an_agent_that_comes_back_keeps_its_instance(cloud: EcsCloud) -> None:
    first = cloud.register()
    again = cloud.register(containerInstanceArn=first["containerInstanceArn"])
    assert again["containerInstanceArn"] == first["containerInstanceArn"]
    assert again["version"] > first["version"]
    with refused("ClientException", "type changes are not supported"):
        cloud.register("c5.9xlarge", containerInstanceArn=first["containerInstanceArn"])


def test_counts_follow_the_tasks(cloud: EcsCloud) -> None:
    """Blox reported stops inverted and counted starts alike."""
    arn = cloud.register("c5.4xlarge")["containerInstanceArn"]
    cloud.define()
    tasks = [task["taskArn"] for task in cloud.run(count=4)["tasks"]]
    for task in tasks[:3]:
        cloud.report(task, "RUNNING")
    cloud.report(tasks[0], "STOPPED", exitCode=0)
    instance = cloud.instance(arn)
    assert (instance["runningTasksCount"], instance["pendingTasksCount"]) == (2, 1)
    cluster = cloud.client.describe_clusters(clusters=[CLUSTER])["clusters"][0]
    assert (cluster["runningTasksCount"], cluster["pendingTasksCount"]) == (2, 1)
    assert cluster["registeredContainerInstancesCount"] == 1


# --- describing and listing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 101])
def test_1_to_100_instances_are_described_at_once(cloud: EcsCloud, number: int) -> None:
    with refused("InvalidParameterException", "Container instances can"):
        cloud.client.describe_container_instances(cluster=CLUSTER, containerInstances=["x"] * number)


def test_unknown_instances_are_missing(cloud: EcsCloud) -> None:
    arn = cloud.register()["containerInstanceArn"]
    unknown = arn[:-32] + "0" * 32
    reply = cloud.client.describe_container_instances(
        cluster=CLUSTER, containerInstances=["0" * 32, unknown, arn[-32:]]
    )
    assert [each["containerInstanceArn"] for each in reply["containerInstances"]] == [arn]
    assert reply["failures"] == [{"arn": unknown, "reason": "MISSING"}] * 2


def test_tags_of_instances_are_shown_when_asked_for(cloud: EcsCloud) -> None:
    arn = cloud.register(tags=[{"key": "a", "value": "b"}])["containerInstanceArn"]
    describe = {"cluster": CLUSTER, "containerInstances": [arn]}
    seen = cloud.client.describe_container_instances(**describe, include=["TAGS"])["containerInstances"][0]
    assert seen["tags"] == [{"key": "a", "value": "b"}]
    assert cloud.instance(arn)["tags"] == []


def test_a_thousand_instances_are_listed_in_ten_pages(cloud: EcsCloud) -> None:
    arns = [cloud.register("c5.large")["containerInstanceArn"] for _ in range(1_000)]
    pages = list(cloud.client.get_paginator("list_container_instances").paginate(cluster=CLUSTER))
    assert [arn for page in pages for arn in page["containerInstanceArns"]] == arns
    assert len(pages) == 10


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("attribute:ecs.instance-type =~ c5.*", {"c5"}),
        ("attribute:ecs.instance-type == p3.2xlarge", {"p3"}),
        ("attribute:ecs.availability-zone in [us-east-1b, us-east-1c]", {"p3"}),
        ("attribute:pool == gpu or attribute:ecs.instance-type =~ c5.*", {"c5", "p3"}),
        ("runningTasksCount == 1", {"c5"}),
        ("not(task:group == family:digits)", {"p3"}),
        ("agentConnected == true and agentVersion >= 1.100.0", {"c5", "p3"}),
        ("registeredAt < 2018-02-13", set()),
        ("attribute:pool exists", {"p3"}),
    ],
)
def test_a_listing_is_filtered_by_a_cluster_query(cloud: EcsCloud, query: str, expected: set[str]) -> None:
    names = {
        cloud.register("c5.2xlarge", "us-east-1a")["containerInstanceArn"]: "c5",
        cloud.register("p3.2xlarge", "us-east-1b", attributes={"pool": "gpu"})["containerInstanceArn"]: "p3",
    }
    cloud.define(placementConstraints=[{"type": "memberOf", "expression": "attribute:ecs.instance-type =~ c5.*"}])
    cloud.run()
    listed = cloud.client.list_container_instances(cluster=CLUSTER, filter=query)["containerInstanceArns"]
    assert {names[arn] for arn in listed} == expected


def test_a_filter_that_is_no_query_is_refused(cloud: EcsCloud) -> None:
    cloud.register()
    with refused("InvalidParameterException", "attributes:ecs.instance-type"):
        cloud.client.list_container_instances(cluster=CLUSTER, filter="attributes:ecs.instance-type matches t2.*")


def test_two_records_of_one_ec2_instance_can_still_be_filtered(cloud: EcsCloud) -> None:
    """An agent that lost its state registers again; the old record stays until it is deregistered."""
    document = '{"instanceId": "i-0aa"}'
    old, _ = (cloud.register(instanceIdentityDocument=document)["containerInstanceArn"] for _ in range(2))
    query = "ec2InstanceId in [i-0aa]"
    assert cloud.client.list_container_instances(cluster=CLUSTER, filter=query)["containerInstanceArns"] == [old]


# --- draining and leaving ------------------------------------------------------------------------------------------


def test_draining_does_nothing_to_standalone_tasks(cloud: EcsCloud) -> None:
    arn = cloud.register()["containerInstanceArn"]
    cloud.define()
    pending, running = (task["taskArn"] for task in cloud.run(count=2)["tasks"])
    cloud.report(running, "RUNNING")
    cloud.client.update_container_instances_state(cluster=CLUSTER, containerInstances=[arn], status="DRAINING")
    assert [cloud.task(task)["lastStatus"] for task in (pending, running)] == ["PENDING", "RUNNING"]
    assert {cloud.task(task)["desiredStatus"] for task in (pending, running)} == {"RUNNING"}


def test_instances_are_listed_by_status(cloud: EcsCloud) -> None:
    active, draining, gone = (cloud.register()["containerInstanceArn"] for _ in range(3))
    cloud.client.update_container_instances_state(cluster=CLUSTER, containerInstances=[draining], status="DRAINING")
    cloud.client.deregister_container_instance(cluster=CLUSTER, containerInstance=gone)
    listed = cloud.client.list_container_instances
    assert listed(cluster=CLUSTER)["containerInstanceArns"] == [active, draining]
    assert listed(cluster=CLUSTER, status="ACTIVE")["containerInstanceArns"] == [active]
    assert listed(cluster=CLUSTER, status="DRAINING")["containerInstanceArns"] == [draining]
    assert cloud.instance(gone)["status"] == "INACTIVE"
    with refused("InvalidParameterException", "status"):
        listed(cluster=CLUSTER, status="INACTIVE")


def test_states_change_for_ten_at_once_and_only_between_active_and_draining(cloud: EcsCloud) -> None:
    arns = [cloud.register()["containerInstanceArn"] for _ in range(11)]
    change = cloud.client.update_container_instances_state
    with refused("InvalidParameterException", "10"):
        change(cluster=CLUSTER, containerInstances=arns, status="DRAINING")
    with refused("InvalidParameterException", "ACTIVE, DRAINING"):
        change(cluster=CLUSTER, containerInstances=arns[:1], status="DEREGISTERING")
    cloud.client.deregister_container_instance(cluster=CLUSTER, containerInstance=arns[1])
    reply = change(cluster=CLUSTER, containerInstances=[arns[0], arns[1], "0" * 32], status="DRAINING")
    assert [each["status"] for each in reply["containerInstances"]] == ["DRAINING"]
    assert sorted(each["reason"] for each in reply["failures"]) == ["INACTIVE", "MISSING"]
    assert change(cluster=CLUSTER, containerInstances=arns[:1], status="ACTIVE")["failures"] == []
    before = cloud.instance(arns[0])
    change(cluster=CLUSTER, containerInstances=arns[:1], status="ACTIVE")
    assert (before["status"], cloud.instance(arns[0])["version"]) == ("ACTIVE", before["version"])


def test_an_instance_with_tasks_leaves_only_by_force(cloud: EcsCloud) -> None:
    arn = cloud.register()["containerInstanceArn"]
    cloud.define()
    task = cloud.run()["tasks"][0]["taskArn"]
    leave = cloud.client.deregister_container_instance
    with refused("InvalidParameterException", "running tasks"):
        leave(cluster=CLUSTER, containerInstance=arn)
    assert leave(cluster=CLUSTER, containerInstance=arn, force=True)["containerInstance"]["status"] == "INACTIVE"
    ended = cloud.task(task)
    assert (ended["lastStatus"], ended["stoppedReason"]) == (
        "STOPPED",
        "Container instance deregistration forced by user",
    )
    with refused("InvalidParameterException", "not found"):
        leave(cluster=CLUSTER, containerInstance=arn)


def test_a_lost_instance_takes_its_tasks_with_it_without_exit_codes(cloud: EcsCloud) -> None:
    if cloud.lose_instance is None:
        pytest.skip("instances cannot be lost here")
    instance = cloud.register("p3.8xlarge")
    cloud.define(gpus=1)
    task, stopping = (each["taskArn"] for each in cloud.run(count=2)["tasks"])
    for arn in (task, stopping):
        cloud.report(arn, "RUNNING")
    cloud.client.stop_task(cluster=CLUSTER, task=stopping, reason="cancelled")
    for _ in range(2):
        cloud.lose_instance(instance["containerInstanceArn"])
    ended = cloud.task(task)
    assert (ended["lastStatus"], ended["stopCode"]) == ("STOPPED", "TerminationNotice")
    assert ended["stoppedReason"] == f"Host EC2 (instance {instance['ec2InstanceId']}) terminated."
    assert "exitCode" not in ended["containers"][0]
    assert cloud.task(stopping)["stoppedReason"] == "cancelled"
    assert cloud.instance(instance["containerInstanceArn"])["agentConnected"] is False
    assert cloud.client.list_container_instances(cluster=CLUSTER)["containerInstanceArns"] == []


def test_a_gone_instance_is_forgotten_after_an_hour(virtual: EcsCloud) -> None:
    arn = virtual.register()["containerInstanceArn"]
    virtual.client.deregister_container_instance(cluster=CLUSTER, containerInstance=arn)
    assert virtual.pass_time is not None
    virtual.pass_time(3600)
    reply = virtual.client.describe_container_instances(cluster=CLUSTER, containerInstances=[arn])
    assert reply["failures"] == [{"arn": arn, "reason": "MISSING"}]


def test_a_forgotten_record_leaves_another_of_the_same_ec2_instance_alone(virtual: EcsCloud) -> None:
    document = '{"instanceId": "i-0aa"}'
    old, new = (virtual.register(instanceIdentityDocument=document)["containerInstanceArn"] for _ in range(2))
    virtual.define()
    virtual.client.deregister_container_instance(cluster=CLUSTER, containerInstance=old)
    assert virtual.pass_time is not None
    virtual.pass_time(3600)
    assert virtual.run_on({"ec2InstanceId": "i-0aa"})["tasks"][0]["containerInstanceArn"] == new
