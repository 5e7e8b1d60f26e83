"""Where does everything the simulated EC2 knows lie, and what is due when? One account's EC2 in one region."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from typing import Any

from argosy.emulator.ec2.records import Ec2Instance, Fleet, LaunchTemplate, MachineType
from argosy.emulator.ids import counted_ids
from argosy.emulator.refusals import Refused

JSON = dict[str, Any]
Emit = Callable[[JSON], None]
PriceFunction = Callable[[str, str, float], float]
"""(instance type, zone, epoch seconds) -> USD per hour on spot."""

TERMINATED_KEPT_S = 3_600.0


class Ec2Ledger:
    """State, clock, ids and events that all groups of operations share. Hold `lock` while touching it."""

    def __init__(  # noqa: PLR0913 - see Ec2Model, which alone calls it
        self,
        *,
        now: Callable[[], float],
        region: str,
        account: str,
        emit: Emit,
        catalogue: Mapping[str, MachineType],
        zones: Sequence[str],
        prices: PriceFunction | None,
        boot_s: float,
        shutdown_s: float,
        shortage_retry_s: float,
        new_id: Callable[[], str] | None,
    ) -> None:
        self.lock = RLock()
        self.now = now
        self.region = region
        self.account = account
        self.emit = emit
        self.catalogue = catalogue
        self.zones = tuple(zones)
        self.prices: PriceFunction = prices or (lambda name, zone, at: catalogue[name].typical_spot_usd_per_hour)
        self.boot_s = boot_s
        self.shutdown_s = shutdown_s
        self.shortage_retry_s = shortage_retry_s
        self.new_id = new_id or counted_ids(f"ec2/{region}")
        self.fleets: dict[str, Fleet] = {}
        self.instances: dict[str, Ec2Instance] = {}
        self.templates: dict[str, LaunchTemplate] = {}
        self.available: dict[str, int] = {}
        """How many more a pool can deliver; pools that are not named here deliver without end."""
        self.quotas: dict[str, int] = {}
        """Spot vCPUs per class (aws.md 4.3); a class that is not named here has no limit."""
        self.to_fill: dict[str, Fleet] = {}
        self.on_running: list[Callable[[Ec2Instance], None]] = []
        self.on_terminated: list[Callable[[Ec2Instance], None]] = []
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def ordinal(self) -> int:
        """The next number in the order of creation."""
        self._count += 1
        return self._count

    def later(self, at: float, do: Callable[[], None]) -> None:
        """`do` at that time; what falls due together happens in the order asked for."""
        heapq.heappush(self._due, (at, self.ordinal(), do))

    def next_due(self) -> float | None:
        """When something happens by itself; None when nothing will."""
        if self.to_fill:
            return self.now()
        return self._due[0][0] if self._due else None

    def do_due(self) -> None:
        """Everything due until now, also what that brings about."""
        while self._due and self._due[0][0] <= self.now():
            heapq.heappop(self._due)[2]()

    def short_id(self, prefix: str) -> str:
        """e.g. i-0123456789abcdef0."""
        return f"{prefix}-0{self.new_id()[:16]}"

    def subnet(self, zone: str) -> str:
        """The id of the one subnet a zone has here."""
        return f"subnet-0{self.zones.index(zone):016x}"

    def fleet(self, fleet_id: str) -> Fleet:
        """Raises Refused."""
        if fleet_id not in self.fleets:
            raise Refused("InvalidFleetId.NotFound", f"The fleet ID '{fleet_id}' does not exist")
        return self.fleets[fleet_id]

    def named(self, instance_ids: Sequence[str]) -> list[Ec2Instance]:
        """All of them, or none: Raises Refused as soon as one is unknown."""
        for instance_id in instance_ids:
            if not instance_id.startswith("i-"):
                raise Refused("InvalidInstanceID.Malformed", f'Invalid id: "{instance_id}"')
        unknown = [each for each in instance_ids if each not in self.instances]
        if unknown:
            ids = ", ".join(unknown)
            plural = ("s", "do") if len(unknown) > 1 else ("", "does")
            raise Refused("InvalidInstanceID.NotFound", f"The instance ID{plural[0]} '{ids}' {plural[1]} not exist")
        return [self.instances[each] for each in dict.fromkeys(instance_ids)]

    def catch_up(self) -> None:
        """Nothing happens behind the caller's back: only `Ec2Model.advance` lets time do its work."""
