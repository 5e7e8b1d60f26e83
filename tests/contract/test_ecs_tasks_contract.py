"""Do tasks live, end, and show themselves as on ECS?"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tests.fakes.ecs_clouds import CLUSTER, EcsCloud, refused


@pytest.fixture
def started(cloud: EcsCloud) -> dict[str, Any]:
    """A task that has just been launched."""
    cloud.register()
    cloud.define()
    task: dict[str, Any] = cloud.run(startedBy="plan-1", tags=[{"key": "team", "value": "vision"}])["tasks"][0]
    return task


def test_a_new_task_is_pending_until_its_agent_says_otherwise(cloud: EcsCloud, started: dict[str, Any]) -> None:
    assert (started["lastStatus"], started["desiredStatus"], started["version"]) == ("PENDING", "RUNNING", 1)
    task = cloud.task(started["taskArn"])
    assert task["lastStatus"] == "PENDING"
    assert "startedAt" not in task


def test_a_task_shows_where_it_comes_from(cloud: EcsCloud, started: dict[str, Any]) -> None:
    assert started["group"] == "family:digits"
    assert started["startedBy"] == "plan-1"
    assert started["launchType"] == "EC2"
    assert started["tags"] == [{"key": "team", "value": "vision"}]
    assert started["availabilityZone"] == "us-east-1a"
    assert started["taskDefinitionArn"].endswith(":task-definition/digits:1")
    assert started["containers"][0]["taskArn"] == started["taskArn"]
    assert isinstance(started["createdAt"], datetime)


def test_a_task_runs_and_ends_with_its_exit_code(cloud: EcsCloud, started: dict[str, Any]) -> None:
    arn = started["taskArn"]
    cloud.report(arn, "RUNNING", runtimeId="abc")
    running = cloud.task(arn)
    assert (running["lastStatus"], running["containers"][0]["lastStatus"]) == ("RUNNING", "RUNNING")
    assert "exitCode" not in running["containers"][0]
    cloud.report(arn, "STOPPED", exitCode=7, reason="boom")
    ended = cloud.task(arn)
    assert (ended["lastStatus"], ended["desiredStatus"]) == ("STOPPED", "STOPPED")
    assert (ended["stopCode"], ended["stoppedReason"]) == (
        "EssentialContainerExited",
        "Essential container in task exited",
    )
    assert (ended["containers"][0]["exitCode"], ended["containers"][0]["reason"]) == (7, "boom")
    assert running["startedAt"] <= ended["stoppingAt"] <= ended["stoppedAt"]
    assert started["version"] < running["version"] < ended["version"]


def test_a_task_that_never_ran_failed_to_start(cloud: EcsCloud, started: dict[str, Any]) -> None:
    why = "CannotPullContainerError: pull image manifest has been retried 1 time(s)"
    change = {"containerName": "main", "status": "STOPPED", "reason": why}
    cloud.client.submit_task_state_change(
        cluster=CLUSTER, task=started["taskArn"], status="STOPPED", reason=why, containers=[change]
    )
    task = cloud.task(started["taskArn"])
    assert (task["stopCode"], task["stoppedReason"]) == ("TaskFailedToStart", why)
    assert "exitCode" not in task["containers"][0]
    assert "startedAt" not in task


def test_stopped_is_final(cloud: EcsCloud, started: dict[str, Any]) -> None:
    arn = started["taskArn"]
    cloud.report(arn, "STOPPED", exitCode=0)
    before = cloud.task(arn)
    cloud.report(arn, "RUNNING")
    cloud.client.submit_container_state_change(
        cluster=CLUSTER, task=arn, containerName="main", status="STOPPED", exitCode=9
    )
    assert cloud.task(arn) == before


def test_a_container_reports_by_itself(cloud: EcsCloud, started: dict[str, Any]) -> None:
    cloud.report(started["taskArn"], "RUNNING")
    report = {"cluster": CLUSTER, "task": started["taskArn"], "containerName": "main"}
    cloud.client.submit_container_state_change(**report, status="STOPPED", exitCode=3)
    task = cloud.task(started["taskArn"])
    assert (task["lastStatus"], task["containers"][0]["exitCode"]) == ("RUNNING", 3)
    with refused("InvalidParameterException", "no container"):
        cloud.client.submit_container_state_change(**{**report, "containerName": "other"}, status="STOPPED")


def test_an_unknown_status_is_refused(cloud: EcsCloud, started: dict[str, Any]) -> None:
    with refused("InvalidParameterException", "status"):
        cloud.client.submit_task_state_change(cluster=CLUSTER, task=started["taskArn"], status="DANCING")


def test_a_stop_is_asked_for_once_and_carried_out_by_the_agent(cloud: EcsCloud, started: dict[str, Any]) -> None:
    """A fault of a predecessor: a second stop frees nothing twice."""
    arn = started["taskArn"]
    cloud.report(arn, "RUNNING")
    first = cloud.client.stop_task(cluster=CLUSTER, task=arn, reason="cancelled")["task"]
    assert (first["desiredStatus"], first["lastStatus"]) == ("STOPPED", "RUNNING")
    assert (first["stopCode"], first["stoppedReason"]) == ("UserInitiated", "cancelled")
    again = cloud.client.stop_task(cluster=CLUSTER, task=arn, reason="another")["task"]
    assert again == first
    cloud.report(arn, "STOPPED", exitCode=143)
    ended = cloud.task(arn)
    assert (ended["stopCode"], ended["stoppedReason"], ended["containers"][0]["exitCode"]) == (
        "UserInitiated",
        "cancelled",
        143,
    )
    assert cloud.client.stop_task(cluster=CLUSTER, task=arn)["task"]["stoppedReason"] == "cancelled"


def test_a_stop_deletes_the_tags(cloud: EcsCloud, started: dict[str, Any]) -> None:
    cloud.client.stop_task(cluster=CLUSTER, task=started["taskArn"])
    assert cloud.task(started["taskArn"])["tags"] == []


def test_a_task_that_never_reached_the_agent_stops_at_once(cloud: EcsCloud, started: dict[str, Any]) -> None:
    task = cloud.client.stop_task(cluster=CLUSTER, task=started["taskArn"].rpartition("/")[2])["task"]
    assert (task["lastStatus"], task["stopCode"]) == ("STOPPED", "UserInitiated")


def test_an_unknown_task_cannot_be_stopped(cloud: EcsCloud) -> None:
    with refused("InvalidParameterException", "The referenced task was not found."):
        cloud.client.stop_task(cluster=CLUSTER, task="0" * 32)


def test_unknown_tasks_are_missing_and_known_ones_are_listed_once(cloud: EcsCloud, started: dict[str, Any]) -> None:
    arn = started["taskArn"]
    reply = cloud.client.describe_tasks(cluster=CLUSTER, tasks=["0" * 32, arn, arn])
    assert [task["taskArn"] for task in reply["tasks"]] == [arn]
    prefix = arn.rpartition("/")[0]
    assert reply["failures"] == [{"arn": f"{prefix}/{'0' * 32}", "reason": "MISSING"}]


def test_tags_are_shown_when_asked_for(cloud: EcsCloud, started: dict[str, Any]) -> None:
    arns = [started["taskArn"]]
    assert cloud.client.describe_tasks(cluster=CLUSTER, tasks=arns)["tasks"][0]["tags"] == []
    assert cloud.client.describe_tasks(cluster=CLUSTER, tasks=arns, include=["TAGS"])["tasks"][0]["tags"]


@pytest.mark.parametrize("number", [0, 101])
def test_1_to_100_tasks_are_described_at_once(cloud: EcsCloud, number: int) -> None:
    """Distributo sent empty and over-long Describe calls."""
    with refused("InvalidParameterException", "Tasks can"):
        cloud.client.describe_tasks(cluster=CLUSTER, tasks=[f"{index:032x}" for index in range(number)])


def test_a_hundred_tasks_are_described_at_once(cloud: EcsCloud) -> None:
    reply = cloud.client.describe_tasks(cluster=CLUSTER, tasks=[f"{index:032x}" for index in range(100)])
    assert len(reply["failures"]) == 100


def test_a_stopped_task_is_remembered_for_an_hour(virtual: EcsCloud) -> None:
    """A fault of a predecessor: tasks that ECS has forgotten must be resolved in another way."""
    virtual.register()
    virtual.define()
    arn = virtual.run(startedBy="plan-1")["tasks"][0]["taskArn"]
    virtual.report(arn, "STOPPED", exitCode=0)
    assert virtual.pass_time is not None
    virtual.pass_time(3599)
    assert virtual.task(arn)["lastStatus"] == "STOPPED"
    assert virtual.client.list_tasks(cluster=CLUSTER, startedBy="plan-1", desiredStatus="STOPPED")["taskArns"] == [arn]
    virtual.pass_time(1)
    reply = virtual.client.describe_tasks(cluster=CLUSTER, tasks=[arn])
    assert reply == {**reply, "tasks": [], "failures": [{"arn": arn, "reason": "MISSING"}]}
    assert virtual.client.list_tasks(cluster=CLUSTER, startedBy="plan-1", desiredStatus="STOPPED")["taskArns"] == []


# --- listing -------------------------------------------------------------------------------------------------------


def test_the_default_listing_is_by_desired_status_running(cloud: EcsCloud) -> None:
    cloud.register()
    cloud.define()
    pending, running, stopping, stopped = (task["taskArn"] for task in cloud.run(count=4)["tasks"])
    for arn in (running, stopping):
        cloud.report(arn, "RUNNING")
    cloud.client.stop_task(cluster=CLUSTER, task=stopping)
    cloud.report(stopped, "STOPPED", exitCode=0)
    listed = {
        status: cloud.client.list_tasks(cluster=CLUSTER, desiredStatus=status)["taskArns"]
        for status in ("RUNNING", "STOPPED", "PENDING")
    }
    assert cloud.client.list_tasks(cluster=CLUSTER)["taskArns"] == listed["RUNNING"] == [pending, running]
    assert listed["STOPPED"] == [stopping, stopped]
    assert listed["PENDING"] == []


def test_listings_are_paged_by_100_and_miss_nothing(cloud: EcsCloud) -> None:
    cloud.register("c5.18xlarge")
    cloud.define(container={"cpu": 10, "memory": 10})
    started = [task["taskArn"] for _ in range(21) for task in cloud.run(count=10)["tasks"]]
    pages = list(cloud.client.get_paginator("list_tasks").paginate(cluster=CLUSTER))
    assert [len(page["taskArns"]) for page in pages] == [100, 100, 10]
    assert [arn for page in pages for arn in page["taskArns"]] == started
    small = cloud.client.list_tasks(cluster=CLUSTER, maxResults=3)
    assert small["taskArns"] == started[:3]
    cloud.client.stop_task(cluster=CLUSTER, task=started[2])
    assert (
        cloud.client.list_tasks(cluster=CLUSTER, maxResults=3, nextToken=small["nextToken"])["taskArns"] == started[3:6]
    )


@pytest.mark.parametrize("limit", [0, 101])
def test_pages_have_1_to_100_entries(cloud: EcsCloud, limit: int) -> None:
    with refused("InvalidParameterException", "between 1 and 100"):
        cloud.client.list_tasks(cluster=CLUSTER, maxResults=limit)


@pytest.mark.parametrize("token", ["nonsense", "!!!", "bm90OjE="])
def test_a_made_up_token_is_refused(cloud: EcsCloud, token: str) -> None:
    with refused("InvalidParameterException", "token"):
        cloud.client.list_tasks(cluster=CLUSTER, nextToken=token)


def test_started_by_is_the_only_filter(cloud: EcsCloud) -> None:
    cloud.register()
    cloud.define()
    mine = cloud.run(startedBy="plan-1")["tasks"][0]["taskArn"]
    cloud.run(startedBy="plan-2")
    assert cloud.client.list_tasks(cluster=CLUSTER, startedBy="plan-1")["taskArns"] == [mine]
    assert cloud.client.list_tasks(cluster=CLUSTER, startedBy="plan-3")["taskArns"] == []
    with refused("InvalidParameterException", "only filter"):
        cloud.client.list_tasks(cluster=CLUSTER, startedBy="plan-1", family="digits")


def test_tasks_are_listed_by_family_and_by_instance(cloud: EcsCloud) -> None:
    one, two = cloud.register(), cloud.register()
    cloud.define("digits")
    cloud.define("other")
    a = cloud.run_on(one, "digits")["tasks"][0]["taskArn"]
    b = cloud.run_on(two, "other")["tasks"][0]["taskArn"]
    c = cloud.run_on(two, "digits")["tasks"][0]["taskArn"]
    listed = cloud.client.list_tasks(cluster=CLUSTER, containerInstance=two["containerInstanceArn"])
    assert listed["taskArns"] == [b, c]
    assert cloud.client.list_tasks(cluster=CLUSTER, family="digits")["taskArns"] == [a, c]
    with refused("InvalidParameterException", "container instance was not found"):
        cloud.client.list_tasks(cluster=CLUSTER, containerInstance="0" * 32)
    with refused("ServiceNotFoundException"):
        cloud.client.list_tasks(cluster=CLUSTER, serviceName="web")


# --- tags ----------------------------------------------------------------------------------------------------------


def test_tags_come_from_the_call_and_if_wanted_from_the_definition(cloud: EcsCloud) -> None:
    cloud.register()
    cloud.define(tags=[{"key": "team", "value": "vision"}, {"key": "run", "value": "old"}])
    own = [{"key": "run", "value": "new"}]
    assert cloud.run(tags=own)["tasks"][0]["tags"] == own
    both = cloud.run(tags=own, propagateTags="TASK_DEFINITION")["tasks"][0]["tags"]
    assert both == [{"key": "run", "value": "new"}, {"key": "team", "value": "vision"}]


def test_tags_are_added_replaced_listed_and_removed(cloud: EcsCloud, started: dict[str, Any]) -> None:
    arn = started["taskArn"]
    fresh = [{"key": "team", "value": "sound"}, {"key": "a", "value": "b"}]
    cloud.client.tag_resource(resourceArn=arn, tags=fresh)
    cloud.client.untag_resource(resourceArn=arn, tagKeys=["a", "not-there"])
    assert cloud.client.list_tags_for_resource(resourceArn=arn)["tags"] == [{"key": "team", "value": "sound"}]


def test_clusters_definitions_and_instances_have_tags_too(cloud: EcsCloud) -> None:
    cluster = cloud.client.describe_clusters(clusters=[CLUSTER])["clusters"][0]["clusterArn"]
    for arn in (cluster, cloud.register()["containerInstanceArn"], cloud.define()):
        cloud.client.tag_resource(resourceArn=arn, tags=[{"key": "a", "value": "b"}])
        assert cloud.client.list_tags_for_resource(resourceArn=arn)["tags"] == [{"key": "a", "value": "b"}]
    with refused("InvalidParameterException", "not found"):
        cloud.client.list_tags_for_resource(resourceArn=cluster.replace(CLUSTER, "nowhere"))
    with refused("InvalidParameterException", "not found"):
        cloud.client.list_tags_for_resource(resourceArn=cloud.define() + "0")


@pytest.mark.parametrize(
    "tags",
    [
        [{"key": "k", "value": "v" * 257}],
        [{"key": "k" * 129, "value": "v"}],
        [{"key": "AWS:k", "value": "v"}],
        [{"key": "k", "value": "1"}, {"key": "k", "value": "2"}],
        [{"key": str(number), "value": ""} for number in range(51)],
    ],
)
def test_bad_tags_are_refused(cloud: EcsCloud, started: dict[str, Any], tags: list[dict[str, str]]) -> None:
    with refused("InvalidParameterException"):
        cloud.client.tag_resource(resourceArn=started["taskArn"], tags=tags)
