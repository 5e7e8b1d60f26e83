"""The emulated target groups answer Argosy's calls as AWS documents; moto's are tested as far as they do.

botocore's description of the service: "You can register each EC2 instance or IP address with the same target group
multiple times using different ports", and of DeregisterTargets: "If the specified target does not exist, the action
returns successfully." moto 5.2 keeps one port of each instance, and refuses to remove unregistered targets. Tasks
share instances and calls are repeated, so moto cannot represent AWS there, and the deviations are asserted: when moto
is fixed, this test fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from argosy.emulator.botocore_check import SimulatedClient, service_model
from argosy.emulator.elbv2 import TargetGroupsModel
from tests.harness.simulation.world.world import target_group_arn

ARN = target_group_arn("us-east-1")
GONE = ARN.replace("web", "gone")
INSTANCES = ("i-0123456789abcdef0", "i-0123456789abcdef1")
SEVERAL_PORTS = "register each EC2 instance or IP address with the same target group multiple times using different"


class Group:
    """A client, and the ARN of a target group."""

    def __init__(self, client: Any, arn: str) -> None:
        self.client, self.arn = client, arn

    def registered(self) -> set[tuple[str, int]]:
        found = self.client.describe_target_health(TargetGroupArn=self.arn)["TargetHealthDescriptions"]
        return {(each["Target"]["Id"], each["Target"]["Port"]) for each in found}

    def change(self, verb: str, *targets: tuple[str, int]) -> None:
        asked = [{"Id": instance, "Port": port} for instance, port in targets]
        getattr(self.client, f"{verb}_targets")(TargetGroupArn=self.arn, Targets=asked)


def ours() -> Group:
    model = TargetGroupsModel(INSTANCES.__contains__)
    model.add_group(ARN)
    return Group(SimulatedClient(model, "elbv2"), ARN)


@pytest.fixture
def motos(monkeypatch: pytest.MonkeyPatch) -> Iterator[Group]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        elbv2 = boto3.client("elbv2", region_name="us-east-1")
        vpc = boto3.client("ec2", region_name="us-east-1").describe_vpcs()["Vpcs"][0]["VpcId"]
        made = elbv2.create_target_group(Name="web", Protocol="HTTP", Port=80, VpcId=vpc, TargetType="instance")
        yield Group(elbv2, made["TargetGroups"][0]["TargetGroupArn"])  # it accepts unknown instances


@pytest.fixture(params=["ours", "motos"])
def group(request: pytest.FixtureRequest) -> Group:
    found: Group = ours() if request.param == "ours" else request.getfixturevalue("motos")
    return found


def refused(group: Group, verb: str, *targets: tuple[str, int]) -> str:
    with pytest.raises(ClientError) as error:
        group.change(verb, *targets)
    return str(error.value.response["Error"]["Code"])


def test_to_register_twice_is_to_register_once_and_one_instance_goes_alone(group: Group) -> None:
    first, second = ((each, 32768) for each in INSTANCES)
    for _ in range(2):
        group.change("register", first, second)
    assert group.registered() == {first, second}
    group.change("deregister", second)
    assert group.registered() == {first}


@pytest.mark.parametrize("verb", ["register", "deregister"])
def test_a_group_that_is_gone_is_named_by_its_code(group: Group, verb: str) -> None:
    group.arn = GONE
    assert refused(group, verb, (INSTANCES[0], 80)) == "TargetGroupNotFound"


def test_an_instance_has_as_many_targets_as_ports_which_moto_has_not(motos: Group) -> None:
    group = ours()
    targets = [(INSTANCES[0], port) for port in (32768, 32769)]
    group.change("register", *targets)
    assert group.registered() == set(targets)
    group.change("deregister", targets[0])
    assert group.registered() == {targets[1]}
    assert SEVERAL_PORTS in service_model("elbv2").operation_model("RegisterTargets").documentation
    motos.change("register", *((INSTANCES[0], port) for port in (32768, 32769)))
    assert motos.registered() == {(INSTANCES[0], 32769)}  # moto is wrong


def test_to_take_out_what_is_not_in_is_no_fault_which_moto_calls_one(motos: Group) -> None:
    group = ours()
    for _ in range(2):
        group.change("deregister", (INSTANCES[0], 32768), ("i-0123456789abcdef9", 32768))
    said = service_model("elbv2").operation_model("DeregisterTargets").documentation
    assert "If the specified target does not exist, the action returns successfully." in said
    assert refused(motos, "deregister", (INSTANCES[0], 32768)) == "InvalidTarget"  # moto is wrong


def test_an_instance_that_does_not_run_is_refused_with_all_that_are_asked_for_beside_it(group: Group) -> None:
    ended = "i-0123456789abcdef9" if group.arn == ARN else ended_at_motos()
    assert refused(group, "register", (ended, 32768), (INSTANCES[0], 32768)) == "InvalidTarget"
    assert group.registered() == set()


def ended_at_motos() -> str:
    ec2 = boto3.client("ec2", region_name="us-east-1")
    image = ec2.describe_images()["Images"][0]["ImageId"]
    (made,) = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1)["Instances"]
    ec2.stop_instances(InstanceIds=[made["InstanceId"]])
    return str(made["InstanceId"])


def test_a_target_that_is_not_registered_is_unused(group: Group) -> None:
    first, second = INSTANCES
    group.change("register", (first, 32768))
    asked = [{"Id": each, "Port": 32768} for each in (first, second)]
    found = group.client.describe_target_health(TargetGroupArn=group.arn, Targets=asked)["TargetHealthDescriptions"]
    health = {each["Target"]["Id"]: each["TargetHealth"] for each in found}
    assert health[first] == {"State": "healthy"}
    assert (health[second]["State"], health[second]["Reason"]) == ("unused", "Target.NotRegistered")
