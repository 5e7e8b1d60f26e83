"""Do custom attributes of container instances behave as on ECS?"""

from __future__ import annotations

import pytest

from tests.fakes.ecs_clouds import CLUSTER, EcsCloud, refused


def put(cloud: EcsCloud, arn: str, name: str, value: str | None = None) -> None:
    attribute = {"name": name, "targetId": arn} if value is None else {"name": name, "value": value, "targetId": arn}
    cloud.client.put_attributes(cluster=CLUSTER, attributes=[attribute])


def values(cloud: EcsCloud, arn: str) -> dict[str, str | None]:
    return {each["name"]: each.get("value") for each in cloud.instance(arn)["attributes"]}


def test_attributes_are_put_found_and_deleted(cloud: EcsCloud) -> None:
    one, two = (cloud.register()["containerInstanceArn"] for _ in range(2))
    put(cloud, one, "stack", "prod")
    put(cloud, two[-32:], "stack", "test")
    put(cloud, two, "marked")
    find = cloud.client.list_attributes
    named = find(cluster=CLUSTER, targetType="container-instance", attributeName="stack")["attributes"]
    assert {(each["targetId"], each["value"]) for each in named} == {(one, "prod"), (two, "test")}
    valued = find(cluster=CLUSTER, targetType="container-instance", attributeName="stack", attributeValue="prod")
    assert [each["targetId"] for each in valued["attributes"]] == [one]
    assert values(cloud, two)["marked"] is None
    attribute = {"name": "stack", "value": "other", "targetId": one}
    assert cloud.client.delete_attributes(cluster=CLUSTER, attributes=[attribute])["attributes"] == []
    cloud.client.delete_attributes(cluster=CLUSTER, attributes=[{"name": "stack", "targetId": one}])
    assert "stack" not in values(cloud, one)


def test_every_built_in_attribute_is_listed(cloud: EcsCloud) -> None:
    cloud.register()
    pages = cloud.client.get_paginator("list_attributes").paginate(cluster=CLUSTER, targetType="container-instance")
    names = {each["name"] for page in pages for each in page["attributes"]}
    assert {"ecs.instance-type", "ecs.availability-zone", "ecs.ami-id"} <= names


@pytest.mark.parametrize(
    ("name", "value"), [("a b", "x"), ("x" * 129, "x"), ("ecs.mine", "x"), ("a", " x"), ("a", "x" * 129), ("a", "x,y")]
)
def test_a_bad_attribute_is_refused_and_none_of_the_call_is_done(cloud: EcsCloud, name: str, value: str) -> None:
    arn = cloud.register()["containerInstanceArn"]
    both = [{"name": "good", "value": "x", "targetId": arn}, {"name": name, "value": value, "targetId": arn}]
    with refused("InvalidParameterException"):
        cloud.client.put_attributes(cluster=CLUSTER, attributes=both)
    assert "good" not in values(cloud, arn)


def test_an_instance_has_ten_custom_attributes_at_most(cloud: EcsCloud) -> None:
    arn = cloud.register()["containerInstanceArn"]
    for number in range(10):
        put(cloud, arn, f"a{number}", "x")
    put(cloud, arn, "a0", "changed")
    with refused("AttributeLimitExceededException"):
        put(cloud, arn, "a10", "x")


def test_attributes_without_a_target_and_built_in_ones_are_refused(cloud: EcsCloud) -> None:
    arn = cloud.register()["containerInstanceArn"]
    with refused("TargetNotFoundException"):
        put(cloud, arn[:-32] + "0" * 32, "a", "x")
    with refused("InvalidParameterException", "1 to 10"):
        cloud.client.put_attributes(cluster=CLUSTER, attributes=[])
    with refused("InvalidParameterException", "deleted"):
        attribute = {"name": "ecs.instance-type", "targetId": arn}
        cloud.client.delete_attributes(cluster=CLUSTER, attributes=[attribute])
    with refused("InvalidParameterException", "together with a name"):
        cloud.client.list_attributes(cluster=CLUSTER, targetType="container-instance", attributeValue="x")
