"""Instances as rows for placement, with the expectations that a strategy reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from argosy.catalogue.lookup import load_catalogue
from argosy.market.daemons import Daemon, DaemonRoom, Uses, kept_for
from argosy.market.offers import interruption_rate_of, reserved_until
from argosy.model.instance_types import PURCHASE_ATTRIBUTE, own_attributes
from argosy.model.instances import Instance, InstanceStatus, Purchase
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.pools import Pool
from argosy.model.resources import Resources
from argosy.model.run_terms import Port
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.placement.gpu_shares import OF_SEVERAL, UNUSED, GpuUse
from argosy.placement.strategy import FINISH_TOGETHER, LEAST_INTERRUPTED, may_read
from argosy.placement.supply import InstanceRow, Supply

COUNTED_ON = 3  # refusals in a row for lack of room; then tasks stop waiting for an instance


class TaskUse(NamedTuple):
    """The resources of each task of a run."""

    needs: Resources
    group: str | None = None  # None: the run is suspended
    host_ports: tuple[Port, ...] = ()
    disk_gib: int = 0
    gpu_owner: int = 0
    """The number of its owner, if it shares a GPU."""

    @property
    def taken(self) -> Uses:
        """Its share of the needs of daemons."""
        return Uses(self.needs, self.disk_gib)


def uses_by_number(state: State) -> dict[int, TaskUse]:
    """By Run.number, of open and suspended runs; tasks of suspended runs continue."""
    suspended = {
        found.record.number: TaskUse(found.record.needs, gpu_owner=OF_SEVERAL) for found in state.suspended.values()
    }
    return suspended | {
        run.number: TaskUse(run.needs, run.group, run.host_ports, run.terms.disk_gib, gpu_owner_of(run))
        for run in state.runs.values()
    }


def gpu_owner_of(run: Run) -> int:
    """A number for the owner of a run that shares GPUs, the same in every process; 0 = it shares none."""
    if not run.needs.gpu_share_mib:
        return 0
    named = f"named {run.terms.owner}" if run.terms.owner else f"queue {run.terms.queue}"
    return _number_of(f"proven {run.proven_owner}" if run.proven_owner else named)


@cache
def _number_of(owner: str) -> int:
    return 1 + int.from_bytes(sha256(owner.encode()).digest()[:7])


def row_of(
    instance: Instance,
    runs: Mapping[int, int],
    uses: Mapping[int, TaskUse],
    policy: Policy,
    daemons: Sequence[Daemon] = (),
) -> InstanceRow:
    """A registered instance. runs: by Run.number, its live attempts there. daemons: the room they will need is not
    free; their tasks are not work, so the instance is as idle as without them."""
    kind = load_catalogue().get(instance.instance_type)
    cpu, memory, gpus, _ = instance.total.minus(instance.foreign)
    disk = policy.task_disk_gib_of(kind) if kind else 0
    strangers = tuple(sorted(mib for mib in instance.foreign_shares if mib))
    whole, shared = 0, GpuUse(strangers, owner=OF_SEVERAL) if strangers else UNUSED
    groups: dict[str, int] = {}
    ports: frozenset[Port] = frozenset()
    for number, count in runs.items():
        use = uses.get(number)
        if use is None or not count:
            continue
        cpu -= count * use.needs.cpu_units
        memory -= count * use.needs.memory_mib
        gpus -= count * use.needs.gpus
        whole += count * use.needs.gpus
        shared = shared.plus(use.needs.gpu_share_mib, count, use.gpu_owner)
        if use.group is not None:
            groups[use.group] = groups.get(use.group, 0) + count
            ports, disk = ports.union(use.host_ports), disk - count * use.disk_gib
    attributes = attributes_of(instance)
    here = {number: uses[number].taken for number, count in runs.items() if count and number in uses}
    whole_disk = policy.task_disk_gib_of(kind) if kind else 0
    kept = kept_for(daemons, attributes, instance.size, whole_disk, here) if daemons else DaemonRoom()
    of_daemons = sum(runs.get(number, 0) for each in daemons for number in (each.number, *each.others))
    free = Resources(cpu, memory, gpus).beyond(kept.resources)
    return InstanceRow(
        instance.id,
        *free.cpu_memory_gpus,
        *instance.total.cpu_memory_gpus,
        attributes=attributes,
        used_host_ports=ports | kept.host_ports,
        gpu_memory_mib=instance.gpu_memory_mib,
        gpu_use=replace(shared, whole_unknown=whole) if instance.gpu_memory_mib else UNUSED,
        disk_gib=disk - kept.disk_gib,
        most_tasks=max(0, policy.most_tasks_of(instance.instance_type) - of_daemons - kept.tasks),
        registered_at=instance.registered_at,
        running_tasks=sum(runs.values()) - of_daemons,
        running_by_group=groups,
        images=instance.images,
        price_usd_per_hour=instance.price_usd_per_hour,
    )


def on_known_gpus(row: InstanceRow, state: State, uses: Mapping[int, TaskUse]) -> InstanceRow:
    """The row of an instance, with the tasks on those of its GPUs that ECS has named. `row_of` takes none as known."""
    if row.gpu_use == UNUSED:
        return row
    table, whole, shared = state.attempts, 0, UNUSED
    known = Counter({1 << bit: mib for bit, mib in enumerate(state.instances[row.id].foreign_shares) if mib})
    for place in table.on_instance(row.id):
        use, mask = uses.get(int(table["run"][place])), int(table["gpu_mask"][place])
        if use is not None and mask and use.needs.gpu_share_mib:
            known[mask] += use.needs.gpu_share_mib
        elif use is not None and not mask:
            whole, shared = whole + use.needs.gpus, shared.plus(use.needs.gpu_share_mib)
    known_mib = tuple(sorted(known.values()))
    return replace(row, gpu_use=replace(shared, known_mib=known_mib, whole_unknown=whole, owner=row.gpu_use.owner))


def attributes_of(instance: Instance) -> dict[str, str]:
    """The attributes that ECS has for a registered instance, and our own."""
    kind = load_catalogue().get(instance.instance_type)
    own = own_attributes(kind, instance.purchase, instance.cell)
    return instance.attributes | own | reserved_until(instance.empty_by)


def pauses(instance: Instance, now: float) -> bool:
    """Whether it will probably take tasks again soon; an instance with repeated refusals is not counted on."""
    return instance.placeable and instance.paused_until > now and instance.refusals < COUNTED_ON


def may_still_come(instance: Instance, now: float, policy: Policy) -> bool:
    """Whether tasks may count on it: it boots, is not about to go, and has not been silent for too long."""
    leaving = instance.interrupted_at or instance.rebalance_at or instance.cordon
    late = now - instance.launched_at >= policy.register_patience_s
    return instance.status is InstanceStatus.BOOTING and not (leaving or late)


class ExpectedRows:
    """Rows of incoming instances, as far as they can be predicted."""

    def __init__(self, moment: Moment, daemons: Sequence[Daemon] = ()) -> None:
        """daemons: the room they will need is not free there."""
        self._moment, self._daemons = moment, daemons
        self._made: dict[tuple[str, str, str, Purchase, float], InstanceRow | None] = {}

    def of(self, at: Instance | Pool, purchase: Purchase) -> InstanceRow | None:
        """Without its id. None for a type that the catalogue lacks."""
        key = at.cell, at.instance_type, at.zone, purchase, at.empty_by
        if key not in self._made:
            self._made[key] = self._row(at, purchase)
        return self._made[key]

    def _row(self, at: Instance | Pool, purchase: Purchase) -> InstanceRow | None:
        kind, policy = self._moment.catalogue.get(at.instance_type), self._moment.policy
        if kind is None:
            return None
        size = kind.resources
        attributes = policy.expected_attributes(kind, at.zone, purchase, at.cell)
        attributes |= reserved_until(at.empty_by - policy.boot_s)
        disk, most = policy.task_disk_gib_of(kind), policy.most_tasks_of(kind.name)
        kept = kept_for(self._daemons, attributes, size, disk) if self._daemons else DaemonRoom()
        return InstanceRow(
            "",
            *size.beyond(kept.resources).cpu_memory_gpus,
            *size.cpu_memory_gpus,
            attributes,
            used_host_ports=kept.host_ports,
            gpu_memory_mib=kind.shared_gpu_mib,
            disk_gib=max(0, disk - kept.disk_gib),
            most_tasks=max(0, most - kept.tasks),
        )


@dataclass(frozen=True, slots=True)
class Expectations:
    """Empty if no strategy reads it."""

    rates: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(pool, purchase) -> expected interruptions per instance-hour."""
    ends: Mapping[str, float] = field(default_factory=dict)
    """Instance id -> epoch seconds when the last of its live attempts is expected to end."""

    @classmethod
    def of(cls, moment: Moment, runs: Sequence[Run]) -> Expectations:
        """The expectations that the strategies of `runs` read."""
        strategies = {run.terms.strategy for run in runs}
        return cls(
            rates=_rates(moment) if any(may_read(each, LEAST_INTERRUPTED) for each in strategies) else {},
            ends=_ends(moment) if any(may_read(each, FINISH_TOGETHER) for each in strategies) else {},
        )

    def on(self, supply: Supply, pool_of: Callable[[str], str]) -> Supply:
        """The supply with the expectations of its instances. pool_of: the key of an instance's pool, by its id."""
        if not (self.rates or self.ends):
            return supply
        rates = [self.rates.get((pool_of(row.id), row.attributes[PURCHASE_ATTRIBUTE]), 0.0) for row in supply.rows]
        ends = [self.ends.get(row.id, 0.0) for row in supply.rows]
        return replace(supply, interruption_rate=np.array(rates, float), finish_at=np.array(ends, float))


