"""Facts about every instance that is paid for."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from argosy.model.resources import NOTHING, Resources
from argosy.model.start_ups import Images

LEAST_BILLED_S = 60.0  # EC2 charges by the second, and at least a minute


class InstanceStatus(StrEnum):
    BOOTING = "BOOTING"  # EC2 has it, ECS has not registered it yet
    ACTIVE = "ACTIVE"  # registered; may be given work
    DRAINING = "DRAINING"  # registered; no new work
    RELEASING = "RELEASING"  # we have released it
    GONE = "GONE"  # terminated; kept while a run may still name it


class Purchase(StrEnum):
    SPOT = "spot"
    ON_DEMAND = "on-demand"
    RESERVED = "reserved"  # out of a Capacity Reservation, which is paid whether it is used or not
    INTERRUPTIBLE = "interruptible"  # the same, of one whose owner may take it back

    @property
    def is_reserved(self) -> bool:
        return self in (Purchase.RESERVED, Purchase.INTERRUPTIBLE)

    @property
    def may_be_taken_back(self) -> bool:
        """Whether EC2 may end it two minutes after a warning."""
        return self in (Purchase.SPOT, Purchase.INTERRUPTIBLE)


class GpuDevice(NamedTuple):
    """A GPU of an instance as ECS shows it. MiB; free_mib: for further tasks with a share."""

    gpu_id: str
    mode: str  # IDLE | NVIDIA_MPS | DEDICATED
    free_mib: int
    total_mib: int = 0  # 0 = ECS does not say


class InstanceFacts(NamedTuple):
    """The facts of one of our instances in the journal."""

    status: InstanceStatus
    is_connected: bool
    interrupted_at: float
    rebalance_at: float
    cordon: str
    paused_until: float


@dataclass(slots=True)
class Instance:
    """One EC2 instance. Times are epoch seconds, 0 = not yet."""

    id: str
    cell: str
    instance_type: str
    zone: str
    purchase: Purchase = Purchase.SPOT
    status: InstanceStatus = InstanceStatus.BOOTING
    arn: str = ""  # of the container instance; empty until registered
    total: Resources = NOTHING  # what the agent registered
    gpu_memory_mib: int = 0  # of each of its GPUs, if tasks can share them
    gpu_ids: tuple[str, ...] = ()  # registration order; bit j of a gpu_mask is gpu_ids[j]
    attributes: dict[str, str] = field(default_factory=dict)
    owned: bool = False  # EC2 shows it with our tag in a fleet of ours; nothing is placed on others
    agent_connected: bool = False
    version: int = 0  # highest detail.version applied
    price_usd_per_hour: float = 0.0  # as bought, with its disk and its address
    on_demand_usd_per_hour: float = 0.0  # on demand, with both
    disk_usd_per_hour: float = 0.0  # in both prices
    address_usd_per_hour: float = 0.0  # in both prices: its public IPv4 address
    launched_at: float = 0.0
    registered_at: float = 0.0
    interrupted_at: float = 0.0  # spot warning heard
    rebalance_at: float = 0.0
    released_at: float = 0.0
    stopped_at: float = 0.0
    idle_since: float = 0.0  # 0 = busy
    disconnected_at: float = 0.0  # when its agent became silent; 0 = it is connected
    strikes: int = 0  # attempts in a row that failed at once or never started here
    absent_since: float = 0.0  # first complete listing of EC2 that did not show it
    cordon: str = ""  # why no work is placed here, beyond the status
    foreign: Resources = NOTHING  # resources taken by tasks that are not ours
    foreign_shares: tuple[int, ...] = ()  # the MiB that their shares take of each of `gpu_ids`; empty = none
    foreign_seen: Resources = NOTHING  # the least that such tasks were seen to take since `foreign_since`
    foreign_since: float = 0.0  # when that rose above `foreign`; 0 = it is not above
    refusals: int = 0  # launches in a row that ECS refused here, for any reason
    paused_until: float = 0.0  # nothing is launched here before, because of refusals
    draining_since: float = 0.0  # 0 = it is not DRAINING
    bought_for: int = 0  # Run.number of the run that counted on it first: it pays until an attempt has worked here
    # Uncharged work done here: Run.number -> share-seconds by `ledger.Work`.
    work: dict[int, list[float]] = field(default_factory=dict)
    # Uncharged waiting before a newcomer came, which does not pay for it: Run.number -> [boot s, idle s].
    waiting: dict[int, list[float]] = field(default_factory=dict)
    charged_s: float = 0.0  # seconds charged, to runs or to no run
    charged_boot_s: float = 0.0
    fleet_id: str = ""  # the fleet that launched it; "" = its pool's
    arn_since: float = 0.0  # when `arn` was registered, as ECS says; 0 = at `registered_at`
    unlisted_since: float = 0.0  # first complete listing of ECS that did not show `arn`
    let_go_at: float = 0.0  # when its daemons were first asked to end; 0 = they were not, or it has ended
    # Kept for one run until this many of its tasks have arrived, or the time is up (`scheduler.taking_room`).
    yields_to: int = 0  # Run.number; 0 = it takes work of any run
    yields_tasks: int = 0
    yields_until: float = 0.0
    yields_since: float = 0.0  # 0 = not known: an earlier version began it
    is_emptied: bool = False  # whether all other work there must end first
    private_ip: str = ""
    public_ip: str = ""
    drain_until: float = 0.0  # end of a user's drain; kept after that until ECS shows it ACTIVE again
    impaired: dict[str, str] = field(default_factory=dict)  # what is wrong with it, in AWS's words, by the source
    impaired_since: float = 0.0
    console: str = ""  # the end of its console output, redacted, if it never joined the cluster
    reservation: str = ""  # the Capacity Reservation in which it occupies a place; "" = none
    empty_by: float = 0.0  # when it has to be empty, because its reservation ends; 0 = never
    images: Images = field(default_factory=dict)  # images that tasks of runs have pulled there
    losing: bool = False  # GONE, but some attempts and charges are not settled yet (`lifecycle.hosts`)

    @property
    def size(self) -> Resources:
        """Its total, with the memory of its GPUs if tasks can share them."""
        return self.total._replace(gpu_share_mib=self.total.gpus * self.gpu_memory_mib)

    @property
    def pool(self) -> str:
        return pool_key(self.cell, self.instance_type, self.zone, self.reservation)

    @property
    def placeable(self) -> bool:
        return (
            self.status is InstanceStatus.ACTIVE
            and self.owned
            and self.agent_connected
            and not (self.interrupted_at or self.rebalance_at or self.cordon or self.absent_since)
        )

    @property
    def leaves(self) -> bool:
        """Whether it is ending, has ended or is impaired: later failures there may be due to that."""
        gone = self.status in (InstanceStatus.RELEASING, InstanceStatus.GONE)
        return gone or bool(self.interrupted_at or self.impaired)

    @property
    def alive(self) -> bool:
        return self.status is not InstanceStatus.GONE

    @property
    def owes(self) -> bool:
        """Whether runs may still owe some of its time."""
        return self.alive or self.losing

    @property
    def counts_for_target(self) -> bool:
        """Whether its fleet's target counts it: ours, alive, not warned, not released, and not missing in EC2's
        listing. A fleet replaces an ended instance: a target that still counted it would grow with every
        replacement."""
        leaving = self.status in (InstanceStatus.GONE, InstanceStatus.RELEASING)
        return self.owned and not (leaving or self.interrupted_at or self.absent_since)

    def facts(self) -> InstanceFacts:
        warnings = self.interrupted_at, self.rebalance_at
        return InstanceFacts(self.status, self.agent_connected, *warnings, self.cordon, self.paused_until)

    def billed_s(self, now: float) -> float:
        """Seconds for which it is billed; never less than what is already charged."""
        if not self.launched_at:
            return 0.0
        return max(LEAST_BILLED_S, self.charged_s, (self.stopped_at or now) - self.launched_at)

    def boot_s(self, now: float) -> float:
        """How many of these seconds passed before it registered."""
        if not self.launched_at:
            return 0.0
        return max(0.0, (self.registered_at or self.stopped_at or now) - self.launched_at)

    @property
    def is_settled(self) -> bool:
        """Whether all of its time is charged: later findings about its attempts change no ledger."""
        return not self.alive and self.charged_s >= self.billed_s(self.stopped_at)

    def hours(self, now: float) -> float:
        """Seconds since its launch, up to its end."""
        return self.billed_s(now) / 3600


RESERVATION_ENDS = "its Capacity Reservation ends"


def reservation_ends(instance: Instance, at: float) -> bool:
    """Whether it has to be empty at that time, because its reservation ends."""
    return 0 < instance.empty_by <= at


def pool_key(cell: str, instance_type: str, zone: str, reservation: str = "") -> str:
    return f"{cell}/{instance_type}/{zone}/{reservation}".rstrip("/")
