"""One AMI: launch an instance that pulls the image and stops, make an AMI of it, and terminate it.

`bake` is a generator that stops wherever it has to wait, so that several AMIs are made at the same time. However it
ends, closing it included, its instance is terminated; one that a killed command leaves behind stops by itself
(`user_data`), and `argosy image list` shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from argosy.client.baking.image_amis import (
    BAKES,
    BASE,
    DIGEST,
    IMAGE,
    KIND,
    NOT_ENDED,
    STAGE,
    TYPES,
    BakedAmi,
    baked_amis,
    instances,
    of_id,
    of_tag,
    tags_of,
)
from argosy.client.baking.recipes import LaunchPlace, Recipe
from argosy.client.baking.user_data import MOST_MINUTES, held_digest, last_lines, user_data
from argosy.client.errors import ArgosyError, error_code, is_from_aws

POLL_S = 20.0
INSTANCE_S = (MOST_MINUTES + 10) * 60.0  # until it has stopped, at most
CONSOLE_S = 300.0  # for the last lines of an instance that has stopped
AMI_S = 3_600.0
BAKE_ID = "argosy:bake-id"  # of an instance: which command launched it
# A refusal of one type in one zone. Another one may have room, or draw on another quota.
ELSEWHERE = ("InsufficientInstanceCapacity", "InsufficientFreeAddressesInSubnet", "Unsupported", "VcpuLimitExceeded")
ENDED = ("stopped", "shutting-down", "terminated")
Waiting = Generator[str, None, BakedAmi]  # yields what it waits for
Result = tuple[str, BakedAmi | Exception]  # by kind, the AMI or the fault


@dataclass(frozen=True)
class BakeOrder:
    """What all AMIs of one command share. image: its address in a registry. types: the glob that the user gave. token:
    new for each command. now: seconds. say: tells the user a sentence."""

    prefix: str
    stage: str
    image: str
    types: str
    token: str
    now: Callable[[], float]
    say: Callable[[str], object]


def bake(ec2: Any, recipe: Recipe, order: BakeOrder) -> Waiting:
    """Raises ArgosyError and AWS's faults."""
    launched: list[str] = []
    try:
        launched.append(_launch(ec2, recipe, order))
        console = yield from _until_stopped(ec2, launched[0], order)
        digest = held_digest(console)
        if digest is None:
            raise ArgosyError("The instance did not pull the image. Its last lines:", details=last_lines(console))
        return (yield from _ami(ec2, launched[0], recipe, order, digest))
    finally:
        _terminate(ec2, launched, recipe, order)


def bake_all(bakes: Mapping[str, Waiting], order: BakeOrder, sleep: Callable[[float], None]) -> Iterator[Result]:
    """Every result as it comes. All of them are closed at the end, whatever ends it."""
    waiting, phases = dict(bakes), dict.fromkeys(bakes, "")
    try:
        while waiting:
            for kind, each in list(waiting.items()):
                try:
                    phase = next(each)
                except StopIteration as end:
                    yield kind, end.value
                    del waiting[kind]
                except Exception as fault:
                    del waiting[kind]
                    if not (isinstance(fault, ArgosyError) or is_from_aws(fault)):
                        raise
                    yield kind, fault
                else:
                    if phase != phases[kind]:
                        order.say(f"{kind}: {phase}")
                    phases[kind] = phase
            if waiting:
                sleep(POLL_S)
    finally:
        for each in waiting.values():
            each.close()


def _launch(ec2: Any, recipe: Recipe, order: BakeOrder) -> str:
    """The id of the instance, of the cheapest type that EC2 starts."""
    refusals: dict[str, None] = {}
    for number, place in enumerate(recipe.places):
        try:
            reply = ec2.run_instances(**_request(recipe, order, place, number))
        except Exception as fault:
            if error_code(fault) not in ELSEWHERE:
                raise
            refusals[f"{place.instance_type}: {fault}"] = None
            continue
        instance = str(reply["Instances"][0]["InstanceId"])
        order.say(f"{recipe.kind}: {instance} ({place.instance_type}) pulls {order.image}")
        return instance
    step = "name other types with --type, or try again later; `argosy doctor` shows the on-demand quotas"
    raise ArgosyError(f"EC2 starts no instance for {recipe.kind}.", details=list(refusals), next_step=step)


