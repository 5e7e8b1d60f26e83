"""Where can capacity be bought, at what price, how much is ordered, and how much is kept?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from argosy.model.instance_types import InstanceType
from argosy.model.instances import Instance, InstanceFacts, Purchase, pool_key
from argosy.model.resources import NOTHING, Resources
from argosy.model.run_terms import Port

CAPACITY_BLOCK, INTERRUPTIBLE = "capacity-block", "interruptible-capacity-reservation"  # of `Pool.reserved_as`

# Fillings of instances that an allocation used: (what the instance offers, ((what a task needs, tasks), ...)).
Patterns = tuple[tuple[tuple[int, ...], tuple[tuple[tuple[int, ...], int], ...]], ...]


class SpotRecord(NamedTuple):
    """What the account's spot instances of a pool lived through in two weeks, those of other programs included."""

    interruptions: float
    instance_hours: float


class PoolFacts(NamedTuple):
    """The facts of a pool in the journal."""

    spot_target: int
    on_demand_target: int
    on_demand_order: int
    short_until: float
    short_reason: str
    closed: str


@dataclass(slots=True)
class Pool:
    """One instance type in one zone of one cell: a spot fleet, whose target is absolute (DESIGN D5, D8), and orders of
    on-demand instances. Or a Capacity Reservation, whose instances come only from such orders."""

    cell: str
    instance_type: str
    zone: str
    fleet_id: str  # "" = none: nothing is bought there
    spot_target: int = 0  # the number of instances to keep
    on_demand_target: int = 0  # existing instances and those of the open order
    on_demand_order: int = 0  # number of the latest order
    on_demand_count: int = 0  # instances of that order while it is open; 0 = EC2 has answered, or it was given up
    confirmed_spot: int = -1  # what EC2 last acknowledged or showed; -1 = unknown
    spot_usd_per_hour: float = 0.0  # EC2's price, without disk and address
    listed_usd_per_hour: float = 0.0  # on demand, by AWS's price list; 0 = not read: the catalogue's price is used
    ordered_since: float = 0.0  # when it began to owe instances; 0 = it owes none
    grown_at: float = 0.0  # when its targets were last raised
    short_until: float = 0.0  # cool-off after a shortage of spot capacity
    shortages: float = 0.0  # number of recent cool-offs, as of short_until: each doubles the next, and they fade
    short_reason: str = ""  # why it cools off, in the words of a message
    needs_mending: bool = False  # the cause lasts until a person acts: a dead AMI, a missing right
    history_at: float = 0.0  # when its fleet's history was last asked for
    on_demand_short_until: float = 0.0  # the same for on-demand capacity
    unsettled_until: float = 0.0  # after an interruption: bought from only where it is clearly cheaper
    priced_at: float = 0.0  # time from which spot_usd_per_hour is known to hold; 0 = never seen
    interruptions: float = 0.0  # our own, decayed to rate_at (market/risk.py)
    instance_hours: float = 0.0  # spot, decayed to rate_at
    rate_at: float = 0.0
    account_interruptions: float = 0.0  # of all the account's spot instances in two weeks (EC2 Capacity Manager)
    account_hours: float = 0.0
    placement_score: int = 0  # EC2's spot placement score, 1 to 10; 0 = not known
    withdrawn_at: float = (
        0.0  # when EC2's list of offers first lacked its type in its zone; 0 = it has it, or is unknown
    )
    registered_memory_mib: int = 0  # memory that an instance of it last registered; 0 = none has
    version: str = ""  # newest version of its fleet's launch template; "" = not known
    version_at: float = 0.0  # when that became known
    joined_version: str = ""  # version with which an instance last joined
    without_runner_at: float = 0.0  # when an instance last joined without the runner; 0 = one of its AMI had it since
    without_sharing_at: float = 0.0  # the same for the attribute that says that its GPUs can be shared

    behind_since: float = 0.0  # when EC2 first refused to move its fleet to the newest launch template; 0 = it has not
    behind_because: str = ""  # in EC2's words
    unregistered: int = 0  # instances in a row that never joined the cluster
    cell_unregistered: int = 0  # the same over all pools of its cell
    closed: str = ""  # why nothing is launched in its cell; "" = the cell is open
    surplus: list[str] = field(default_factory=list)  # other fleets of the same pool that still have a target
    reservation: str = ""  # id if it is a Capacity Reservation; "" = it has a spot fleet
    reserved_as: str = ""  # what EC2 calls it: on-demand-capacity-reservation | capacity-block | ...
    reserved: int = 0  # instances that it reserves
    reserved_free: int = 0  # those that are not in use, by the last sweep, less the orders since
    reserved_until: float = 0.0  # when it ends, by EC2; 0 = it has no end
    empty_by: float = 0.0  # when its instances have to be empty; 0 = never
    unusable: str = ""  # why nothing is launched into it

    @property
    def key(self) -> str:
        return pool_key(self.cell, self.instance_type, self.zone, self.reservation)

    @property
    def is_proven(self) -> bool:
        """Whether an instance of the newest version of its launch template has joined the cluster."""
        return bool(self.registered_memory_mib) and self.joined_version == self.version

    @property
    def ordered_as(self) -> Purchase:
        """The purchase option of the instances that orders bring."""
        if self.reserved_as == INTERRUPTIBLE:
            return Purchase.INTERRUPTIBLE
        return Purchase.RESERVED if self.reservation else Purchase.ON_DEMAND

    @property
    def wanted(self) -> tuple[tuple[Purchase, int], ...]:
        """Its target for each purchase option."""
        return (Purchase.SPOT, self.spot_target), (self.ordered_as, self.on_demand_target)

    @property
    def target(self) -> int:
        return self.spot_target + self.on_demand_target

    def cools_off(self, now: float) -> bool:
        """Whether at least one purchase option is in a cool-off."""
        return max(self.short_until, self.on_demand_short_until) > now

    @property
    def confirmed(self) -> bool:
        """Whether EC2 is known to have the spot target."""
        return self.spot_target == self.confirmed_spot

    def facts(self) -> PoolFacts:
        short_until = max(self.short_until, self.on_demand_short_until)
        targets = self.spot_target, self.on_demand_target, self.on_demand_order
        return PoolFacts(*targets, short_until, self.short_reason, self.closed)


