"""The pools, targets and tags of a CreateFleet or ModifyFleet, checked."""

from __future__ import annotations

from typing import Any

from argosy.emulator.ec2.ledger import Ec2Ledger
from argosy.emulator.ec2.records import CapacityPool
from argosy.emulator.operations import Refusal

JSON = dict[str, Any]

MAX_TARGET = 10_000
MAX_CONFIGS = 50
MAX_OVERRIDES = 300  # over all launch templates


def read_pools(ledger: Ec2Ledger, configs: list[JSON]) -> list[CapacityPool]:
    """Every override is one pool. Raises Refusal."""
    if not 1 <= len(configs) <= MAX_CONFIGS:
        raise Refusal("InvalidParameterValue", f"Give 1 to {MAX_CONFIGS} launch template configurations.")
    pools = [_pool(ledger, config, override) for config in configs for override in config.get("Overrides") or ()]
    if not 1 <= len(pools) <= MAX_OVERRIDES:
        raise Refusal(
            "InvalidParameterValue", f"Give 1 to {MAX_OVERRIDES} overrides, each with an instance type and zone."
        )
    return pools


def check_offered(ledger: Ec2Ledger, pools: list[CapacityPool]) -> None:
    """Whether any pool can be launched. Raises Refusal, in words quoted in a pull request of Terraform's provider."""
    if all(pool.name in ledger.withdrawn for pool in pools):
        types = ", ".join(sorted({pool.instance_type for pool in pools}))
        message = f"Invalid: Parameter: InstanceTypes. Unsupported instancetypes specified: {types}"
        raise Refusal("InvalidFleetConfig", message)


def read_targets(specification: JSON, default_type: str) -> tuple[int, int]:
    """(spot, on-demand): capacity that is given to neither goes to the default type. Raises Refusal."""
    total = int(specification["TotalTargetCapacity"])
    spot, on_demand = specification.get("SpotTargetCapacity"), specification.get("OnDemandTargetCapacity")
    if spot is None and on_demand is None:
        spot, on_demand = (total, 0) if default_type == "spot" else (0, total)
    elif spot is None:
        spot = total - int(on_demand or 0)
    elif on_demand is None:
        on_demand = total - spot
    spot, on_demand = int(spot), int(on_demand or 0)
    if min(total, spot, on_demand) < 0 or spot + on_demand > total:
        raise Refusal(
            "InvalidParameterValue",
            "The on-demand and spot target capacities must not exceed the total target capacity.",
        )
    if total > MAX_TARGET:
        raise Refusal("InvalidParameterValue", f"The target capacity of a fleet is at most {MAX_TARGET}.")
    rest = total - spot - on_demand
    return (spot + rest, on_demand) if default_type == "spot" else (spot, on_demand + rest)


def read_tags(specifications: list[JSON] | None, kind: str = "maintain") -> dict[str, str]:
    """The fleet's own tags. Instances are tagged by the launch template; only a fleet of type instant could tag them
    too. Raises Refusal."""
    tags: dict[str, str] = {}
    for each in specifications or ():
        if each.get("ResourceType") != "fleet":
            raise Refusal(
                "InvalidParameterValue",
                f"'{each.get('ResourceType')}' is not a valid resource type to tag for a fleet of type {kind}.",
            )
        tags.update({tag["Key"]: tag.get("Value", "") for tag in each.get("Tags") or ()})
    check_tags(tags)
    return tags


def check_tags(tags: dict[str, str]) -> None:
    """At most 50, no reserved prefix. Raises Refusal."""
    if len(tags) > 50:
        raise Refusal("TagLimitExceeded", "The maximum number of Tags for a resource has been reached.")
    for key in tags:
        if key.lower().startswith("aws:"):
            raise Refusal(
                "InvalidParameterValue", f"Tag keys starting with 'aws:' are reserved for internal use: {key}"
            )


def _pool(ledger: Ec2Ledger, config: JSON, override: JSON) -> CapacityPool:
    template = config.get("LaunchTemplateSpecification") or {}
    name = template.get("LaunchTemplateId") or template.get("LaunchTemplateName")
    if not name or not template.get("Version"):
        raise Refusal("MissingParameter", "A launch template's id or name, and its version, are required.")
    if ledger.templates and name not in ledger.templates:
        raise Refusal("InvalidLaunchTemplateId.NotFound", f"The specified launch template, {name}, does not exist.")
    if ledger.templates and template["Version"] not in map(str, range(1, len(ledger.templates[name].image_ids) + 1)):
        raise Refusal("InvalidLaunchTemplateId.VersionNotFound", f"{name} has no version {template['Version']}.")
    instance_type = str(override.get("InstanceType") or "")
    if instance_type not in ledger.catalogue:
        raise Refusal("InvalidParameterValue", f"Invalid value '{instance_type}' for InstanceType.")
    if override.get("WeightedCapacity") not in (None, 1, 1.0):
        raise Refusal("UnsupportedOperation", "Weighted capacity is not available here.")
    return CapacityPool(instance_type, _zone(ledger, override), str(name), str(template["Version"]))


def _zone(ledger: Ec2Ledger, override: JSON) -> str:
    zone, subnet = override.get("AvailabilityZone"), override.get("SubnetId")
    by_subnet = {ledger.subnet(each): each for each in ledger.zones}
    if subnet is not None and subnet not in by_subnet:
        raise Refusal("InvalidSubnetID.NotFound", f"The subnet ID '{subnet}' does not exist")
    zone = zone or by_subnet.get(subnet or "", ledger.zones[0])
    if zone not in ledger.zones:
        raise Refusal("InvalidParameterValue", f"Invalid availability zone: [{zone}]")
    return str(zone)