def _request(recipe: Recipe, order: BakeOrder, place: LaunchPlace, number: int) -> dict[str, Any]:
    """RunInstances, on demand: a spot instance of one request cannot be stopped, only terminated. Without the launch
    template: its tags would make the instance one of the controller's."""
    [disk, *_] = recipe.template["BlockDeviceMappings"]
    tags = _tags({**_owners_tags(recipe), **_bakes(recipe, order), IMAGE: order.image, "Name": f"{order.prefix} bake"})
    return {
        "ClientToken": f"{order.token}-{recipe.kind}-{number}",
        "MinCount": 1,
        "MaxCount": 1,
        "ImageId": recipe.base[BASE],
        "InstanceType": place.instance_type,
        "SubnetId": place.subnet,
        "SecurityGroupIds": recipe.template["SecurityGroupIds"],
        "IamInstanceProfile": {"Name": f"{order.prefix}-bake"},
        "InstanceInitiatedShutdownBehavior": "stop",
        "MetadataOptions": {"HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 1},
        "BlockDeviceMappings": [{**disk, "Ebs": {**disk["Ebs"], "VolumeSize": recipe.disk_gib}}],
        "UserData": user_data(order.image),
        "TagSpecifications": [{"ResourceType": each, "Tags": tags} for each in ("instance", "volume")],
    }


def _owners_tags(recipe: Recipe) -> dict[str, str]:
    """The owner's own tags of instances (the setting `tags`)."""
    specifications = recipe.template.get("TagSpecifications") or ()
    found = next((tags_of(each) for each in specifications if each["ResourceType"] == "instance"), {})
    return {name: value for name, value in found.items() if name != STAGE}


def _bakes(recipe: Recipe, order: BakeOrder) -> dict[str, str]:
    return {BAKES: order.stage, BAKE_ID: f"{order.token}-{recipe.kind}"}


def _tags(given: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in given.items()]


def _until_stopped(ec2: Any, instance: str, order: BakeOrder) -> Generator[str, None, str]:
    """The console. It is read while the instance runs, too: EC2 may show the last lines late, or not at all once it has
    stopped."""
    console, state, ends_at = "", "", order.now() + INSTANCE_S
    while state not in ENDED:
        if order.now() >= ends_at:
            says = f"{instance} has not stopped in {INSTANCE_S / 60:.0f} minutes. Its last lines:"
            raise ArgosyError(says, details=last_lines(console))
        yield f"waiting until {instance} has pulled the image and stopped"
        state, reason = _state(ec2, instance)
        console = _console(ec2, instance) or console
    if state != "stopped":
        raise ArgosyError(f"{instance} was ended by another: {reason}.", details=last_lines(console))
    ends_at = order.now() + CONSOLE_S
    while order.now() < ends_at and "argosy bake: " not in console:
        yield f"waiting for the console of {instance}"
        console = _console(ec2, instance) or console
    return console


def _state(ec2: Any, instance: str) -> tuple[str, str]:
    """And the reason; "" for an instance that EC2 does not show yet."""
    found = instances(ec2, of_id("instance", instance))
    if not found:
        return "", ""
    said = (
        found[0].get("StateReason", {}).get("Message") or found[0].get("StateTransitionReason") or "no reason is given"
    )
    return str(found[0]["State"]["Name"]), str(said)


def _console(ec2: Any, instance: str) -> str:
    """Types that are not built on Nitro refuse `Latest`."""
    try:
        return str(ec2.get_console_output(InstanceId=instance, Latest=True).get("Output", ""))
    except Exception as fault:
        if not error_code(fault):
            raise
        return str(ec2.get_console_output(InstanceId=instance).get("Output", ""))


def _ami(ec2: Any, instance: str, recipe: Recipe, order: BakeOrder, digest: str) -> Waiting:
    about = {STAGE: order.stage, KIND: recipe.kind, IMAGE: order.image, DIGEST: digest, TYPES: order.types}
    tags = _tags({**_owners_tags(recipe), **about, **recipe.base, "Name": f"{order.prefix} {recipe.kind}"})
    reply = ec2.create_image(
        InstanceId=instance,
        Name=f"{order.prefix}-{recipe.kind}-{order.token}",
        Description=order.image,
        TagSpecifications=[{"ResourceType": each, "Tags": tags} for each in ("image", "snapshot")],
    )
    ami, ends_at = str(reply["ImageId"]), order.now() + AMI_S
    while order.now() < ends_at:
        yield f"waiting until {ami} is available"
        found = next((each for each in baked_amis(ec2, order.stage) if each.ami_id == ami), None)
        if found is not None and found.state == "available":
            order.say(f"{recipe.kind}: {ami} holds {order.image}")
            return found
        if found is not None and found.state != "pending":
            raise ArgosyError(f"EC2 did not make the AMI: {ami} is {found.state}.", next_step=_delete(ami))
    raise ArgosyError(f"{ami} is not available after {AMI_S / 60:.0f} minutes.", next_step=_delete(ami))


def _delete(ami: str) -> str:
    return f"`argosy image list`, and `argosy image delete {ami}`"


def _terminate(ec2: Any, launched: list[str], recipe: Recipe, order: BakeOrder) -> None:
    """Also an instance whose launch was interrupted before EC2's reply."""
    try:
        by_tags = [of_tag(name, value) for name, value in _bakes(recipe, order).items()]
        ids = launched or [each["InstanceId"] for each in instances(ec2, *by_tags, NOT_ENDED)]
        if ids:
            ec2.terminate_instances(InstanceIds=ids)
            order.say(f"{recipe.kind}: {ids[0]} is terminated")
    except Exception as fault:
        if not is_from_aws(fault):
            raise
        order.say(
            f"{recipe.kind}: the instance could not be terminated ({fault}). It stops by itself: argosy image list"
        )
