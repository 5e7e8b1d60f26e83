"""Use of queue caps and vCPU quotas, and the rest of them during a tick.

A task uses the share of its instance that it reserves: the largest of its shares of cpu, memory and GPUs. That share of
the instance and of its price counts against the caps of its queue, and that share of its vCPUs against the instance's
quota (decision 47). Unreserved capacity is charged to no queue. Instances ordered for a queue, or on their way to it,
count whole against caps; incoming vCPUs belong to no queue but still use up the quota. Daemons belong to no queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from argosy.catalogue.quotas import quota_key
from argosy.market.limits import QuotaKey
from argosy.market.offers import cost_of
from argosy.model.instances import Purchase
from argosy.model.moment import Moment
from argosy.model.money.occupancy import part_of
from argosy.model.policy import Policy
from argosy.model.pools import CAPACITY_BLOCK
from argosy.model.resources import AXES, CPU_UNITS_PER_VCPU, Resources
from argosy.model.run_terms import DEFAULT_QUEUE
from argosy.model.sharers import queue_of_run
from argosy.model.shares.sharing import UNITS, Cap, ShareQueue
from argosy.model.state import State
from argosy.placement.arrays import FloatArray
from argosy.placement.supply import Supply
from argosy.scheduler.supply.roster import PlacementRows
from argosy.sharing.bounds import NO_CAP
from argosy.sharing.columns import BoolArray, IntArray

USD, CPU, GPUS, INSTANCES = range(4)  # the columns of every array of units
SCALE = (100_000, CPU_UNITS_PER_VCPU, 1, 1 << 18)  # units in a dollar an hour, a vCPU, a GPU and an instance
_AT_CAP = "queue {} is at its cap of {}"
NEEDS_MORE = "a task needs {}, {} is {}"  # the reason of a run whose tasks can never fit the limit
_SAID = ("{:,.2f} USD an hour", "{:,g} vCPUs", "{:,g} GPUs", "{:,g} instances")


def queues_by_number(state: State) -> dict[int, str]:
    """The queues of live attempts, by Run.number, except daemons. Tasks of suspended runs continue."""
    queues = state.sharing.queues()
    held = [found.record for found in state.suspended.values() if not found.record.is_daemon]
    suspended = {record.number: record.queue if record.queue in queues else DEFAULT_QUEUE for record in held}
    runs = [run for run in state.runs.values() if not run.is_daemon]
    return suspended | {run.number: queue_of_run(run, queues) for run in runs}


def at_cap(queue: str, cap: Cap, unit: int) -> str:
    """The reason of a run that waits for it."""
    amount = _SAID[unit].format(cap[unit])
    return _AT_CAP.format(queue, amount.removesuffix("s") if unit and cap[unit] == 1 else amount)


def is_at_cap(sentence: str) -> bool:
    """Whether a cap or another limit that a task can never fit is why tasks wait."""
    before, _, after = _AT_CAP.partition("{} is")
    is_cap = sentence.startswith(before) and f" is{after.partition('{}')[0]}" in sentence
    return is_cap or sentence.startswith(NEEDS_MORE.partition("{}")[0])


def units_of(needs: Resources, size: Resources, usd_per_hour: float) -> tuple[int, int, int, int]:
    """The units of a task on an instance of that size. Rounded down, so that whole instances do not exceed their
    size."""
    part = needs.share_of(size)
    return int(usd_per_hour * part * SCALE[USD]), needs.cpu_units, needs.gpus, int(part * SCALE[INSTANCES])


def left_of(cap: Cap) -> list[int]:
    """The whole cap, in units; NO_CAP where it is infinite."""
    return [NO_CAP if each == np.inf else round(each * scale) for each, scale in zip(cap, SCALE, strict=True)]


def use_by_run(state: State, numbers: Collection[int]) -> dict[int, list[int]]:
    """By Run.number, of those runs, the use of their live attempts: 4 units, then the same on warned instances
    alone."""
    known, table, needs = np.array(sorted(numbers), dtype=np.int64), state.attempts, state.needs_by_number()
    row_of = np.full(1 + max([int(table["run"].max(initial=0)), *numbers]), -1)
    row_of[known] = np.arange(len(known))
    placed = table.placed()
    placed = placed[row_of[table["run"][placed]] >= 0]
    run = row_of[table["run"][placed]]
    where = table.positions([*state.instances])[table.instance_number[placed]]  # -1: on an unknown instance
    sizes = np.array([*(each.size for each in state.instances.values()), Resources()], dtype=np.float64)
    prices = np.array([*(each.price_usd_per_hour for each in state.instances.values()), 0.0])
    wanted = np.array([needs[number] for number in known.tolist()], dtype=np.int64).reshape(-1, AXES)
    units = _units(wanted[run], sizes[where], prices[where])
    warned = np.array([*(bool(each.interrupted_at) for each in state.instances.values()), False])[where]
    sums = [_summed(run, column, len(known)) for column in units]
    sums += [_summed(run[warned], column[warned], len(known)) for column in units]
    return dict(zip(known.tolist(), np.array(sums, dtype=np.int64).T.tolist(), strict=True))


def _units(needs: IntArray, sizes: FloatArray, usd_per_hour: FloatArray) -> tuple[IntArray, ...]:
    """As `units_of`, of many tasks: (tasks,) each. needs, sizes: (tasks, AXES)."""
    part = part_of(needs.T, sizes.T)
    usd, instances = usd_per_hour * part * SCALE[USD], part * SCALE[INSTANCES]
    return usd.astype(np.int64), needs[:, 0], needs[:, 2], instances.astype(np.int64)


def _summed(run: IntArray, amounts: IntArray, runs: int) -> IntArray:
    """(runs,) exact below 2^53."""
    found: IntArray = np.bincount(run, weights=amounts, minlength=runs).astype(np.int64)
    return found


def usd_of_all(moment: Moment) -> float:
    """The cost per hour of all instances that are alive or may still come."""
    state, coming = moment.state, 0.0
    for (key, purchase), count in moment.promised.items():
        if kind := moment.catalogue.get(state.pools[key].instance_type):
            coming += count * cost_of(state.pools[key], kind, purchase, moment.now, moment.policy)
    return coming + sum(instance.price_usd_per_hour for instance in state.instances.values() if instance.alive)


@dataclass(frozen=True, slots=True)
class CapRoom:
    """The amounts that each queue may still use."""

    names: tuple[str, ...]  # of all queues, in the order of the document
    caps: tuple[Cap, ...]
    whole: IntArray  # (queues, 4); NO_CAP = any number
    used: IntArray  # (queues, 4)
    promised: tuple[ShareQueue, ...]  # the queues themselves
    leaving: IntArray  # (queues, 4) use on warned instances, which will be replaced

    @classmethod
    def of(cls, state: State) -> CapRoom:
        queues = state.sharing.queues()
        names = tuple(queues)
        row = {name: number for number, name in enumerate(names)}
        used, queue_of = np.zeros((len(names), 8), dtype=np.int64), queues_by_number(state)
        for number, units in use_by_run(state, queue_of).items():
            used[row[queue_of[number]]] += units
        caps = tuple(queues[name].cap for name in names)
        whole = np.array([left_of(cap) for cap in caps], dtype=np.int64)
        return cls(names, caps, whole, used[:, :4], tuple(queues.values()), used[:, 4:])

    @property
    def left(self) -> IntArray:
        """(queues, 4)"""
        found: IntArray = np.where(self.whole >= NO_CAP, NO_CAP, self.whole - self.used)
        return found

    @property
    def unit(self) -> IntArray:
        """(queues,) the unit of each guarantee."""
        units = [UNITS.index(each.guarantee.unit) if each.guarantee else 0 for each in self.promised]
        return np.array(units, dtype=np.int64)

    @property
    def amount(self) -> IntArray:
        """(queues,) the guaranteed amount; 0 = nothing."""
        known = [(each.guarantee, SCALE[unit]) for each, unit in zip(self.promised, self.unit, strict=True)]
        return np.array([round(each.amount * scale) if each else 0 for each, scale in known], dtype=np.int64)

    def kept(self, unit: int) -> dict[str, int]:
        """By queue that does not lend, the part of its guarantee that it lacks in this unit."""
        lacking = self.amount - self.used[np.arange(len(self.names)), self.unit]
        both = zip(self.names, self.promised, self.unit, lacking.tolist(), strict=True)
        return {name: short for name, queue, its, short in both if short > 0 and not queue.lend and its == unit}

    def less(self, rows: IntArray, units: IntArray) -> CapRoom:
        """The rest after further use. rows: (n,) of queues. units: (n, 4)."""
        taken = np.zeros_like(self.used)
        np.add.at(taken, rows, units)
        return replace(self, used=self.used + taken)

    def without_what_leaves(self) -> CapRoom:
        """As counted for future use: tasks of warned instances count where they will move to."""
        return self.less(np.arange(len(self.names)), -self.leaving)

    def why(self, queue: int, units: BoolArray) -> str:
        """The sentence about the first of these units; "" = none."""
        closed = np.flatnonzero(units)
        return at_cap(self.names[queue], self.caps[queue], int(closed[0])) if len(closed) else ""


def prices(moment: Moment, lineup: PlacementRows) -> FloatArray:
    """(rows,) USD an hour of each present or incoming instance."""
    instances, state = moment.state.instances, moment.state
    owed = {
        key: cost_of(pool, kind, key[1], moment.now, moment.policy)
        for key in {*lineup.owed.values()}
        if (kind := moment.catalogue.get((pool := state.pools[key[0]]).instance_type)) is not None
    }
    return np.array(
        [
            instances[name].price_usd_per_hour if name in instances else owed.get(lineup.owed[name], 0.0)
            for name in lineup.supply.ids
        ],
        dtype=np.float64,
    )


def parts(needs: Sequence[Resources], supply: Supply) -> FloatArray:
    """(tasks, rows) the share of each instance that a task takes."""
    wanted = np.array(needs, dtype=np.float64).reshape(-1, AXES)
    return part_of(wanted.T[:, :, None], supply.sizes[:, None, :])


def costs_on(needs: Sequence[Resources], supply: Supply, usd_per_hour: FloatArray) -> IntArray:
    """(tasks, 4) the units of a task on the instances that have room for it, averaged over their places."""
    known: dict[Resources, list[int]] = {}
    for each in dict.fromkeys(needs):
        part = parts([each], supply)[0]
        wanted = np.array(each, dtype=np.int64)[:, None]
        free = np.concatenate([np.maximum(supply.free, 0), supply.sizes[3:]])
        places = np.where(wanted > 0, free // np.maximum(wanted, 1), 1 << 40).min(axis=0)
        whole = max(1.0, float(places.sum()))
        usd, of_one = float((places * part * usd_per_hour).sum()) / whole, float((places * part).sum()) / whole
        known[each] = [int(usd * SCALE[USD]), each.cpu_units, each.gpus, int(of_one * SCALE[INSTANCES])]
    return np.array([known[each] for each in needs], dtype=np.int64).reshape(-1, 4)


OF_A_VCPU = 1 << 10  # units of a vCPU


def quotas_of(policy: Policy) -> Mapping[QuotaKey, int]:
    """vCPUs."""
    return {(cell, purchase, family): vcpus for cell, purchase, family, vcpus in policy.vcpu_quotas}


def vcpus_left(moment: Moment) -> Mapping[QuotaKey, int]:
    """The rest of each quota in the settings, without instances that EC2 still counts and without orders."""
    quotas = quotas_of(moment.policy)
    if not quotas:
        return {}
    used: Counter[QuotaKey] = Counter()

    def use(cell: str, instance_type: str, purchase: str, count: int) -> None:
        used[cell, purchase, quota_key(instance_type, purchase)] += count * _vcpus(moment, instance_type)

    for instance in moment.state.instances.values():
        if instance.alive and instance.owned:
            use(instance.cell, instance.instance_type, instance.purchase.value, 1)
    for (key, purchase), count in moment.promised.items():
        pool = moment.state.pools[key]
        use(pool.cell, pool.instance_type, purchase.value, count)
    for pool in moment.state.pools.values():  # EC2 counts all of a reservation, used or not, except of a block
        if pool.reservation and pool.reserved_as != CAPACITY_BLOCK:
            use(pool.cell, pool.instance_type, Purchase.ON_DEMAND.value, pool.reserved)
    return {key: vcpus - used[key] for key, vcpus in quotas.items()}


def use_of_quotas(moment: Moment, keys: Sequence[QuotaKey]) -> dict[int, IntArray]:
    """By Run.number, (keys,) the use of its live attempts, in units of `OF_A_VCPU`. Runs without use are left out."""
    if not keys:
        return {}
    state, table = moment.state, moment.state.attempts
    placed, place = table.placed(), {key: number for number, key in enumerate(keys)}
    instances = [*state.instances.values()]
    where = table.positions([each.id for each in instances])[table.instance_number[placed]]  # -1: unknown
    draws_on = [
        place.get((i.cell, i.purchase.value, quota_key(i.instance_type, i.purchase.value)), -1) if i.owned else -1
        for i in instances
    ]
    key = np.array([*draws_on, -1], dtype=np.int64)[where]
    placed, where, key = placed[key >= 0], where[key >= 0], key[key >= 0]
    if not len(placed):
        return {}
    sizes = np.array([*(each.size for each in instances), Resources()], dtype=np.float64)
    vcpus = np.array([*(_vcpus(moment, each.instance_type) for each in instances), 0])
    numbers, row = np.unique(table["run"][placed], return_inverse=True)
    known = state.needs_by_number()
    needs = np.array([known.get(number, Resources()) for number in numbers.tolist()], dtype=np.int64).reshape(-1, AXES)
    units = (part_of(needs[row].T, sizes[where].T) * vcpus[where] * OF_A_VCPU).astype(np.int64)
    found = np.zeros((len(numbers), len(keys)), dtype=np.int64)
    np.add.at(found, (row, key), units)
    return dict(zip(numbers.tolist(), found, strict=True))


def _vcpus(moment: Moment, instance_type: str) -> int:
    kind = moment.catalogue.get(instance_type)
    return kind.vcpus if kind else 0
