"""The emulated target groups answer as moto's do, to the calls that Argosy makes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from argosy.emulator.botocore_check import SimulatedClient
from argosy.emulator.elbv2 import TargetGroupsModel
from argosy.simulation.world import target_group_arn

GONE = target_group_arn("us-east-1").replace("web", "gone")


@pytest.fixture(params=["ours", "moto"])
def group(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, str, list[str]]]:
    """A client, the ARN of a target group, and instances."""
    if request.param == "ours":
        model = TargetGroupsModel()
        model.add_group(target_group_arn("us-east-1"))
        names = [f"i-0123456789abcdef{number}" for number in range(2)]
        yield SimulatedClient(model, "elbv2"), target_group_arn("us-east-1"), names
        return
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        ec2, elbv2 = (boto3.client(name, region_name="us-east-1") for name in ("ec2", "elbv2"))
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        made = elbv2.create_target_group(Name="web", Protocol="HTTP", Port=80, VpcId=vpc, TargetType="instance")
        image = ec2.describe_images()["Images"][0]["ImageId"]
        instances = ec2.run_instances(ImageId=image, MinCount=2, MaxCount=2)["Instances"]
        yield elbv2, made["TargetGroups"][0]["TargetGroupArn"], [each["InstanceId"] for each in instances]


def registered(client: Any, arn: str) -> set[tuple[str, int]]:
    found = client.describe_target_health(TargetGroupArn=arn)["TargetHealthDescriptions"]
    return {(each["Target"]["Id"], each["Target"]["Port"]) for each in found}


def test_both_calls_are_safe_to_do_twice(group: tuple[Any, str, list[str]]) -> None:
    client, arn, (first, second) = group
    targets = [{"Id": first, "Port": 32768}, {"Id": first, "Port": 32769}, {"Id": second, "Port": 32768}]
    for _ in range(2):
        client.register_targets(TargetGroupArn=arn, Targets=targets)
    assert registered(client, arn) == {(first, 32768), (first, 32769), (second, 32768)}
    for _ in range(2):
        client.deregister_targets(TargetGroupArn=arn, Targets=targets[2:])  # moto takes all ports of an instance out
    assert registered(client, arn) == {(first, 32768), (first, 32769)}


@pytest.mark.parametrize("call", ["register_targets", "deregister_targets"])
def test_a_group_that_is_gone_is_named_by_its_code(group: tuple[Any, str, list[str]], call: str) -> None:
    client, _, (first, _) = group
    with pytest.raises(ClientError) as error:
        getattr(client, call)(TargetGroupArn=GONE, Targets=[{"Id": first, "Port": 80}])
    assert error.value.response["Error"]["Code"] == "TargetGroupNotFound"
