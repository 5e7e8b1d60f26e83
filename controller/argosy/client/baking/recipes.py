"""Which AMIs would a bake make, from what, and on which instance?

One for each kind of AMI (the setting `amis`) among the types that match: GPU instances and ARM instances start from
AMIs of their own. Types, subnets and AMIs are those of the deployment's fleets and their launch templates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from argosy.catalogue.lookup import load_catalogue
from argosy.client.baking.image_amis import STAGE, base_of, newest_templates, paged, tags_of
from argosy.client.errors import InvalidInput
from argosy.settings.amis import newest_ami_parameter

INSTANCE_H = 0.25  # measured on no account: boot, a pull of some GB, the snapshot
SNAPSHOT_USD_PER_GIB_MONTH = 0.05  # standard tier, us-east-1: https://aws.amazon.com/ebs/pricing/


@dataclass(frozen=True)
class LaunchPlace:
    """Where an instance of a type can start."""

    instance_type: str
    subnet: str
    usd_per_hour: float  # on demand


@dataclass(frozen=True)
class Recipe:
    """One AMI to make. template: the LaunchTemplateData of a type of the kind, newest version. base: the tags that name
    the AMI to start from. disk_gib: the smallest volume of all types of the kind, because each of them must be able to
    start from the AMI. places: cheapest first."""

    kind: str
    template: Mapping[str, Any]
    base: Mapping[str, str]
    disk_gib: int
    places: tuple[LaunchPlace, ...]

    @property
    def usd(self) -> float:
        return self.places[0].usd_per_hour * INSTANCE_H

    @property
    def most_usd_per_month(self) -> float:
        """If the volume were full: a snapshot holds the blocks that were written."""
        return self.disk_gib * SNAPSHOT_USD_PER_GIB_MONTH


@dataclass(frozen=True)
class _Pool:
    kind: str
    place: LaunchPlace
    template: Mapping[str, Any]

    @property
    def disk_gib(self) -> int:
        return int(self.template["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"])


def recipes(ec2: Any, ssm: Any, stage: str, region: str, pattern: str) -> list[Recipe]:
    """One for each kind among the types that match. Raises InvalidInput if none does, and AWS's faults."""
    pools = _pools(ec2, stage, region)
    chosen = [each for each in pools if fnmatchcase(each.place.instance_type, pattern)]
    if not chosen:
        types = ", ".join(sorted({each.place.instance_type for each in pools})) or "none: is it deployed?"
        raise InvalidInput(
            f"No fleet in {region} has a type that matches {pattern!r}.", next_step=f"its types: {types}"
        )
    return [
        _recipe(ec2, ssm, kind, [each for each in pools if each.kind == kind], chosen)
        for kind in sorted({each.kind for each in chosen})
    ]


def _recipe(ec2: Any, ssm: Any, kind: str, alike: list[_Pool], chosen: list[_Pool]) -> Recipe:
    places = [each.place for each in chosen if each.kind == kind]
    template = next(each.template for each in chosen if each.kind == kind)
    return Recipe(
        kind=kind,
        template=template,
        base=base_of(ec2, template["ImageId"], _newest(ssm, kind)),
        disk_gib=min(each.disk_gib for each in alike),
        places=tuple(sorted(places, key=lambda each: (each.usd_per_hour, each.instance_type, each.subnet))),
    )


def _newest(ssm: Any, kind: str) -> Callable[[], str | None]:
    """AWS publishes no ECS-optimised AMI for ARM with GPUs."""
    if kind == "gpu_arm64":
        return lambda: None
    return lambda: str(ssm.get_parameter(Name=newest_ami_parameter(kind))["Parameter"]["Value"])


def _pools(ec2: Any, stage: str, region: str) -> list[_Pool]:
    """Of the deployment's fleets that have not been deleted."""
    newest, known = newest_templates(ec2), load_catalogue(region)
    found = []
    for fleet in paged(ec2, "describe_fleets", "Fleets"):
        if tags_of(fleet).get(STAGE) != stage or fleet["FleetState"].startswith("deleted"):
            continue
        for config in fleet["LaunchTemplateConfigs"]:
            named = config["LaunchTemplateSpecification"]
            template = newest.get(named.get("LaunchTemplateId") or named["LaunchTemplateName"])
            if template is None:
                continue
            for each in config["Overrides"]:
                kind = known[each["InstanceType"]]
                place = LaunchPlace(kind.name, each["SubnetId"], kind.on_demand_usd_per_hour)
                found.append(_Pool(kind.image, place, template))
    return found
