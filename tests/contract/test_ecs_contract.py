"""Does RunTask (and StartTask) keep AWS's contract: tokens and limits?"""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError, ParamValidationError

from tests.fakes.ecs_clouds import CLUSTER, EcsCloud, refused


def reasons(reply: dict[str, Any]) -> list[str]:
    return [each["reason"] for each in reply["failures"]]


# --- tokens --------------------------------------------------------------------------------------------------------


def test_the_same_token_twice_is_one_task(cloud: EcsCloud) -> None:
    cloud.register()
    cloud.define()
    first = cloud.run(clientToken="a-token", startedBy="plan-1")
    again = cloud.run(clientToken="a-token", startedBy="plan-1")
    assert first["tasks"][0]["taskArn"] == again["tasks"][0]["taskArn"]
    assert len(cloud.client.list_tasks(cluster=CLUSTER)["taskArns"]) == 1


def test_no_token_twice_is_two_tasks(cloud: EcsCloud) -> None:
    cloud.register()
    cloud.define()
    assert cloud.run()["tasks"][0]["taskArn"] != cloud.run()["tasks"][0]["taskArn"]


def test_the_same_token_with_other_parameters_is_a_conflict_that_names_the_tasks(cloud: EcsCloud) -> None:
    cloud.register()
    cloud.define()
    started = cloud.run(clientToken="a-token")["tasks"][0]["taskArn"]
    with pytest.raises(ClientError) as caught:
        cloud.run(clientToken="a-token", startedBy="someone-else")
    assert caught.value.response["Error"]["Code"] == "ConflictException"
    assert caught.value.response["resourceIds"] == [started]


def test_a_token_answers_with_the_task_as_it_is_now(cloud: EcsCloud) -> None:
    cloud.register()
    cloud.define()
    arn = cloud.run(clientToken="a-token")["tasks"][0]["taskArn"]
    cloud.report(arn, "RUNNING")
    assert cloud.run(clientToken="a-token")["tasks"][0]["lastStatus"] == "RUNNING"


def test_a_token_whose_launch_found_no_room_starts_the_task_later(cloud: EcsCloud) -> None:
    full = cloud.register("c5.large")
    cloud.define(container={"cpu": 2048})
    running = cloud.run_on(full)["tasks"][0]["taskArn"]
    assert reasons(cloud.run_on(full, clientToken="a-token")) == ["RESOURCE:CPU"]
    cloud.report(running, "STOPPED", exitCode=0)
    assert len(cloud.run_on(full, clientToken="a-token")["tasks"]) == 1


def test_a_token_dies_after_a_day(virtual: EcsCloud) -> None:
    virtual.register()
    virtual.define()
    first = virtual.run(clientToken="a-token")["tasks"][0]["taskArn"]
    assert virtual.pass_time is not None
    virtual.pass_time(24 * 3600 - 1)
    assert virtual.run(clientToken="a-token")["tasks"][0]["taskArn"] == first
    virtual.pass_time(1)
    assert virtual.run(clientToken="a-token")["tasks"][0]["taskArn"] != first


def test_forgetting_an_old_task_does_not_end_a_token_that_was_reused(virtual: EcsCloud) -> None:
    virtual.register()
    virtual.define()
    first = virtual.run(clientToken="a-token")["tasks"][0]["taskArn"]
    assert virtual.pass_time is not None
    virtual.pass_time(24 * 3600)
    second = virtual.run(clientToken="a-token")["tasks"][0]["taskArn"]
    virtual.report(first, "STOPPED", exitCode=0)
    virtual.pass_time(3600)
    assert virtual.run(clientToken="a-token")["tasks"][0]["taskArn"] == second


def test_a_token_outlives_its_task_by_an_hour(virtual: EcsCloud) -> None:
    """AWS, "Ensuring idempotency": the lower of 24 hours and "the lifetime of the resource plus one hour"."""
    virtual.register()
    virtual.define()
    first = virtual.run(clientToken="a-token")["tasks"][0]["taskArn"]
    assert virtual.pass_time is not None
    virtual.pass_time(1800)
    virtual.report(first, "STOPPED", exitCode=0)
    virtual.pass_time(3599)
    assert virtual.run(clientToken="a-token")["tasks"][0]["taskArn"] == first
    virtual.pass_time(1)
    assert virtual.run(clientToken="a-token")["tasks"][0]["taskArn"] != first


def test_a_token_of_several_tasks_outlives_the_last_of_them_by_an_hour(virtual: EcsCloud) -> None:
    virtual.register("c5.9xlarge")
    virtual.define()
    arns = [task["taskArn"] for task in virtual.run(clientToken="a-token", count=2)["tasks"]]
    assert virtual.pass_time is not None
    virtual.report(arns[0], "STOPPED", exitCode=0)
    virtual.pass_time(1800)
    virtual.report(arns[1], "STOPPED", exitCode=0)
    virtual.pass_time(3599)
    again = virtual.run(clientToken="a-token", count=2)["tasks"]
    assert [task["taskArn"] for task in again] == arns[1:]
    virtual.pass_time(1)
    assert not {task["taskArn"] for task in virtual.run(clientToken="a-token", count=2)["tasks"]} & {*arns}


