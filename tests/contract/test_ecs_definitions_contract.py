"""Do task definitions and clusters behave as on ECS?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.ecs_clouds import CLUSTER, EcsCloud, refused


def test_every_registration_is_a_new_revision(cloud: EcsCloud) -> None:
    assert [cloud.define().rpartition(":")[2] for _ in range(3)] == ["1", "2", "3"]
    assert cloud.define("other").endswith(":task-definition/other:1")


def test_a_definition_is_found_by_family_revision_and_arn(cloud: EcsCloud) -> None:
    first, second = cloud.define(), cloud.define()
    describe = cloud.client.describe_task_definition
    for name, arn in (("digits", second), ("digits:1", first), (first, first)):
        assert describe(taskDefinition=name)["taskDefinition"]["taskDefinitionArn"] == arn
    for unknown in ("digits:3", "digits:0", "digits:x", "nothing"):
        with refused("ClientException", "Unable to describe task definition."):
            describe(taskDefinition=unknown)


def test_a_definition_is_shown_with_its_defaults(cloud: EcsCloud) -> None:
    cloud.define(tags=[{"key": "a", "value": "b"}])
    reply = cloud.client.describe_task_definition(taskDefinition="digits", include=["TAGS"])
    container = reply["taskDefinition"]["containerDefinitions"][0]
    assert (container["essential"], container["environment"], container["portMappings"]) == (True, [], [])
    assert reply["tags"] == [{"key": "a", "value": "b"}]
    assert (reply["taskDefinition"]["status"], reply["taskDefinition"]["compatibilities"]) == (
        "ACTIVE",
        ["EXTERNAL", "EC2"],
    )


def test_a_deregistered_revision_stays_describable_and_the_family_falls_back(cloud: EcsCloud) -> None:
    first, second = cloud.define(), cloud.define()
    for _ in range(2):
        gone = cloud.client.deregister_task_definition(taskDefinition="digits:2")["taskDefinition"]
    assert (gone["status"], gone["taskDefinitionArn"]) == ("INACTIVE", second)
    describe = cloud.client.describe_task_definition
    assert describe(taskDefinition="digits")["taskDefinition"]["taskDefinitionArn"] == first
    assert describe(taskDefinition=second)["taskDefinition"]["status"] == "INACTIVE"


@pytest.mark.parametrize(("name", "code"), [("digits", "InvalidParameterException"), ("digits:9", "ClientException")])
def test_only_a_revision_that_exists_can_be_deregistered(cloud: EcsCloud, name: str, code: str) -> None:
    cloud.define()
    with refused(code):
        cloud.client.deregister_task_definition(taskDefinition=name)


def test_definitions_and_families_are_listed(cloud: EcsCloud) -> None:
    arns = [cloud.define("digits"), cloud.define("digits"), cloud.define("digits-gpu")]
    cloud.client.deregister_task_definition(taskDefinition=arns[2])
    listed = cloud.client.list_task_definitions
    assert listed()["taskDefinitionArns"] == arns[:2]
    assert listed(familyPrefix="digits", sort="DESC")["taskDefinitionArns"] == [arns[1], arns[0]]
    assert listed(status="INACTIVE")["taskDefinitionArns"] == [arns[2]]
    pages = list(cloud.client.get_paginator("list_task_definitions").paginate(PaginationConfig={"PageSize": 1}))
    assert [page["taskDefinitionArns"] for page in pages] == [[arns[0]], [arns[1]]]
    families = cloud.client.list_task_definition_families
    assert families(familyPrefix="dig")["families"] == ["digits", "digits-gpu"]
    assert families(status="ACTIVE")["families"] == ["digits"]
    assert families(status="INACTIVE")["families"] == ["digits-gpu"]


GPU = "resourceRequirements"


@pytest.mark.parametrize(
    ("container", "message"),
    [
        ({"memory": None}, "At least one of 'memory' or 'memoryReservation'"),
        ({"memory": 5}, "at least 6 MiB"),
        ({"memory": 10, "memoryReservation": 11}, "must not exceed"),
        ({"image": ""}, "image"),
        ({"name": "a b"}, "name"),
        ({"essential": False}, "essential"),
        ({GPU: [{"type": "GPU", "value": "0"}]}, "positive integer"),
        ({GPU: [{"type": "GPU", "value": "0.3"}]}, "positive integer"),
        ({GPU: [{"type": "GPU", "value": "ALL"}]}, "positive integer"),
        ({"command": ["x" * 65_536]}, "65536"),
    ],
)
def test_a_bad_container_is_refused(cloud: EcsCloud, container: dict[str, Any], message: str) -> None:
    good = {"name": "main", "image": "argosy/digits", "memory": 100}
    changed = {key: value for key, value in {**good, **container}.items() if value is not None}
    with refused("ClientException", message):
        cloud.define(containers=[changed])


@pytest.mark.parametrize(
    "change",
    [
        {"family": "a b"},
        {"containers": []},
        {"containers": [{"name": f"c{number}", "image": "x", "memory": 10} for number in range(11)]},
        {"containers": [{"name": "same", "image": "x", "memory": 10}] * 2},
        {"placementConstraints": [{"type": "memberOf"}]},
        {"placementConstraints": [{"type": "distinctInstance"}]},
        {"cpu": "lots"},
        {"memory": "1 TB"},
    ],
)
def test_a_bad_definition_is_refused(cloud: EcsCloud, change: dict[str, Any]) -> None:
    with refused("ClientException"):
        cloud.define(**change)
    assert cloud.client.list_task_definitions()["taskDefinitionArns"] == []


def test_task_level_memory_will_do_for_the_containers(cloud: EcsCloud) -> None:
    assert cloud.define(containers=[{"name": "main", "image": "argosy/digits"}], memory="512")


# --- clusters ------------------------------------------------------------------------------------------------------


def test_creating_a_cluster_that_exists_answers_it(cloud: EcsCloud) -> None:
    before = cloud.client.describe_clusters(clusters=[CLUSTER])["clusters"][0]
    cloud.register()
    again = cloud.client.create_cluster(clusterName=CLUSTER)["cluster"]
    assert (again["clusterArn"], again["registeredContainerInstancesCount"]) == (before["clusterArn"], 1)


def test_clusters_are_listed_and_described_by_name_or_arn(cloud: EcsCloud) -> None:
    other = cloud.client.create_cluster(clusterName="other", tags=[{"key": "a", "value": "b"}])["cluster"]["clusterArn"]
    assert other in cloud.client.list_clusters()["clusterArns"]
    reply = cloud.client.describe_clusters(clusters=["other", other, "nowhere"], include=["TAGS"])
    assert [each["clusterName"] for each in reply["clusters"]] == ["other", "other"]
    assert reply["clusters"][0]["tags"] == [{"key": "a", "value": "b"}]
    assert reply["failures"] == [{"arn": other.replace("other", "nowhere"), "reason": "MISSING"}]
    assert cloud.client.describe_clusters(clusters=[other])["clusters"][0]["tags"] == []
    assert cloud.client.list_tasks(cluster=other)["taskArns"] == []


@pytest.mark.parametrize("name", ["a b", "x" * 256, "1st"])
def test_a_bad_cluster_name_is_refused(cloud: EcsCloud, name: str) -> None:
    with refused("InvalidParameterException"):
        cloud.client.create_cluster(clusterName=name)


def test_at_most_a_hundred_clusters_are_described(cloud: EcsCloud) -> None:
    with refused("InvalidParameterException"):
        cloud.client.describe_clusters(clusters=["x"] * 101)


def test_a_cluster_in_use_cannot_be_deleted(cloud: EcsCloud) -> None:
    arn = cloud.register()["containerInstanceArn"]
    with refused("ClusterContainsContainerInstancesException"):
        cloud.client.delete_cluster(cluster=CLUSTER)
    cloud.client.deregister_container_instance(cluster=CLUSTER, containerInstance=arn)
    assert cloud.client.delete_cluster(cluster=CLUSTER)["cluster"]["status"] == "INACTIVE"
    assert cloud.client.list_clusters()["clusterArns"] == []
    with refused("ClusterNotFoundException"):
        cloud.client.list_tasks(cluster=CLUSTER)