def expected_end(run: Run, now: float) -> float:
    """When a task of the run that starts now should end, for a batch: epoch seconds.

    0 = unknown, as long as no attempt has succeeded and the spec gives no array.expectedSeconds; or not needed.
    """
    if not may_read(run.terms.strategy, FINISH_TOGETHER):
        return 0.0
    seconds = run.mean_seconds(run.terms.expected_seconds)
    return 0.0 if seconds is None else now + float(seconds)


def _rates(moment: Moment) -> dict[tuple[str, str], float]:
    return {
        (key, purchase.value): interruption_rate_of(pool, purchase, moment.now, moment.policy)
        for key, pool in moment.state.pools.items()
        for purchase in Purchase
    }


def _ends(moment: Moment) -> dict[str, float]:
    """An attempt that has not started counts as if it started now; an overdue one may end at any time."""
    table, guess_s = moment.state.attempts, moment.policy.attempt_s
    live = table.live()
    runs, of_attempt = np.unique(table["run"][live], return_inverse=True)
    known = {run.number: run.expected_seconds(guess_s) for run in moment.state.runs.values()}
    seconds = np.array([known.get(number, guess_s) for number in runs.tolist()], dtype=np.float64)
    started = table["started_at"][live]
    ends = np.maximum(np.where(started > 0, started, moment.now) + seconds[of_attempt], moment.now)
    instances, of_attempt = np.unique(table["instance"][live], return_inverse=True)
    last = np.zeros(len(instances))
    np.maximum.at(last, of_attempt, ends)
    return {name.decode(): end for name, end in zip(instances.tolist(), last.tolist(), strict=True)}
