"""The records of the emulated EC2; the modules around them define their changes and views."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

JSON = dict[str, Any]
STATE_CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48}


class MachineType(Protocol):
    """The properties of an instance type that this model needs; the catalogue's InstanceType has them. Memory MiB,
    prices USD/h.
    """

    @property
    def vcpus(self) -> int: ...
    @property
    def memory_mib(self) -> int: ...
    @property
    def gpus(self) -> int: ...
    @property
    def gpu_model(self) -> str | None: ...
    @property
    def gpu_memory_mib(self) -> int: ...
    @property
    def shared_gpu_mib(self) -> int: ...
    @property
    def architecture(self) -> str: ...
    @property
    def on_demand_usd_per_hour(self) -> float: ...
    @property
    def typical_spot_usd_per_hour(self) -> float: ...


@dataclass(frozen=True, slots=True)
class CapacityPool:
    """A pool that a fleet may launch from: one instance type in one zone."""

    instance_type: str
    zone: str
    template: str
    """Id or name of the launch template."""
    template_version: str

    @property
    def name(self) -> str:
        """e.g. c5.2xlarge/us-east-1a."""
        return f"{self.instance_type}/{self.zone}"


@dataclass(frozen=True, slots=True)
class LaunchTemplate:
    """The settings that a launch template gives its instances."""

    image_ids: tuple[str, ...]
    """By version, from 1."""
    tags: dict[str, str]
    own_tags: dict[str, str]
    """Of the template itself."""


@dataclass(slots=True)
class CapacityReservation:
    """Instances of one type in one zone that are kept for the account. Times are epoch seconds, 0 = none."""

    reservation_id: str
    instance_type: str
    zone: str
    total: int
    kind: str
    """on-demand-capacity-reservation, capacity-block or interruptible-capacity-reservation."""
    starts_at: float
    ends_at: float = 0.0
    taken: int = 0
    """By instances that are not modelled."""
    is_cancelled: bool = False
    groups: tuple[str, ...] = ()
    """ARNs of the resource groups that it is in."""
    reclaimed: int = 0
    """Of the total, by the owner of an interruptible one."""


@dataclass(slots=True)
class Ec2Instance:
    """One EC2 instance. Times are epoch seconds, None = not (yet)."""

    ordinal: int
    instance_id: str
    pool: CapacityPool
    purchase: str
    """ "spot" or "on-demand"."""
    fleet_id: str
    image_id: str
    subnet_id: str
    launched_at: float
    tags: dict[str, str]
    spot_request_id: str
    state: str = "pending"
    reason_code: str = ""
    reason: str = ""
    ends_at: float | None = None
    """An interruption warning was given: it is terminated then."""
    ended_at: float | None = None
    failed_checks: frozenset[str] = frozenset()
    """Of EC2's status checks: system, instance, attached-ebs."""
    console: str = ""
    reservation: str = ""
    """Id of the Capacity Reservation that it takes a place of."""
    lifecycle: str = ""
    """As DescribeInstances shows it: spot, capacity-block, interruptible-capacity-reservation; "" = none of them."""

    @property
    def instance_type(self) -> str:
        return self.pool.instance_type

    @property
    def zone(self) -> str:
        return self.pool.zone

    @property
    def alive(self) -> bool:
        """Pending or running: counts as capacity and costs money."""
        return self.state in ("pending", "running")


@dataclass(frozen=True, slots=True)
class FleetEvent:
    """An entry of DescribeFleetHistory; empty texts are left out there."""

    at: float
    event_type: str
    """ "instance-change", "fleet-change" or "service-error"."""
    sub_type: str
    description: str = ""
    instance_id: str = ""


class LaunchObstacle(NamedTuple):
    """Why a fleet launches nothing: a sub-type of its events (aws.md 9.5), and EC2's words."""

    sub_type: str
    description: str


@dataclass(slots=True)
class Ec2Fleet:
    """One EC2 Fleet of type maintain, or what one of type instant has launched. Targets are absolute numbers of
    instances; a fleet of type instant has none."""

    ordinal: int
    fleet_id: str
    created_at: float
    pools: list[CapacityPool]
    request: JSON
    """Given to CreateFleet and only shown again."""
    spot_target: int
    on_demand_target: int
    default_type: str
    excess_policy: str
    tags: dict[str, str]
    answer: JSON = field(default_factory=dict)
    """Of CreateFleet, for the type instant."""
    state: str = "submitted"
    short: str = ""
    """Sub-type of the error that keeps it from its target; "" = none."""
    retry_at: float = 0.0
    """When it may try again after a shortage."""
    settles_at: float = 0.0
    """When a modification is over, if that takes time."""
    old_targets: tuple[int, int] | None = None
    """(spot, on-demand) that it still shows."""
    members: dict[str, Ec2Instance] = field(default_factory=dict)
    """Those alive, by id."""
    history: list[FleetEvent] = field(default_factory=list)

    @property
    def is_instant(self) -> bool:
        return bool(self.answer)

    @property
    def is_live(self) -> bool:
        """Not deleted, whatever its instances do."""
        return not self.state.startswith("deleted")

    @property
    def total_target(self) -> int:
        return self.spot_target + self.on_demand_target

    def count(self, purchase: str) -> int:
        """The number of its live members with this purchase option."""
        return sum(each.purchase == purchase for each in self.members.values())
