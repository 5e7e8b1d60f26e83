"""Which numbers steer the controller? Everything in seconds unless its name says otherwise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import NamedTuple

from argosy.model.instance_types import InstanceType
from argosy.model.run_terms import RUNNER_ATTRIBUTE, RUNNER_PROTOCOL

# GiB of an instance's only volume unless the owner says otherwise. The AMI takes 30; the rest is for images, each of
# several GB with CUDA, and for what tasks write.
CPU_DISK_GIB, GPU_DISK_GIB = 60, 150
SYSTEM_DISK_GIB = 30  # of it, for the AMI, Docker and images; tasks that ask for disk share the rest
# Interfaces of one Linux bridge: BR_PORT_BITS of net/bridge/br_private.h, less one that is never given away. Our tasks
# are in bridge mode, so each has one on docker0; the next one fails with "exchange full" (moby/moby issue 44973).
BRIDGE_PORTS = 1_023


class VcpuQuota(NamedTuple):
    """How many vCPUs of a quota family we may have at once in a cell, by one way of purchase."""

    cell: str
    purchase: str  # spot | on-demand
    family: str  # catalogue.quotas: standard, g, p, ...
    vcpus: int


@dataclass(frozen=True, slots=True)
class Policy:
    """Bounds and patience of the controller. Settings may change them; local mode shortens them."""

    linger_s: float = 300.0  # how long an instance may idle before it is let go
    linger_by_type: tuple[tuple[str, float], ...] = ()  # (glob, seconds) for some types; the first that matches counts
    attributes_by_type: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()  # (glob, (name, value)s) for types
    disk_gib_by_type: tuple[tuple[str, int], ...] = ()  # (glob, GiB) for some types; the first that matches counts
    most_tasks_by_type: tuple[tuple[str, int], ...] = ()  # (glob, tasks) for some types; the first that matches counts
    cool_down_s: float = 120.0  # nothing idle of a type is let go for so long after more of it was ordered
    min_idle: int = 0  # so many idle instances are kept, work or no work
    min_instances: int = 0  # the cluster is kept at least this large while runs are open
    max_instances: int = 200  # alive or ordered, over all pools
    wave_size: int = 100  # launches: `startedBy` must find a wave in one page of a listing
    max_launches_per_tick: int = 2_000  # in waves, over all cells
    launches_per_cell: int = 250  # of a tick: 40 calls a second for 5 s, and the burst that was saved up before
    launch_rate: float = 40.0  # a second, of a cell: AWS's limit in the long run
    max_verifications_per_tick: int = 400
    max_dirty_documents: int = 60  # a transaction holds 100 items: facts wait for the next tick beyond this
    max_settling_documents: int = 72  # the settling of lost instances goes on up to here, whatever facts come in
    full_commit_documents: int = 78  # and what a tick decides, beyond this
    max_dirty_bytes: int = 2_500_000  # the same in bytes: a transaction holds 4 MB
    full_commit_bytes: int = 2_800_000
    max_named_instances: int = 4_000  # beyond so many a run's record forgets those that ended: an item holds 400 KB
    max_promised_documents: int = 30  # records and chunks of runs that the outcomes of one tick may touch
    max_setbacks: int = 20  # rounds in a row, of closing a run or looking its results up; backed off to a minute each
    refusal_patience_s: float = 900.0  # a run that AWS refuses (no rights, an unknown 4xx) is given up after so long
    outage_patience_s: float = 3600.0  # the same where S3 throttles or does not answer: that passes by itself
    max_type_share: float = 1.0  # of the cpu of all instances, that of one instance type; 1 = any
    max_cell_share: float = 1.0  # and that of one cell
    vcpu_quotas: tuple[VcpuQuota, ...] = ()  # those that are known; the others are unlimited
    data_cell: str = ""  # where runs' data and images lie; "" = traffic between Regions is not priced
    public_addresses: bool = True  # whether instances have a public IPv4 address, which is billed
    foreign_patience_s: float = 10.0  # what tasks that are not ours take counts once it has been seen for this long
    refusal_pause_s: float = 15.0  # an instance that had no room for a task is left alone; doubled each time
    growth_per_tick: int = 50  # instances newly ordered at once
    sweep_s: float = 120.0  # DESIGN D5
    eager_sweep_s: float = 15.0  # while instances are owed or booting
    health_s: float = 15.0  # between two looks at the health of a service's tasks while it changes; else `sweep_s`
    health_looks_per_tick: int = 1_000  # tasks, 100 in a call
    order_patience_s: float = 180.0  # a fleet that owes us longer than this is short
    cool_off_s: float = 180.0  # how long a short pool is shunned (as Karpenter does)
    cool_off_max_s: float = 3600.0  # each further shortage doubles the cool-off, up to this
    history_every_s: float = 900.0  # EC2 is asked at most this often why a fleet that runs short again does so,
    history_reads_per_tick: int = 5  # and for so many fleets at a time
    cool_off_fade_s: float = 3600.0  # half-life of the number of shortages once a cool-off is over
    price_limit_s: float = 86_400.0  # a spot price that was seen longer ago is not believed: on-demand's is assumed
    rate_half_life_s: float = 21_600.0  # of our own interruption counts (decision 8)
    attempt_s: float = 600.0  # how long an attempt takes, while no run can tell
    wind_down_s: float = 60.0  # from the decision to stop a run to the end of its instances: kept back of its budget
    finish_s: float = 3600.0  # an attempt may take this long once its run's budget is used up, if no estimate is known
    boot_s: float = 180.0  # from the launch of an instance to its first task, paid and useless
    planned_life_s: float = 3600.0  # how long an instance is used when nothing interrupts it
    max_usd_per_hour: float = math.inf  # price caps: what costs more an hour is not bought,
    max_usd_per_vcpu_hour: float = math.inf  # nor what costs more for each vCPU, of types without GPUs,
    max_usd_per_gpu_hour: float = math.inf  # or for each GPU
    max_unregistered: int = 3  # so many in a row, and their pool is not asked again for `cool_off_max_s`
    hand_over_s: float = 80.0  # of a warning's 120, in which a service's task may serve on: then it is told to stop
    warning_patience_s: float = 600.0  # a warning is for two minutes: one that has not come true by then never will
    daemon_end_s: float = 45.0  # from the decision to let go of an instance; ECS ends a task 30 s after it is told to
    drain_patience_s: float = 3600.0  # what still runs on an instance that has been DRAINING so long is stopped
    try_spot_s: float = 900.0  # until a run that went to on-demand tries spot again; doubled each time, up to 4 x
    register_patience_s: float = 900.0  # a running instance that never registers is let go
    absence_s: float = 300.0  # absence from listings is proof only after this quiet time
    intent_age_s: float = 600.0  # older intents are never sent again (DESIGN D4)
    takeover_s: float = 900.0  # for so long another controller may yet send what it intended: Lambda ends it then
    ecs_memory_s: float = 3000.0  # ECS shows stopped tasks for an hour; from then on absence says nothing of a launch
    stop_again_s: float = 60.0  # a stop that showed no effect is asked for again
    pending_patience_s: float = 600.0  # launched but not running: stuck
    agent_patience_s: float = 600.0  # an instance whose agent stays silent is let go, its tasks are started elsewhere
    quick_failure_s: float = 60.0  # an attempt that fails sooner speaks against its instance
    max_strikes: int = 3  # so many of them in a row, and the instance gets no more work
    unaffordable_patience_s: float = 3600.0  # a run whose hourly cap is below every price waits so long for a lower one
    max_losses: int = 20  # attempts of one task lost to infrastructure
    max_start_failures: int = 3  # attempts of one task whose container could not be pulled, created or started
    fate_s: float = 10.0  # an instance that still runs so long after an attempt failed there had no part in that
    fate_patience_s: float = 600.0  # for so long EC2 is asked; after that the failure is the user's
    alike_failures: int = 5  # so many tasks failing alike, and none succeeding, stop the run
    start_s: float = 5.0  # from a launch to its program's first line, the image at hand: what plans assume
    retry_backoff_s: float = 1.0  # doubled for each failure of the task, at most 60 s
    machine_vcpus: float = 0.0  # of the one machine that all instances are (local mode); 0: each is its own
    forget_instance_s: float = 3600.0  # how long an instance that is gone is remembered

    def without_price_caps(self) -> Policy:
        """For what could be bought at any price."""
        free = math.inf
        return replace(self, max_usd_per_hour=free, max_usd_per_vcpu_hour=free, max_usd_per_gpu_hour=free)

    def linger_of(self, instance_type: str) -> float:
        """How long an instance of the type may idle: seconds."""
        named = (seconds for glob, seconds in self.linger_by_type if fnmatchcase(instance_type, glob))
        return next(named, self.linger_s)

    def attributes_of(self, instance_type: str) -> dict[str, str]:
        """What an instance of the type is registered with: the owner's attributes, and that it has our runner."""
        return {**self.own_attributes_of(instance_type), RUNNER_ATTRIBUTE: str(RUNNER_PROTOCOL)}

    def own_attributes_of(self, instance_type: str) -> dict[str, str]:
        """The owner's attributes of an instance of the type; of several globs that match, the first counts."""
        found: dict[str, str] = {}
        for glob, given in self.attributes_by_type:
            if fnmatchcase(instance_type, glob):
                found = {**dict(given), **found}
        return found

    def disk_gib_of(self, kind: InstanceType) -> int:
        """How large the volume of an instance of the type is: GiB, as launched and as paid for."""
        named = (gib for glob, gib in self.disk_gib_by_type if fnmatchcase(kind.name, glob))
        return next(named, GPU_DISK_GIB if kind.gpus else CPU_DISK_GIB)

    def task_disk_gib_of(self, kind: InstanceType) -> int:
        """How much of it tasks may ask for together: GiB."""
        return max(0, self.disk_gib_of(kind) - SYSTEM_DISK_GIB)

    def most_tasks_of(self, instance_type: str) -> int:
        """How many tasks an instance of the type runs at a time at most, whatever they need."""
        named = (tasks for glob, tasks in self.most_tasks_by_type if fnmatchcase(instance_type, glob))
        return next(named, BRIDGE_PORTS)