def test_a_repeated_request_gets_few_fields_of_a_stopped_task(virtual: EcsCloud) -> None:
    """AWS, "Ensuring idempotency": "only include the task ARN, last status, and desired status"."""
    virtual.register()
    virtual.define()
    first = virtual.run(clientToken="a-token")["tasks"][0]["taskArn"]
    virtual.report(first, "STOPPED", exitCode=0)
    again = virtual.run(clientToken="a-token")["tasks"][0]
    assert again == {"taskArn": first, "lastStatus": "STOPPED", "desiredStatus": "STOPPED"}


@pytest.mark.parametrize("token", ["", "x" * 65, "with space", "naïve"])
def test_a_token_has_1_to_64_printable_characters(cloud: EcsCloud, token: str) -> None:
    cloud.register()
    cloud.define()
    with refused("InvalidParameterException", "clientToken"):
        cloud.run(clientToken=token)


# --- limits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, -1, 11])
def test_count_is_1_to_10(cloud: EcsCloud, count: int) -> None:
    cloud.register("c5.9xlarge")
    cloud.define()
    with refused("InvalidParameterException", "between 1 and 10"):
        cloud.run(count=count)


def test_ten_tasks_start_at_once(cloud: EcsCloud) -> None:
    cloud.register("c5.9xlarge")
    cloud.define()
    assert len({task["taskArn"] for task in cloud.run(count=10)["tasks"]}) == 10


def overrides_of(characters: int) -> dict[str, Any]:
    """Overrides whose compact JSON has exactly that many characters."""
    overrides = {"containerOverrides": [{"name": "main", "command": [""]}]}
    missing = characters - len(json.dumps(overrides, separators=(",", ":")))
    return {"containerOverrides": [{"name": "main", "command": ["x" * missing]}]}


def test_overrides_have_8192_characters_and_no_more(cloud: EcsCloud) -> None:
    cloud.register()
    cloud.define()
    assert cloud.run(overrides=overrides_of(8192))["tasks"]
    with refused("InvalidParameterException", "8192"):
        cloud.run(overrides=overrides_of(8193))


def test_overrides_name_a_container_of_the_definition(cloud: EcsCloud) -> None:
    cloud.register()
    cloud.define()
    with refused("InvalidParameterException", "is not a container in the TaskDefinition"):
        cloud.run(overrides={"containerOverrides": [{"name": "other", "command": ["x"]}]})


@pytest.mark.parametrize("started_by", ["x" * 129, "a b", "a.b", "a:b"])
def test_started_by_of_run_task_has_128_letters_digits_hyphens_slashes_underscores(
    cloud: EcsCloud, started_by: str
) -> None:
    cloud.register()
    cloud.define()
    with refused("InvalidParameterException", "startedBy"):
        cloud.run(startedBy=started_by)


def test_started_by_of_start_task_has_36_characters(cloud: EcsCloud) -> None:
    arn = cloud.register()["containerInstanceArn"]
    cloud.define()
    call = {"cluster": CLUSTER, "taskDefinition": "digits", "containerInstances": [arn]}
    assert cloud.client.start_task(**call, startedBy="x" * 36)["tasks"]
    with refused("InvalidParameterException", "startedBy"):
        cloud.client.start_task(**call, startedBy="x" * 37)


@pytest.mark.parametrize("group", ["x" * 256, "service:mine"])
def test_a_group_is_short_and_no_service(cloud: EcsCloud, group: str) -> None:
    cloud.register()
    cloud.define()
    with refused("InvalidParameterException", "group"):
        cloud.run(group=group)


def test_an_empty_cluster_is_an_invalid_parameter(cloud: EcsCloud) -> None:
    cloud.define()
    with refused("InvalidParameterException", "No Container Instances were found in your cluster."):
        cloud.run()


def test_an_unknown_cluster_is_not_found(cloud: EcsCloud) -> None:
    cloud.define()
    with refused("ClusterNotFoundException", "Cluster not found."):
        cloud.client.run_task(cluster="nowhere", taskDefinition="digits")


def test_a_definition_must_be_there_and_active(cloud: EcsCloud) -> None:
    cloud.register()
    with refused("InvalidParameterException", "TaskDefinition not found."):
        cloud.run("digits")
    arn = cloud.define()
    cloud.client.deregister_task_definition(taskDefinition=arn)
    with refused("InvalidParameterException", "TaskDefinition is inactive"):
        cloud.run(arn)


@pytest.mark.parametrize(
    "request_members",
    [
        {"launchType": "FARGATE"},
        {"capacityProviderStrategy": [{"capacityProvider": "spot"}]},
        {"capacityProviderStrategy": [{"capacityProvider": "spot"}], "launchType": "EC2"},
        {"referenceId": "mine"},
        {"networkConfiguration": {"awsvpcConfiguration": {"subnets": ["subnet-1"]}}},
        {"tags": [{"key": "aws:mine", "value": "x"}]},
    ],
)
def test_what_cannot_be_had_is_refused(cloud: EcsCloud, request_members: dict[str, Any]) -> None:
    cloud.register()
    cloud.define()
    with refused("InvalidParameterException"):
        cloud.run(**request_members)


def test_awsvpc_needs_its_network(cloud: EcsCloud) -> None:
    cloud.register()
    cloud.define(networkMode="awsvpc")
    with refused("InvalidParameterException", "Network Configuration must be provided"):
        cloud.run()


def test_a_parameter_of_the_wrong_type_never_leaves_the_client(cloud: EcsCloud) -> None:
    with pytest.raises(ParamValidationError):
        cloud.client.run_task(cluster=CLUSTER, taskDefinition=7)
