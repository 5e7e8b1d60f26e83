"""The AMIs that hold an image: which there are, what they are made from, and their end.

Tags say everything: stage, kind, image, digest, and the AMI below. Argosy's state does not know of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from argosy.client.errors import ArgosyError, InvalidInput, error_code

JSON = Mapping[str, Any]
STAGE = "argosy:stage"
KIND, IMAGE, DIGEST, TYPES = "argosy:kind", "argosy:image", "argosy:digest", "argosy:types"
BASE, BASE_FROM = "argosy:base-ami", "argosy:base-from"
BAKES = (
    "argosy:bake"  # of an instance: the stage. Not STAGE, or the controller and the teardown would take it for theirs
)
ECS_OPTIMISED = "ecs-optimized"  # value of BASE_FROM
_ECS_NAME = "al2023-ami-ecs-"  # begins the names of the AMIs to which AWS's parameters lead
NOT_ENDED = {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}


@dataclass(frozen=True)
class BakedAmi:
    """kind: of the setting `amis`. types: the glob that it was baked for. state: EC2's, such as available."""

    ami_id: str
    kind: str
    image: str
    digest: str
    types: str
    base: str
    base_from: str  # ECS_OPTIMISED, or "" for an AMI of the owner's own
    state: str
    made_at: str
    size_gib: int
    snapshots: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        names = {"ami": self.ami_id, "kind": self.kind, "image": self.image, "digest": self.digest}
        return {**names, "baseAmi": self.base, "state": self.state, "madeAt": self.made_at, "sizeGib": self.size_gib}


@dataclass(frozen=True)
class BakingInstance:
    """An instance that bakes, or that was left behind by a command that was killed."""

    instance_id: str
    state: str
    image: str
    launched_at: str

    def as_json(self) -> dict[str, Any]:
        return {"instance": self.instance_id, "state": self.state, "image": self.image, "launchedAt": self.launched_at}


def paged(ec2: Any, operation: str, member: str, **request: Any) -> Iterator[JSON]:
    """Every item of a listing."""
    for page in ec2.get_paginator(operation).paginate(**request):
        yield from page[member]


def tags_of(thing: JSON) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in thing.get("Tags") or ()}


def of_tag(name: str, value: str) -> JSON:
    return {"Name": f"tag:{name}", "Values": [value]}


def of_id(kind: str, value: str) -> JSON:
    """By a filter: EC2 may not know a new thing by its id yet, and refuses an id that it does not know."""
    return {"Name": f"{kind}-id", "Values": [value]}


def baked_amis(ec2: Any, stage: str) -> list[BakedAmi]:
    """Those of one Region, newest first."""
    named = [of_tag(STAGE, stage), {"Name": "tag-key", "Values": [IMAGE]}]
    found = paged(ec2, "describe_images", "Images", Owners=["self"], Filters=named)
    return sorted(map(_ami, found), key=lambda each: each.made_at, reverse=True)


def _ami(view: JSON) -> BakedAmi:
    tags = tags_of(view)
    disks = [each["Ebs"] for each in view.get("BlockDeviceMappings") or () if "Ebs" in each]
    return BakedAmi(
        ami_id=view["ImageId"],
        kind=tags.get(KIND, ""),
        image=tags[IMAGE],
        digest=tags.get(DIGEST, ""),
        types=tags.get(TYPES, ""),
        base=tags.get(BASE, ""),
        base_from=tags.get(BASE_FROM, ""),
        state=view["State"],
        made_at=view.get("CreationDate", ""),
        size_gib=sum(disk.get("VolumeSize", 0) for disk in disks),
        snapshots=tuple(disk["SnapshotId"] for disk in disks if disk.get("SnapshotId")),
    )


def base_of(ec2: Any, ami: str, newest: Callable[[], str | None]) -> dict[str, str]:
    """Tags that name the AMI to start from: `ami`, or the one below it if it was baked. An ECS-optimised one below is
    replaced by AWS's newest, so that baking again brings AWS's changes. newest: its id; None = AWS names none."""
    [view, *_] = [*paged(ec2, "describe_images", "Images", Filters=[of_id("image", ami)]), {}]
    tags = tags_of(view)
    if not tags.get(BASE):
        is_ecs = view.get("ImageOwnerAlias") == "amazon" and view.get("Name", "").startswith(_ECS_NAME)
        return {BASE: ami, BASE_FROM: ECS_OPTIMISED if is_ecs else ""}
    is_ecs = tags.get(BASE_FROM) == ECS_OPTIMISED
    return {BASE: (is_ecs and newest()) or tags[BASE], BASE_FROM: tags.get(BASE_FROM, "")}


def newest_templates(ec2: Any) -> dict[str, JSON]:
    """The newest version of every launch template of the Region, by id and by name."""
    found = list(paged(ec2, "describe_launch_template_versions", "LaunchTemplateVersions", Versions=["$Latest"]))
    by_id = {each["LaunchTemplateId"]: each["LaunchTemplateData"] for each in found}
    return {**{each["LaunchTemplateName"]: each["LaunchTemplateData"] for each in found}, **by_id}


def instances(ec2: Any, *filters: JSON) -> list[JSON]:
    found = paged(ec2, "describe_instances", "Reservations", Filters=filters)
    return [each for reservation in found for each in reservation["Instances"]]


def baking_instances(ec2: Any, stage: str) -> list[BakingInstance]:
    """Of one Region, those that have not ended."""
    return [
        BakingInstance(
            each["InstanceId"], each["State"]["Name"], tags_of(each).get(IMAGE, ""), each["LaunchTime"].isoformat()
        )
        for each in instances(ec2, of_tag(BAKES, stage), NOT_ENDED)
    ]


def delete(ec2: Any, stage: str, wanted: str) -> BakedAmi | BakingInstance | None:
    """Ends a baked AMI with its snapshots, or an instance that bakes. None = it is not of this Region and stage. Raises
    InvalidInput for an AMI from which fleets launch, and AWS's faults."""
    for instance in baking_instances(ec2, stage):
        if instance.instance_id == wanted:
            ec2.terminate_instances(InstanceIds=[wanted])
            return instance
    found = next((each for each in baked_amis(ec2, stage) if each.ami_id == wanted), None)
    if found is None:
        return None
    if wanted in {each.get("ImageId") for each in newest_templates(ec2).values()}:
        says = f"Instances start from {wanted}: a launch template's newest version names it."
        step = (
            f"take it out of `amis` in cdk.json, or name another AMI for {found.kind}, and `make deploy`; then delete"
        )
        raise InvalidInput(says, next_step=step)
    ec2.deregister_image(ImageId=wanted)
    for snapshot in found.snapshots:
        _delete_snapshot(ec2, snapshot)
    return found


def _delete_snapshot(ec2: Any, snapshot: str) -> None:
    """Once its AMI is gone nothing lists it any more, so a refusal says how to delete it."""
    try:
        ec2.delete_snapshot(SnapshotId=snapshot)
    except Exception as fault:
        if not error_code(fault):
            raise
        step = f"aws ec2 delete-snapshot --snapshot-id {snapshot}"
        raise ArgosyError(f"The AMI is gone, but its snapshot {snapshot} is not: {fault}", next_step=step) from fault
