"""The controller's parameters, in seconds unless the name says otherwise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import NamedTuple

from argosy.model.instance_types import GPU_SHARING_ATTRIBUTE, InstanceType, own_attributes
from argosy.model.instances import Purchase
from argosy.model.resources import Resources
from argosy.model.run_terms import RUNNER_ATTRIBUTE, RUNNER_PROTOCOL

# GiB of an instance's only volume unless the owner says otherwise. The AMI takes 30; the rest is for images, each of
# several GB with CUDA, and for what tasks write.
CPU_DISK_GIB, GPU_DISK_GIB = 60, 150
INCLUDED_MIBPS = 125  # of a gp3 volume's throughput; above it a MiB/s costs as much as half a GiB (overheads.json)
SYSTEM_DISK_GIB = 30  # of it, for the AMI, Docker and images; tasks that ask for disk share the rest
# Interfaces of one Linux bridge: BR_PORT_BITS of net/bridge/br_private.h, less one that is never given away. Our tasks
# are in bridge mode, so each has one on docker0; the next one fails with "exchange full" (moby/moby issue 44973).
BRIDGE_PORTS = 1_023


FIRST_ORDER = 10  # instances of an AMI that a deployment orders until one has joined the cluster


class VcpuQuota(NamedTuple):
    """How many vCPUs of a quota family we may use at once in a cell, by one purchase option."""

    cell: str
    purchase: str  # spot | on-demand
    family: str  # catalogue.quotas: standard, g, p, ...
    vcpus: int


class SparePlaces(NamedTuple):
    """Room for that many further tasks of one size, kept while runs are open."""

    places: int
    needs: Resources
    purchase: Purchase = Purchase.SPOT  # of the instances that hold it: spot | on-demand


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits and time-outs of the controller. Settings may change them; local mode shortens them."""

    linger_s: float = 300.0  # how long an instance may idle before it is let go
    linger_by_type: tuple[tuple[str, float], ...] = ()  # (glob, seconds) for some types; the first that matches counts
    attributes_by_type: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()  # (glob, (name, value)s) for types
    disk_gib_by_type: tuple[tuple[str, int], ...] = ()  # (glob, GiB) for some types; the first that matches counts
    most_tasks_by_type: tuple[tuple[str, int], ...] = ()  # (glob, tasks) for some types; the first that matches counts
    cool_down_s: float = 120.0  # idle instances of a type stay this long after more of it was ordered
    min_idle: int = 0  # idle instances to keep, with or without work
    min_instances: int = 0  # least size of the cluster while runs are open
    headroom: tuple[SparePlaces, ...] = ()  # room kept for further tasks while runs are open
    max_instances: int = 200  # alive or ordered, over all pools
    wave_size: int = 100  # launches: `startedBy` must find a wave in one page of a listing
    max_launches_per_tick: int = 2_000  # in waves, over all cells
    launches_per_cell: int = 250  # each tick: 40 calls a second for 5 s, plus the saved-up burst
    launch_rate: float = 40.0  # a second, of a cell: AWS's sustained limit
    max_verifications_per_tick: int = 400
    max_dirty_documents: int = 60  # a transaction holds 100 items: facts wait for the next tick beyond this
    max_settling_documents: int = 72  # settling of lost instances may use up to this many
    full_commit_documents: int = 78  # and a tick's own decisions up to this many
    max_dirty_bytes: int = 2_500_000  # the same in bytes: a transaction holds 4 MB
    full_commit_bytes: int = 2_800_000
    max_named_instances: int = 4_000  # a run's record drops ended instances beyond this: an item holds 400 KB
    max_promised_documents: int = 30  # records and chunks of runs that the outcomes of one tick may touch
    max_setbacks: int = 20  # rounds in a row of closing a run or looking up its results; pauses grow to a minute
    refusal_patience_s: float = 900.0  # a run that AWS refuses (no rights, an unknown 4xx) is given up after this
    outage_patience_s: float = 3600.0  # the same where S3 throttles or does not answer, which is temporary
    max_type_share: float = 1.0  # largest share of one instance type in the cpu of all instances; 1 = any
    max_cell_share: float = 1.0  # and of one cell
    vcpu_quotas: tuple[VcpuQuota, ...] = ()  # the known quotas; all others are unlimited
    data_cell: str = ""  # where runs' data and images are; "" = traffic between Regions is not priced
    public_addresses: bool = True  # whether instances have a public IPv4 address, which is billed
    foreign_patience_s: float = 10.0  # other owners' tasks count once they have been seen for this long
    refusal_pause_s: float = 15.0  # pause of an instance that had no room for a task; doubled each time
    growth_per_tick: int = 50  # instances newly ordered at once
    sweep_s: float = 120.0  # DESIGN D5
    eager_sweep_s: float = 15.0  # while instances are owed or booting
    health_s: float = 15.0  # between checks of the health of a service's tasks while it changes; else `sweep_s`
    health_looks_per_tick: int = 1_000  # tasks, 100 in a call
    order_patience_s: float = 180.0  # a fleet that has owed instances longer than this is short
    cool_off_s: float = 180.0  # how long a short pool is avoided (as in Karpenter)
    cool_off_max_s: float = 3600.0  # each further shortage doubles the cool-off, up to this
    history_every_s: float = 900.0  # shortest time between requests for the history of a fleet that runs short again,
    history_reads_per_tick: int = 5  # and the number of fleets a tick
    cool_off_fade_s: float = 3600.0  # half-life of the number of shortages once a cool-off is over
    price_limit_s: float = 86_400.0  # older spot prices are replaced by the on-demand price
    rate_half_life_s: float = 21_600.0  # of our own interruption counts (decision 8)
    attempt_s: float = 600.0  # assumed duration of an attempt until its run has data
    wind_down_s: float = 60.0  # from the decision to stop a run to the end of its instances: reserved in its budget
    finish_s: float = 3600.0  # longest attempt after the run's budget is used up, if no estimate is known
    boot_s: float = 180.0  # from the launch of an instance to its first task, paid for without use
    planned_life_s: float = 3600.0  # how long an uninterrupted instance is used
    max_usd_per_hour: float = math.inf  # price caps: offers above this hourly price are not bought,
    max_usd_per_vcpu_hour: float = math.inf  # nor those above this price for each vCPU, of types without GPUs,
    max_usd_per_gpu_hour: float = math.inf  # or for each GPU
    first_order: int = 0  # most incoming instances of an AMI until one has joined in the cell; 0 = no limit
    max_unregistered: int = 3  # after this many in a row, their pool is avoided for `cool_off_max_s`
    hand_over_s: float = 80.0  # of a warning's 120: how long a service's task continues to serve before it is stopped
    warning_patience_s: float = 600.0  # a warning is for two minutes: one that has not come true by then is ignored
    daemon_end_s: float = 45.0  # from letting go of an instance to its end; ECS ends a task within 30 s
    drain_patience_s: float = 3600.0  # tasks still running this long after their instance began DRAINING are stopped
    try_spot_s: float = 900.0  # until a run that went to on-demand tries spot again; doubled each time, up to 4 x
    register_patience_s: float = 900.0  # a running instance that never registers is let go
    absence_s: float = 300.0  # absence from listings is proof only after this quiet time
    intent_age_s: float = 600.0  # older intents are never sent again (DESIGN D4)
    takeover_s: float = 900.0  # another controller may send its intents for this long: Lambda ends it then
    ecs_memory_s: float = 3000.0  # ECS shows stopped tasks for an hour; later, absence proves nothing about a launch
    stop_again_s: float = 60.0  # a stop without effect is requested again
    pending_patience_s: float = 600.0  # launched, and neither running nor pulling its image: stuck
    pull_patience_s: float = 1_800.0  # the longest pull of an image
    agent_patience_s: float = 600.0  # an instance whose agent is silent this long is let go; its tasks start elsewhere
    quick_failure_s: float = 60.0  # an attempt that fails sooner speaks against its instance
    max_strikes: int = 3  # after this many in a row, the instance gets no more work
    unaffordable_patience_s: float = 3600.0  # a run waits this long while its hourly cap is below every price
    max_losses: int = 20  # attempts of one task lost to infrastructure
    max_start_failures: int = 3  # attempts of one task whose container could not be pulled, created or started
    gpu_share_across_owners: bool = False  # whether tasks of several owners may share a GPU
    fate_s: float = 10.0  # an instance that still runs this long after an attempt failed there did not cause it
    gpu_fate_s: float = 60.0  # the same if the attempt had a GPU: ECS calls it impaired after the program has ended
    share_fate_s: float = 10.0  # the same if it shared a GPU: what ended the others there is known by then
    fate_patience_s: float = 600.0  # how long EC2 is asked; after that the failure is charged to the user
    alike_failures: int = 5  # a run stops when this many tasks fail alike and none succeeds
    start_s: float = 5.0  # from a launch to its program's first line, with the image present: what plans assume
    retry_backoff_s: float = 1.0  # doubled for each failure of the task, at most 60 s
    gangs: bool = True  # whether members of gangs can reach each other
    machine_programs: int = 0  # that local mode's one machine runs at once; 0 = each instance is a machine
    gpus_unshared: str = ""  # why tasks cannot share the GPUs of that machine; "" = they can, or its AMI decides
    forget_instance_s: float = 3600.0  # how long an instance that is gone is remembered

    def without_price_caps(self) -> Policy:
        """For capacity at any price."""
        free = math.inf
        return replace(self, max_usd_per_hour=free, max_usd_per_vcpu_hour=free, max_usd_per_gpu_hour=free)

    def fate_s_of(self, needs: Resources, *, serves: bool) -> float:
        """How long after the failure of an attempt with these needs its instance has to be seen running."""
        gpu_s = self.gpu_fate_s if not serves and (needs.gpus or needs.gpu_share_mib) else 0.0
        return max(self.fate_s, gpu_s, self.share_fate_s if needs.gpu_share_mib else 0.0)

    def linger_of(self, instance_type: str) -> float:
        """How long an instance of the type may idle: seconds."""
        named = (seconds for glob, seconds in self.linger_by_type if fnmatchcase(instance_type, glob))
        return next(named, self.linger_s)

    def attributes_of(self, instance_type: str) -> dict[str, str]:
        """The attributes an instance of the type is registered with: the owner's, and that it has our runner."""
        return {**self.own_attributes_of(instance_type), RUNNER_ATTRIBUTE: str(RUNNER_PROTOCOL)}

    def own_attributes_of(self, instance_type: str) -> dict[str, str]:
        """The owner's attributes of an instance of the type; of several globs that match, the first counts."""
        found: dict[str, str] = {}
        for glob, given in self.attributes_by_type:
            if fnmatchcase(instance_type, glob):
                found = {**dict(given), **found}
        return found

    def expected_attributes(self, kind: InstanceType, zone: str, purchase: Purchase, cell: str) -> dict[str, str]:
        """The attributes of an instance once its agent has registered, as far as constraints can predict them."""
        return {
            **self.attributes_of(kind.name),
            "ecs.instance-type": kind.name,
            "ecs.availability-zone": zone,
            "ecs.cpu-architecture": kind.architecture,
            "ecs.os-type": "linux",
            "ecs.os-family": "LINUX",
            **({GPU_SHARING_ATTRIBUTE: ""} if kind.shared_gpu_mib else {}),
            **own_attributes(kind, purchase, cell),
        }

    def disk_gib_of(self, kind: InstanceType) -> int:
        """Volume of an instance of the type in GiB."""
        named = (gib for glob, gib in self.disk_gib_by_type if fnmatchcase(kind.name, glob))
        return next(named, GPU_DISK_GIB if kind.gpus else CPU_DISK_GIB)

    def disk_mibps_of(self, kind: InstanceType) -> int:
        """Throughput of the volume in MiB/s: pulled images are written to it, and those for GPUs are large."""
        return 500 if kind.gpus >= 4 else 250 if kind.gpus or kind.vcpus >= 32 else INCLUDED_MIBPS

    def billed_disk_gib_of(self, kind: InstanceType) -> float:
        """GiB that cost as much as the volume with its throughput."""
        return self.disk_gib_of(kind) + (self.disk_mibps_of(kind) - INCLUDED_MIBPS) / 2

    def task_disk_gib_of(self, kind: InstanceType) -> int:
        """GiB of it that tasks may request together."""
        return max(0, self.disk_gib_of(kind) - SYSTEM_DISK_GIB)

    def most_tasks_of(self, instance_type: str) -> int:
        """The most tasks that an instance of the type runs at a time, whatever they need."""
        named = (tasks for glob, tasks in self.most_tasks_by_type if fnmatchcase(instance_type, glob))
        return next(named, BRIDGE_PORTS)
