"""The deployment's fleets and instances in a simulated EC2, and their cost.

Instances are charged by the second, from launch to end, at the price of their launch, each with a gp3 volume of the
stacks' size and a public IPv4 address. The list prices and the arithmetic are independent of the product: the ledgers
are checked against them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.catalogue.files import document
from argosy.emulator.ec2.fleet_targets import OVER_QUOTA
from argosy.emulator.ec2.records import Ec2Fleet, MachineType
from argosy.emulator.ec2.service import Ec2Instance
from tests.harness.simulation.world.world import World

TEMPLATE = "argosy"  # the launch template that all fleets name
STAGE = "main"
LEAST_S = 60.0  # EC2 charges at least a minute, for volumes too
VOLUME_GB, VOLUME_GB_WITH_GPUS = 60, 150
FREE_MIBPS, USD_OF_MIBPS = 125, 0.5  # above: of a GB's price
MONTH_S = 730 * 3600.0
IPV4_USD_PER_S = 0.005 / 3600
_STAGE_TAG, _POOL_TAG = "argosy:stage", "argosy:pool"


def add_fleets(world: World, types: Sequence[str], zones: Sequence[str]) -> None:
    """One fleet for each type and zone, as the stacks make them."""
    add_image(world, "ami-1")
    for name in types:
        for zone in zones:
            tags: dict[str, Any] = {_STAGE_TAG: STAGE, _POOL_TAG: f"{name}/{zone}"}
            world.add_fleet(name, zone, **tags)


def add_deleted_fleets(world: World) -> None:
    """New fleets in place of those that EC2 deleted because of a limit."""
    for fleet in list(world.ec2.ledger.fleets.values()):
        if fleet_is_ours(fleet) and not fleet.is_live and fleet.short == OVER_QUOTA.sub_type:
            tags: dict[str, Any] = dict(fleet.tags)
            world.add_fleet(fleet.pools[0].instance_type, fleet.pools[0].zone, **tags)


def add_image(world: World, image_id: str) -> None:
    """A version of the launch template that all fleets name."""
    world.ec2.add_launch_template(TEMPLATE, image_id=image_id, tags={_STAGE_TAG: STAGE})


def add_foreign_fleets(world: World, zone: str) -> None:
    """Other people's instances in the same account: one in our cluster, and one that even carries our tag."""
    for stage in ("other", STAGE):
        name = f"stranger-{stage}"
        world.ec2.add_launch_template(name, image_id="ami-2", tags={_STAGE_TAG: stage}, own_tags={})
        world.ec2.create_fleet(
            Type="maintain",
            TargetCapacitySpecification={"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
            LaunchTemplateConfigs=[
                {
                    "LaunchTemplateSpecification": {"LaunchTemplateName": name, "Version": "1"},
                    "Overrides": [{"InstanceType": "c5.xlarge", "AvailabilityZone": zone}],
                }
            ],
        )


def is_ours(world: World, instance: Ec2Instance) -> bool:
    """Whether the instance belongs to a fleet of the deployment; a tag of the instance proves nothing."""
    return fleet_is_ours(world.ec2.ledger.fleets[instance.fleet_id])


def fleet_is_ours(fleet: Ec2Fleet) -> bool:
    return fleet.tags.get(_STAGE_TAG) == STAGE


def is_steered(fleet: Ec2Fleet) -> bool:
    """Whether it is a fleet of the deployment's stacks, and not deleted."""
    return fleet_is_ours(fleet) and fleet.is_live and not fleet.is_instant


class Bill:
    """What EC2 charges for the instances of the deployment's fleets, their volumes and their addresses."""

    def __init__(self, *worlds: World) -> None:
        self._worlds = {world.region: world for world in worlds}
        self.ended: dict[str, tuple[float, float]] = {}
        """Seconds and USD of instances that are gone, by id."""
        for world in worlds:
            world.ec2.on_terminated.append(self._end)

    def usd(self) -> float:
        every = (each for world in self._worlds.values() for each in world.ec2.ledger.instances.values())
        alive = (self._charge(each)[1] for each in every if each.ended_at is None)
        return sum(usd for _, usd in self.ended.values()) + sum(alive)

    def hours(self) -> float:
        """The cost of ended instances."""
        return sum(seconds for seconds, _ in self.ended.values()) / 3600

    def _end(self, instance: Ec2Instance) -> None:
        self.ended[instance.instance_id] = self._charge(instance)

    def _charge(self, instance: Ec2Instance) -> tuple[float, float]:
        world = self._world_of(instance)
        if not is_ours(world, instance):
            return 0.0, 0.0
        seconds = max(LEAST_S, (instance.ended_at or world.now) - instance.launched_at)
        kind = world.catalogue[instance.instance_type]
        parts = volume_usd(instance.zone[:-1], kind, seconds), IPV4_USD_PER_S * seconds
        return seconds, seconds / 3600 * self._price(instance) + sum(parts)

    def _price(self, instance: Ec2Instance) -> float:
        if instance.reservation:
            return 0.0  # paid for the reservation, whether it is used or not
        if instance.purchase == "spot":
            prices = self._world_of(instance).ec2.ledger.prices
            return prices(instance.instance_type, instance.zone, instance.launched_at)
        return self._world_of(instance).catalogue[instance.instance_type].on_demand_usd_per_hour

    def _world_of(self, instance: Ec2Instance) -> World:
        return self._worlds[instance.zone[:-1]]


def volume_usd(region: str, kind: MachineType, seconds: float) -> float:
    """The cost of an instance's volume for that time, with the throughput above what every volume has."""
    data = document("overheads.json")
    row = data["regions"].get(region, {})
    per_gb_month = row.get("gp3UsdPerGbMonth", data["otherwise"]["gp3UsdPerGbMonth"])
    size_gb = VOLUME_GB_WITH_GPUS if kind.gpus else VOLUME_GB
    mibps = 500 if kind.gpus >= 4 else 250 if kind.gpus or kind.vcpus >= 32 else FREE_MIBPS
    usd_a_month = per_gb_month * size_gb + per_gb_month * USD_OF_MIBPS * (mibps - FREE_MIBPS)
    return float(usd_a_month * seconds / MONTH_S)
