"""What does the simulated EC2 charge? Instances by the second, from launch to end, at the price of their launch."""

from __future__ import annotations

from dataclasses import dataclass, field

from argosy.emulator.ec2.service import Ec2Instance
from argosy.simulation.mishaps import is_ours
from argosy.simulation.world import World

LEAST_S = 60.0  # EC2 charges at least a minute


@dataclass(slots=True)
class Billing:
    """The bill of a world's instances of our fleets."""

    world: World
    ended: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Seconds and USD of instances that are gone, by id."""

    def __post_init__(self) -> None:
        self.world.ec2.on_terminated.append(self._end)

    def usd(self) -> float:
        alive = (self._charge(each)[1] for each in self.world.ec2.ledger.instances.values() if each.ended_at is None)
        return sum(usd for _, usd in self.ended.values()) + sum(alive)

    def hours(self) -> float:
        """Of instances that are gone."""
        return sum(seconds for seconds, _ in self.ended.values()) / 3600

    def _end(self, instance: Ec2Instance) -> None:
        self.ended[instance.instance_id] = self._charge(instance)

    def _charge(self, instance: Ec2Instance) -> tuple[float, float]:
        if not is_ours(self.world, instance):
            return 0.0, 0.0
        seconds = max(LEAST_S, (instance.ended_at or self.world.now) - instance.launched_at)
        return seconds, seconds / 3600 * self._price(instance)

    def _price(self, instance: Ec2Instance) -> float:
        if instance.purchase == "spot":
            return self.world.ec2.ledger.prices(instance.instance_type, instance.zone, instance.launched_at)
        return self.world.catalogue[instance.instance_type].on_demand_usd_per_hour
