"""Does ECS put tasks where constraints and strategies say?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.ecs_clouds import CLUSTER, EcsCloud, refused


def where(reply: dict[str, Any]) -> list[str]:
    return [task["containerInstanceArn"] for task in reply["tasks"]]


def member_of(expression: str) -> list[dict[str, Any]]:
    return [{"type": "memberOf", "expression": expression}]


@pytest.mark.parametrize("expression", ["ec2InstanceId == {}", "ec2InstanceId == '{}'", "ec2InstanceId in [{}]"])
def test_a_pinned_task_runs_where_it_is_pinned(cloud: EcsCloud, expression: str) -> None:
    chosen = [cloud.register() for _ in range(3)][1]
    cloud.define()
    for _ in range(3):
        reply = cloud.run(placementConstraints=member_of(expression.format(chosen["ec2InstanceId"])))
        assert where(reply) == [chosen["containerInstanceArn"]]


def test_a_pin_on_an_unknown_instance_is_a_failure_not_an_error(cloud: EcsCloud) -> None:
    cloud.register()
    cloud.define()
    reply = cloud.run(placementConstraints=member_of("ec2InstanceId == i-0badbadbadbadbad0"))
    assert (reply["tasks"], [each["reason"] for each in reply["failures"]]) == (
        [],
        ["MemberOf placement constraint unsatisfied."],
    )


def test_a_pinned_task_without_room_names_the_reason_of_that_instance_only(cloud: EcsCloud) -> None:
    small, _ = cloud.register("c5.large"), cloud.register("c5.9xlarge")
    cloud.define(container={"cpu": 4096})
    failures = cloud.run_on(small)["failures"]
    assert [(each["arn"], each["reason"]) for each in failures] == [(small["containerInstanceArn"], "RESOURCE:CPU")]


def test_constraints_of_the_definition_and_of_the_call_bind_together(cloud: EcsCloud) -> None:
    """A fault of a predecessor: instances outside the query never get a task."""
    cloud.register("c5.2xlarge", "us-east-1a")
    wanted = cloud.register("c5.2xlarge", "us-east-1b")
    cloud.register("p3.2xlarge", "us-east-1b")
    cloud.define(placementConstraints=member_of("attribute:ecs.instance-type =~ c5.*"))
    zone = member_of("attribute:ecs.availability-zone == us-east-1b")
    assert where(cloud.run(count=3, placementConstraints=zone)) == [wanted["containerInstanceArn"]] * 3


def test_distinct_instance_allows_one_task_of_the_group_each(cloud: EcsCloud) -> None:
    for _ in range(2):
        cloud.register()
    cloud.define()
    apart = [{"type": "distinctInstance"}]
    reply = cloud.run(count=3, placementConstraints=apart)
    assert len(set(where(reply))) == 2
    assert [each["reason"] for each in reply["failures"]] == ["DistinctInstance placement constraint unsatisfied."]
    assert len(where(cloud.run(group="another", placementConstraints=apart))) == 1


@pytest.mark.parametrize(
    "constraint",
    [
        {"type": "memberOf"},
        {"type": "memberOf", "expression": "attributes:ecs.instance-type matches t2.*"},
        {"type": "memberOf", "expression": "attribute:x == " + "y" * 2000},
        {"type": "distinctInstance", "expression": "runningTasksCount == 0"},
    ],
)
def test_a_constraint_that_means_nothing_is_refused(cloud: EcsCloud, constraint: dict[str, Any]) -> None:
    cloud.register()
    cloud.define()
    with refused("InvalidParameterException"):
        cloud.run(placementConstraints=[constraint])


def test_eleven_constraints_are_one_too_many_those_of_the_definition_included(cloud: EcsCloud) -> None:
    cloud.register()
    cloud.define(placementConstraints=member_of("runningTasksCount >= 0"))
    assert cloud.run(placementConstraints=member_of("runningTasksCount >= 0") * 9)["tasks"]
    with refused("InvalidParameterException", "10"):
        cloud.run(placementConstraints=member_of("runningTasksCount >= 0") * 10)


@pytest.mark.parametrize(
    "rule",
    [
        {"type": "binpack", "field": "gpu"},
        {"type": "binpack"},
        {"type": "spread", "field": "zone"},
        {"type": "random", "field": "cpu"},
    ],
)
def test_a_strategy_that_means_nothing_is_refused(cloud: EcsCloud, rule: dict[str, Any]) -> None:
    cloud.register()
    cloud.define()
    with refused("InvalidParameterException", "strategy"):
        cloud.run(placementStrategy=[rule])


def test_at_most_five_rules(cloud: EcsCloud) -> None:
    cloud.register()
    cloud.define()
    with refused("InvalidParameterException", "5"):
        cloud.run(placementStrategy=[{"type": "random"}] * 6)


def test_binpack_fills_the_instance_with_least_left(cloud: EcsCloud) -> None:
    cloud.register("c5.9xlarge")
    small = cloud.register("c5.large")
    cloud.define()
    reply = cloud.run(count=3, placementStrategy=[{"type": "binpack", "field": "cpu"}])
    assert where(reply)[:2] == [small["containerInstanceArn"]] * 2
    assert where(reply)[2] != small["containerInstanceArn"]


def test_spread_over_zones_then_binpack_inside(cloud: EcsCloud) -> None:
    zones = {
        cloud.register(kind, zone)["containerInstanceArn"]: (kind, zone)
        for zone in ("us-east-1a", "us-east-1b", "us-east-1c")
        for kind in ("c5.2xlarge", "c5.4xlarge")
    }
    cloud.define()
    chained = [
        {"type": "spread", "field": "attribute:ecs.availability-zone"},
        {"type": "binpack", "field": "memory"},
    ]
    placed = [zones[arn] for arn in where(cloud.run(count=6, placementStrategy=chained))]
    assert [kind for kind, _ in placed] == ["c5.2xlarge"] * 6
    assert sorted(zone for _, zone in placed) == sorted(["us-east-1a", "us-east-1b", "us-east-1c"] * 2)


@pytest.mark.parametrize("field", ["instanceId", "host"])
def test_spread_over_instances_counts_the_group(cloud: EcsCloud, field: str) -> None:
    arns = {cloud.register()["containerInstanceArn"] for _ in range(3)}
    cloud.define()
    cloud.run(count=5, group="other", placementStrategy=[{"type": "binpack", "field": "cpu"}])
    assert set(where(cloud.run(count=3, placementStrategy=[{"type": "spread", "field": field}]))) == arns


def test_draining_and_gone_instances_are_no_candidates(cloud: EcsCloud) -> None:
    draining, gone, active = (cloud.register() for _ in range(3))
    cloud.define()
    cloud.client.update_container_instances_state(
        cluster=CLUSTER, containerInstances=[draining["containerInstanceArn"]], status="DRAINING"
    )
    cloud.client.deregister_container_instance(cluster=CLUSTER, containerInstance=gone["containerInstanceArn"])
    assert where(cloud.run(count=3)) == [active["containerInstanceArn"]] * 3
    assert cloud.run_on(draining)["tasks"] == []


def test_a_definition_that_needs_a_capability_is_refused_where_it_is_missing(cloud: EcsCloud) -> None:
    attributes = {"com.amazonaws.ecs.capability.docker-remote-api.1.24": ""}
    cloud.register(attributes=attributes)
    able = cloud.register(attributes={**attributes, "com.amazonaws.ecs.capability.logging-driver.awslogs": ""})
    logs = {"logDriver": "awslogs", "options": {"awslogs-group": "/ecs/argosy/tasks", "awslogs-region": "us-east-1"}}
    cloud.define(container={"logConfiguration": logs, "cpu": 8192})
    reply = cloud.run(count=2)
    assert where(reply) == [able["containerInstanceArn"]]
    assert sorted(each["reason"] for each in reply["failures"]) == ["ATTRIBUTE", "RESOURCE:CPU"]


def test_roles_and_logs_make_a_definition_require_capabilities(cloud: EcsCloud) -> None:
    role = "arn:aws:iam::123456789012:role/argosy"
    logs = {"logDriver": "awslogs", "options": {}}
    arn = cloud.define(taskRoleArn=role, executionRoleArn=role, container={"logConfiguration": logs})
    required = cloud.client.describe_task_definition(taskDefinition=arn)["taskDefinition"]["requiresAttributes"]
    assert {each["name"] for each in required} == {
        "com.amazonaws.ecs.capability.logging-driver.awslogs",
        "com.amazonaws.ecs.capability.task-iam-role",
        "ecs.capability.execution-role-awslogs",
    }
    cloud.register()  # declares no Docker API: an emulated agent, taken to be capable of everything
    assert cloud.run(arn)["tasks"]


def test_start_task_checks_every_instance_it_is_given(cloud: EcsCloud) -> None:
    full, gone, free = (cloud.register("c5.large") for _ in range(3))
    cloud.define(container={"cpu": 2048})
    cloud.run_on(full)
    cloud.client.deregister_container_instance(cluster=CLUSTER, containerInstance=gone["containerInstanceArn"])
    ids = [each["containerInstanceArn"].rpartition("/")[2] for each in (full, gone, free)]
    reply = cloud.client.start_task(cluster=CLUSTER, taskDefinition="digits", containerInstances=[*ids, "0" * 32])
    assert where(reply) == [free["containerInstanceArn"]]
    assert [each["reason"] for each in reply["failures"]] == ["RESOURCE:CPU", "INACTIVE", "MISSING"]


@pytest.mark.parametrize("number", [0, 11])
def test_start_task_takes_1_to_10_instances(cloud: EcsCloud, number: int) -> None:
    cloud.define()
    with refused("InvalidParameterException"):
        cloud.client.start_task(cluster=CLUSTER, taskDefinition="digits", containerInstances=["x"] * number)


def test_start_task_twice_is_two_tasks(cloud: EcsCloud) -> None:
    """It has no token: why it is not used for launching."""
    arn = cloud.register()["containerInstanceArn"]
    cloud.define()
    for _ in range(2):
        cloud.client.start_task(cluster=CLUSTER, taskDefinition="digits", containerInstances=[arn], startedBy="plan-1")
    assert len(cloud.client.list_tasks(cluster=CLUSTER, startedBy="plan-1")["taskArns"]) == 2
