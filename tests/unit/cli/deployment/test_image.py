"""`argosy image`: AMIs with an image in them, in an EC2 whose requests and replies have botocore's shapes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from argosy.cli.deployment.account import CELL_CHECKS
from argosy.cli.deployment.checked_account import CheckedAccount
from argosy.cli.session import Session, Tools
from argosy.client.aws_clients import Connection
from argosy.client.baking.bake import BakeOrder
from argosy.client.baking.bake import bake as bake_one
from argosy.client.baking.recipes import recipes
from argosy.settings.amis import newest_ami_parameter
from argosy.settings.settings import load_settings
from tests.fakes.ami_cloud import DIGEST, ECS_AMI, OWN_AMI, AmiCloud, Machine, holds, tags_of
from tests.fakes.cli import World

ECR = "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/train:7"
Script = list[tuple[float, str]]


def world_of(cloud: AmiCloud) -> World:
    world = World(others={"ec2": cloud.client}, on_sleep=cloud.sleep)
    world.parameters.values |= {newest_ami_parameter(kind): f"ami-newest-{kind}" for kind in ("cpu", "gpu")}
    return world


def bake(cloud: AmiCloud, *words: str, image: str = ECR, types: str = "*") -> Any:
    return world_of(cloud).argosy("image", "bake", image, "--type", types, "--yes", *words)


def made(cloud: AmiCloud) -> list[Any]:
    return [each for each in cloud.images.values() if each["OwnerId"] == "self"]


def test_an_instance_of_the_cheapest_type_becomes_an_ami_and_is_terminated() -> None:
    cloud = AmiCloud({"c5.2xlarge": (ECS_AMI, 60), "c5.large": (ECS_AMI, 40), "m5.large": (ECS_AMI, 30)})
    result = bake(cloud, types="c5.*")
    assert result.exit_code == 0, result.output
    [machine], [ami] = cloud.machines.values(), made(cloud)
    asked = machine.request
    assert (asked["InstanceType"], asked["ImageId"]) == ("c5.large", ECS_AMI)
    assert (asked["IamInstanceProfile"], asked["SecurityGroupIds"]) == ({"Name": "argosy-bake"}, ["sg-1"])
    assert asked["InstanceInitiatedShutdownBehavior"] == "stop"
    assert asked["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] == 30, "each type of the kind can start from it"
    assert "argosy:stage" not in machine.tags, "the controller would treat the instance as part of the cluster"
    assert (machine.tags["team"], machine.tags["argosy:bake"]) == ("vision", "main")
    tags = tags_of(ami["Tags"])
    assert (tags["argosy:stage"], tags["argosy:image"], tags["argosy:digest"]) == ("main", ECR, DIGEST)
    assert (tags["argosy:base-ami"], tags["argosy:base-from"], tags["team"]) == (ECS_AMI, "ecs-optimized", "vision")
    assert json.dumps({"amis": {"us-east-1": {"cpu": ami["ImageId"]}}}) in result.stdout
    assert "make deploy" in result.stdout
    assert "argosy explain" in result.stdout
    assert (
        "cpu: a c5.large for about 15 minutes, 0.02 USD; then a snapshot of at most 30 GiB, 1.50 USD" in result.stderr
    )
    assert not cloud.alive()


def test_each_kind_among_the_types_gets_an_ami_at_the_same_time() -> None:
    cloud = AmiCloud({"c5.large": (ECS_AMI, 30), "g4dn.xlarge": (OWN_AMI, 100), "c7g.large": (ECS_AMI, 30)})
    world = world_of(cloud)
    reply = world.document("image", "bake", "python:3.12", "--type", "*", "--yes")
    assert reply["setting"]["amis"]["us-east-1"].keys() == {"cpu", "gpu", "cpuArm64"}
    assert {each["kind"]: each["baseAmi"] for each in reply["made"]}["gpu"] == OWN_AMI
    assert sum(world.slept) < 600, "160 s until one has stopped, 300 s for its AMI"


def test_one_kind_that_fails_costs_the_others_nothing() -> None:
    def behaves(request: Any) -> Script:
        fault = "argosy bake: failed: the image is for amd64, and this instance is arm64"
        return [(50.0, fault), (60.0, "stopped")] if request["InstanceType"] == "c7g.large" else holds(request)

    cloud = AmiCloud({"c5.large": (ECS_AMI, 30), "c7g.large": (ECS_AMI, 30)}, behaves=behaves)
    result = bake(cloud, "--json")
    reply = json.loads(result.stdout)
    assert result.exit_code == 3
    assert reply["setting"]["amis"]["us-east-1"].keys() == {"cpu"}
    assert "is for amd64, and this instance is arm64" in reply["failed"]["cpu_arm64"]["details"][0]
    assert "cpu_arm64: The instance did not pull the image" in result.stderr
    assert not cloud.alive()


def test_the_next_type_is_taken_where_ec2_has_no_room_or_quota_and_its_words_are_kept() -> None:
    pools = {"c5.large": (ECS_AMI, 30), "c5.xlarge": (ECS_AMI, 30), "c5.2xlarge": (ECS_AMI, 30)}
    refused = {"c5.large": "InsufficientInstanceCapacity", "c5.xlarge": "VcpuLimitExceeded"}
    cloud = AmiCloud(pools, refused)
    assert bake(cloud).exit_code == 0
    assert [each.request["InstanceType"] for each in cloud.machines.values()] == ["c5.2xlarge"]
    cloud = AmiCloud(pools, {**refused, "c5.2xlarge": "Unsupported"})
    result = bake(cloud)
    assert (result.exit_code, cloud.machines) == (3, {})
    for name in pools:
        assert f"no {name} for you" in result.stderr


@pytest.mark.parametrize(
    ("code", "step"),
    [("UnauthorizedOperation", "docs/reference/rights.md"), ("InvalidParameterValue", "argosy doctor")],
)
def test_another_refusal_of_a_launch_ends_the_bake(code: str, step: str) -> None:
    cloud = AmiCloud({"c5.large": (ECS_AMI, 30), "c5.xlarge": (ECS_AMI, 30)}, failing={"RunInstances": code})
    result = bake(cloud)
    assert result.exit_code == 3
    assert "AWS's own words" in result.stderr
    assert step in result.stderr
    assert not cloud.machines


def never(_: Any) -> Script:
    return [(40.0, "argosy bake: something")]


def silent(_: Any) -> Script:
    return [(60.0, "stopped")]


def taken(_: Any) -> Script:
    return [(60.0, "terminated")]


@pytest.mark.parametrize(
    ("cloud", "says"),
    [
        (AmiCloud(behaves=never), "has not stopped in 55 minutes"),
        (AmiCloud(behaves=silent), "did not pull the image"),
        (AmiCloud(behaves=taken), "was ended by another: Server.SpotInstanceTermination"),
        (AmiCloud(failing={"CreateImage": "ResourceLimitExceeded"}), "AWS's own words"),
        (AmiCloud(ami_state="failed"), "is failed"),
        (AmiCloud(ami_s=1e9), "is not available after 60 minutes"),
    ],
    ids=["never stops", "stops without a line", "ended by another", "no AMI", "failed AMI", "slow AMI"],
)
def test_whatever_goes_wrong_the_instance_is_terminated_and_the_reason_said(cloud: AmiCloud, says: str) -> None:
    result = bake(cloud)
    assert result.exit_code == 3
    assert says in result.stderr
    assert not cloud.alive()


@pytest.mark.parametrize("after_s", [20.0, 260.0], ids=["while it pulls", "while the AMI is made"])
def test_ctrl_c_terminates_the_instance(after_s: float) -> None:
    cloud = AmiCloud()
    world = world_of(cloud)

    def interrupted(seconds: float) -> None:
        cloud.sleep(seconds)
        if sum(world.slept) >= after_s:
            raise KeyboardInterrupt

    world.on_sleep = interrupted
    result = world.argosy("image", "bake", ECR, "--type", "*", "--yes")
    assert (result.exit_code, cloud.alive(), len(cloud.machines)) == (130, [], 1)


def test_an_instance_whose_launch_got_no_reply_is_found_and_terminated() -> None:
    cloud = AmiCloud(failing={"lost reply": "yes"})
    other = Machine({"TagSpecifications": [{"Tags": [{"Key": "argosy:bake", "Value": "main"}]}]}, cloud.now, [])
    cloud.machines["i-another-bake"] = other
    assert bake(cloud).exit_code == 3
    assert cloud.alive() == ["i-another-bake"]


def test_an_instance_that_cannot_be_terminated_is_named() -> None:
    cloud = AmiCloud(failing={"TerminateInstances": "UnauthorizedOperation"})
    result = bake(cloud)
    assert result.exit_code == 0
    assert "could not be terminated" in result.stderr
    assert "It stops by itself" in result.stderr
    [name] = cloud.alive()
    assert f"{name} bakes {ECR}" in world_of(cloud).argosy("image", "list").stdout
    cloud.failing.clear()
    assert "is terminated" in world_of(cloud).argosy("image", "delete", name).stdout
    assert not cloud.alive()


def test_the_console_is_read_without_nitro_and_when_it_comes_late() -> None:
    def late(request: Any) -> Script:
        [(_, line), _] = holds(request)
        return [(60.0, "stopped"), (200.0, line)]

    for cloud in (AmiCloud(nitro=False), AmiCloud(behaves=late)):
        assert bake(cloud).exit_code == 0
        assert len(made(cloud)) == 1


def test_baking_again_starts_from_awss_newest_ami_and_from_an_own_one_as_it_is() -> None:
    for below, then in ((ECS_AMI, "ami-newest-cpu"), (OWN_AMI, OWN_AMI)):
        cloud = AmiCloud({"c5.large": (below, 30)})
        assert bake(cloud).exit_code == 0
        [first] = made(cloud)
        cloud.pools["c5.large"] = (first["ImageId"], 30)
        assert bake(cloud).exit_code == 0
        assert [each.request["ImageId"] for each in cloud.machines.values()] == [below, then]


def test_an_ami_is_listed_and_deleted_with_its_snapshot_unless_instances_start_from_it() -> None:
    cloud = AmiCloud()
    world = world_of(cloud)
    assert "No AMI of us-east-1 holds an image" in world.argosy("image", "list").stdout
    assert bake(cloud).exit_code == 0
    [name] = [each["ImageId"] for each in made(cloud)]
    cloud.pools["c5.large"] = (name, 30)
    assert [each["inUse"] for each in world.document("image", "list")["amis"]] == [True]
    refused = world.argosy("image", "delete", name)
    assert (refused.exit_code, f"Instances start from {name}" in refused.stderr) == (2, True)
    cloud.pools["c5.large"] = (ECS_AMI, 30)
    row = world.argosy("image", "list").stdout.splitlines()[1].split()
    assert row[:4] == [name, "cpu", ECR, ECS_AMI]
    assert world.document("image", "delete", name) == {"deleted": name}
    assert not made(cloud)
    assert not cloud.snapshots


def test_an_ami_of_others_is_not_deleted_and_a_snapshot_that_stays_is_named() -> None:
    cloud = AmiCloud(failing={"DeleteSnapshot": "UnauthorizedOperation"})
    world = world_of(cloud)
    result = world.argosy("image", "delete", ECS_AMI)
    assert (result.exit_code, ECS_AMI in cloud.images) == (2, True)
    assert bake(cloud).exit_code == 0
    [name] = [each["ImageId"] for each in made(cloud)]
    result = world.argosy("image", "delete", name)
    assert result.exit_code == 3
    assert f"aws ec2 delete-snapshot --snapshot-id {next(iter(cloud.snapshots))}" in result.stderr


Words = tuple[str, ...]
TYPES: Words = ("--type", "*")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((ECR, *TYPES), "add --yes to agree"),
        ((ECR, *TYPES, "--yes", "--endpoint-url", "http://127.0.0.1:4566"), "Local mode has no AMIs"),
        ((ECR, *TYPES, "--yes", "--cell", "eu-west-1"), "There is no cell eu-west-1"),
        (("Upper; rm -rf /", *TYPES, "--yes"), "is not the name of an image"),
        (("argosy/nothing", *TYPES, "--yes"), "The deployment has no image argosy/nothing"),
        ((ECR, "--type", "p5*", "--yes"), "No fleet in us-east-1 has a type that matches 'p5*'"),
    ],
)
def test_what_cannot_be_baked_is_refused_before_anything_is_launched(words: Words, says: str) -> None:
    cloud = AmiCloud()
    result = world_of(cloud).argosy("image", "bake", *words)
    assert (result.exit_code, cloud.machines) == (2, {})
    assert says in result.stderr


def test_an_image_that_the_deployment_published_is_baked_by_its_address() -> None:
    cloud = AmiCloud()
    world = world_of(cloud)
    world.parameters.values["/argosy/images/digits"] = ECR
    assert world.argosy("image", "bake", "argosy/digits", *TYPES, "--yes").exit_code == 0
    [machine] = cloud.machines.values()
    assert machine.tags["argosy:image"] == ECR


@pytest.mark.parametrize(("typed", "starts"), [("y\n", True), ("n\n", False)])
def test_a_person_is_asked(typed: str, starts: bool) -> None:
    cloud = AmiCloud()
    world = world_of(cloud)
    world.is_terminal, world.typed = True, typed
    result = world.argosy("image", "bake", ECR, *TYPES)
    assert (result.exit_code, bool(cloud.machines)) == ((0, True) if starts else (2, False))


def test_the_doctor_says_when_aws_has_a_newer_ami_than_the_one_below_a_baked_one() -> None:
    cloud = AmiCloud()
    assert bake(cloud, types="c5.*").exit_code == 0
    [name] = [each["ImageId"] for each in made(cloud)]
    world, check = world_of(cloud), CELL_CHECKS["baked AMI"]
    session = Session(Tools(world.client), Connection())
    pinned = CheckedAccount(session, load_settings({"amis": {"us-east-1": {"cpu": name}}}), "123456789012")
    (finding,) = check(pinned, "us-east-1")
    assert (finding.state, "AWS's newest is ami-newest-cpu" in finding.says) == ("note", True)
    assert finding.type_this == f"argosy image bake {ECR} --type 'c5.*' --cell us-east-1"
    world.parameters.values[newest_ami_parameter("cpu")] = ECS_AMI
    assert [each.state for each in check(pinned, "us-east-1")] == ["ok"]
    assert check(CheckedAccount(session, load_settings({}), "123456789012"), "us-east-1") == []


def test_two_bakes_at_once_do_not_end_each_others_instances() -> None:
    cloud = AmiCloud()
    [recipe] = recipes(cloud.client, None, "main", "us-east-1", "*")
    one, other = (
        bake_one(cloud.client, recipe, BakeOrder("argosy", "main", ECR, "*", token, lambda: cloud.now, lambda _: None))
        for token in ("a", "b")
    )
    next(one)
    next(other)
    one.close()
    assert cloud.alive() == [list(cloud.machines)[1]]
    for _ in other:
        cloud.sleep(100.0)
    assert [len(made(cloud)), cloud.alive()] == [1, []]
    assert len({each.request["ClientToken"] for each in cloud.machines.values()}) == 2
