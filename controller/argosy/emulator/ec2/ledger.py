"""The state of the emulated EC2 of one region, and the calls that are due."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import RLock

from argosy.emulator.ec2.records import (
    CapacityReservation,
    Ec2Fleet,
    Ec2Instance,
    LaunchObstacle,
    LaunchTemplate,
    MachineType,
)
from argosy.emulator.operations import Refusal
from argosy.emulator.region import AwsRegion

PriceFunction = Callable[[str, str, float], float]
"""(instance type, zone, epoch seconds) -> USD per hour on spot."""

TERMINATED_KEPT_S = 3_600.0


@dataclass(frozen=True, slots=True)
class Ec2Setup:
    """The offers of EC2 in a region, and how long its steps take. Without `prices` every type costs its typical spot
    price.
    """

    catalogue: Mapping[str, MachineType]
    zones: Sequence[str] = ("us-east-1a", "us-east-1b", "us-east-1c")
    prices: PriceFunction | None = None
    boot_s: float = 30.0
    shutdown_s: float = 1.0
    shortage_retry_s: float = 60.0
    """How long a fleet waits before it retries a launch that was not available."""

    private_ip: str = ""
    """Of all instances; "" = each has its own."""

    why_not: Callable[[str], str] = lambda instance_type: ""
    """Why the machine that runs the emulator cannot host one more instance of a type; "" if it can."""

    def usd_per_hour(self, instance_type: str, zone: str, at: float) -> float:
        """On spot."""
        if self.prices is not None:
            return self.prices(instance_type, zone, at)
        return self.catalogue[instance_type].typical_spot_usd_per_hour


class Ec2Ledger:
    """State, clock, ids and events that all groups of operations share. Hold `lock` while touching it."""

    def __init__(self, region: AwsRegion, setup: Ec2Setup) -> None:
        self.lock = RLock()
        self.region = region
        self.setup = setup
        self.now = region.now
        self.new_id = region.ids("ec2")
        self.zones = tuple(setup.zones)
        self.catalogue = setup.catalogue
        self.prices = setup.usd_per_hour
        self.fleets: dict[str, Ec2Fleet] = {}
        self.instances: dict[str, Ec2Instance] = {}
        self.reservations: dict[str, CapacityReservation] = {}
        self.templates: dict[str, LaunchTemplate] = {}
        self.available: dict[str, int] = {}
        """How many more instances a pool can deliver; a pool that is missing here has no limit."""
        self.withdrawn: set[str] = set()
        """Pools whose type is no longer offered in their zone: their fleets stay, and take no higher target."""
        self.obstacles: dict[str, LaunchObstacle] = {}
        """What, besides a lack of capacity, keeps a pool from launching anything, such as a missing image."""
        self.quotas: dict[str, int] = {}
        """Spot vCPUs per class (aws.md 4.3); a class that is missing here has no limit."""
        self.readings = region.readings
        self.to_fill: dict[str, Ec2Fleet] = {}
        self.on_launched: list[Callable[[Ec2Instance], None]] = []
        self.on_running: list[Callable[[Ec2Instance], None]] = []
        self.on_shutting_down: list[Callable[[Ec2Instance], None]] = []
        self.on_terminated: list[Callable[[Ec2Instance], None]] = []
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def ordinal(self) -> int:
        """The next number in the order of creation."""
        self._count += 1
        return self._count

    def later(self, at: float, do: Callable[[], None]) -> None:
        """Call `do` at that time; equal times in the order of the calls."""
        heapq.heappush(self._due, (at, self.ordinal(), do))

    def next_due(self) -> float | None:
        """When the next timed event happens; None when nothing will."""
        if self.to_fill:
            return self.now()
        return self._due[0][0] if self._due else None

    def do_due(self) -> None:
        """Run all events that are due, including those that they schedule for now."""
        while self._due and self._due[0][0] <= self.now():
            heapq.heappop(self._due)[2]()

    def short_id(self, prefix: str) -> str:
        """e.g. i-0123456789abcdef0."""
        return f"{prefix}-0{self.new_id()[:16]}"

    def subnet(self, zone: str) -> str:
        """The id of the zone's only subnet."""
        return f"subnet-0{self.zones.index(zone):016x}"

    def fleet(self, fleet_id: str) -> Ec2Fleet:
        """Raises Refusal."""
        if fleet_id not in self.fleets:
            raise Refusal("InvalidFleetId.NotFound", f"The fleet ID '{fleet_id}' does not exist")
        return self.fleets[fleet_id]

    def named(self, instance_ids: Sequence[str]) -> list[Ec2Instance]:
        """All of them. Raises Refusal if one is unknown."""
        for instance_id in instance_ids:
            if not instance_id.startswith("i-"):
                raise Refusal("InvalidInstanceID.Malformed", f'Invalid id: "{instance_id}"')
        unknown = [each for each in instance_ids if each not in self.instances]
        if unknown:
            ids = ", ".join(unknown)
            plural = ("s", "do") if len(unknown) > 1 else ("", "does")
            raise Refusal("InvalidInstanceID.NotFound", f"The instance ID{plural[0]} '{ids}' {plural[1]} not exist")
        return [self.instances[each] for each in dict.fromkeys(instance_ids)]

    def catch_up(self) -> None:
        """Calls change nothing by themselves: time takes effect only in `Ec2Model.advance`."""