@dataclass(frozen=True, slots=True)
class OrderAnswered:
    """EC2 has launched all instances of an on-demand order. HostSeen of each comes before."""

    pool: str
    order: int


@dataclass(frozen=True, slots=True)
class ReservationSeen:
    """A Capacity Reservation of the settings, as DescribeCapacityReservations showed it. Times are epoch seconds."""

    reservation: str
    cell: str
    instance_type: str
    zone: str
    reserved_as: str  # on-demand-capacity-reservation | capacity-block | interruptible-capacity-reservation
    state: str  # active | scheduled | expired | cancelled | ...
    instances: int
    free: int
    starts_at: float = 0.0
    ends_at: float = 0.0  # 0 = it has no end


def is_group(named: str) -> bool:
    """Whether this name from the settings is a resource group of Capacity Reservations, not the id of one."""
    return named.startswith("arn:")


def not_seen_yet(pools: Mapping[str, Pool], fleets: Iterable[tuple[str, str, str]]) -> dict[str, Pool]:
    """By key, the pools of deployed fleets (cell, instance type, zone) that are missing from `pools`: no sweep has
    shown them yet."""
    found = (Pool(*each, "not seen yet", confirmed_spot=0) for each in fleets)
    return {pool.key: pool for pool in found if pool.key not in pools}


@dataclass(frozen=True, slots=True)
class Offer:
    """A pool and purchase option at its present price: an instance that does not exist yet."""

    pool: str
    cell: str
    instance_type: str
    zone: str
    purchase: Purchase
    price_usd_per_hour: float  # of the instance with its disk and its address
    resources: Resources  # what an instance really registers, less the daemons' part
    disk_gib: int = 0  # of its volume, for other tasks than daemons'; from the settings, too
    most_tasks: int | None = None  # at a time, whatever they need; None = as many as its resources allow
    attributes: tuple[tuple[str, str], ...] = ()
    effective_usd_per_hour: float = 0.0  # price plus the cost of risk; 0 = the price
    interruption_rate: float = 0.0  # expected interruptions per instance-hour
    for_daemons: Resources = NOTHING  # what daemons will take of it
    host_ports: frozenset[Port] = frozenset()  # ports that daemons will hold

    @property
    def whole(self) -> Resources:
        """What will really register."""
        return self.resources.plus(self.for_daemons)

    @property
    def effective(self) -> float:
        """The price to optimise. `price_usd_per_hour` is the price that is paid, reserved and shown."""
        return self.effective_usd_per_hour or self.price_usd_per_hour


@dataclass(frozen=True, slots=True)
class OrderNote:
    """One tick's purchase. Its patterns are kept in memory only: a controller that starts again finds them again."""

    at: float = 0.0  # 0 = nothing was bought yet
    instances: int = 0
    usd_per_hour: float = 0.0  # with the cost of risk
    lower_bound_usd_per_hour: float | None = None  # None = not known
    gap: float | None = None  # share above the bound; None if the bound is not known or not all was bought
    method: str = ""  # "run by run", "patterns" or "greedy"
    patterns: Patterns = ()  # starting point of the next allocation

    def to_json(self) -> dict[str, Any]:
        """The form that is shown to users and stored."""
        return {
            "at": self.at,
            "instances": self.instances,
            "usdPerHour": self.usd_per_hour,
            "lowerBoundUsdPerHour": self.lower_bound_usd_per_hour,
            "gapPct": None if self.gap is None else 100 * self.gap,
            "method": self.method,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> OrderNote:
        gap_pct = record.get("gapPct")
        return cls(
            at=float(record.get("at", 0.0)),
            instances=int(record.get("instances", 0)),
            usd_per_hour=float(record.get("usdPerHour", 0.0)),
            lower_bound_usd_per_hour=record.get("lowerBoundUsdPerHour"),
            gap=None if gap_pct is None else float(gap_pct) / 100,
            method=str(record.get("method", "")),
        )


def as_registered(catalogue: Mapping[str, InstanceType], pools: Iterable[Pool]) -> Mapping[str, InstanceType]:
    """The catalogue with the memory that instances of each type last registered in place of the estimate.

    Otherwise an instance that is too small for a task would be bought repeatedly.
    """
    seen: dict[str, int] = {}
    for pool in pools:
        if memory_mib := pool.registered_memory_mib:
            seen[pool.instance_type] = min(memory_mib, seen.get(pool.instance_type, memory_mib))
    known = {
        name: replace(catalogue[name], registered_memory_mib=memory_mib)
        for name, memory_mib in seen.items()
        if name in catalogue and catalogue[name].registered_memory_mib != memory_mib
    }
    return MappingProxyType({**catalogue, **known}) if known else catalogue


class FloorFacts(NamedTuple):
    """The facts of the floor in the journal."""

    instances: int
    types: tuple[str, ...]
    until: float
    waiting: str
    headroom_waiting: str


@dataclass(frozen=True, slots=True)
class Floor:
    """The number of instances that are bought and kept, with or without work. 0 = there is no floor."""

    instances: int = 0
    types: tuple[str, ...] = ()  # only these count and are bought; () = all
    until: float = 0.0  # epoch seconds; 0 = until another request
    asked_at: float = 0.0  # epoch seconds
    waiting: str = ""  # why there are fewer; "" = there are enough, or they are incoming
    headroom_waiting: str = ""  # why some of the `headroom` of the settings is missing

    def facts(self) -> FloorFacts:
        return FloorFacts(self.instances, self.types, self.until, self.waiting, self.headroom_waiting)

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        return {
            "instances": self.instances,
            "types": list(self.types),
            "until": self.until,
            "asked_at": self.asked_at,
            "waiting": self.waiting,
            "headroom_waiting": self.headroom_waiting,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Floor:
        """Unknown members are ignored."""
        values = {name: record[name] for name in cls.__slots__ if name in record}
        return cls(**{**values, "types": tuple(values.get("types", ()))})


NO_FLOOR = Floor()


@dataclass(slots=True)
class LastCommit:
    """Instances, pools, the last order and the floor as last committed."""

    instances: dict[str, InstanceFacts] = field(default_factory=dict)  # by EC2 id, our instances
    pools: dict[str, PoolFacts] = field(default_factory=dict)  # by Pool.key
    ordered_at: float = 0.0
    floor: FloorFacts = field(default_factory=NO_FLOOR.facts)

    def note_instances(self, instances: Mapping[str, Instance], changed: Iterable[str]) -> None:
        """Record the present facts as committed. changed: the instances that may differ from the facts here."""
        for name in changed:
            instance = instances.get(name)
            if instance is not None and instance.owned:
                self.instances[name] = instance.facts()
            else:
                self.instances.pop(name, None)

    def note_orders(self, pools: Mapping[str, Pool], order: OrderNote, floor: Floor) -> None:
        """Record the present facts as committed."""
        self.pools = {key: pool.facts() for key, pool in pools.items()}
        self.ordered_at = order.at
        self.floor = floor.facts()
