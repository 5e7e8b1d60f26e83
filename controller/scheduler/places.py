"""Which pending task goes where: onto active instances now, onto ordered ones soon, and what is left over?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice

from controller.catalogue.types import InstanceType
from controller.market.offers import PURCHASE_ATTRIBUTE, expected_attributes, resources_of
from controller.model.actions import Launch
from controller.model.instances import Instance, InstanceStatus, Purchase
from controller.model.policy import Policy
from controller.model.resources import Resources
from controller.model.runs import Run
from controller.model.state import State
from controller.placement.demand import Batch
from controller.placement.place import place
from controller.placement.supply import InstanceRow, Supply
from controller.scheduler.upkeep import next_key

ON_DEMAND_ONLY = f"attribute:{PURCHASE_ATTRIBUTE} == {Purchase.ON_DEMAND}"
SPOT_ONLY = f"attribute:{PURCHASE_ATTRIBUTE} == {Purchase.SPOT}"


@dataclass(frozen=True, slots=True)
class Places:
    """The outcome of placing every ready run's pending tasks."""

    runs: tuple[Run, ...]  # those that asked for places, in queue order
    batches: tuple[Batch, ...]  # what each asked for
    launches: tuple[Launch, ...]  # at most one plan's worth
    wanted: frozenset[str]  # instances, booting or idle, that got work or are promised some
    owed_used: Mapping[tuple[str, Purchase], int]  # (pool, purchase) -> ordered instances that the demand needs
    left_over: tuple[Batch, ...]  # per run, what found no place: the demand to buy for
    instances_per_run: tuple[int, ...]  # how many instances each run has or is promised


def assign(state: State, catalogue: Mapping[str, InstanceType], now: float, policy: Policy) -> Places:
    """Place the pending tasks of all ready runs, first come first served."""
    runs = tuple(run for run in state.runs.values() if run.ready)
    batches = tuple(batch_of(state, run, now + policy.linger_s) for run in runs)
    rows = active_rows(state)
    placed = place(batches, Supply.of(rows))
    launches, wanted, per_run = [], set(), [_instances_in_use(state, run) for run in runs]
    room = policy.max_launches_per_tick
    next_index = {run.id: iter(run.tasks.startable(now, room).tolist()) for run in runs}
    for batch, row, count in zip(placed.batch.tolist(), placed.row.tolist(), placed.count.tolist(), strict=True):
        instance = state.instances[rows[row].id]
        wanted.add(instance.id)
        per_run[batch].add(instance.id)
        run = runs[batch]
        indexes = list(islice(next_index[run.id], min(room, count)))
        room -= len(indexes)
        launches += [_launch(state, run, index, instance) for index in indexes]
    rest = [
        replace(batch, count=unplaced + _soon_lost(state, run))
        for run, batch, unplaced in zip(runs, batches, placed.unplaced.tolist(), strict=True)
    ]
    coming, owed = coming_rows(state, catalogue)
    later = place(rest, Supply.of(coming))
    owed_used: Counter[tuple[str, Purchase]] = Counter()
    for batch, row in sorted(set(zip(later.batch.tolist(), later.row.tolist(), strict=True))):
        per_run[batch].add(coming[row].id)
    for row in set(later.row.tolist()):
        if (order := owed.get(coming[row].id)) is not None:
            owed_used[order] += 1
        else:
            wanted.add(coming[row].id)
    left_over = tuple(
        replace(batch, count=count) for batch, count in zip(batches, later.unplaced.tolist(), strict=True)
    )
    return Places(
        runs, batches, tuple(launches), frozenset(wanted), owed_used, left_over, tuple(len(ids) for ids in per_run)
    )


def batch_of(state: State, run: Run, until: float) -> Batch:
    """What a run asks for: its tasks that may start before `until`, within its cap on concurrent ones.

    Tasks in back-off get a place in mind, so that nobody lets their instances go meanwhile, but are not launched.
    """
    count = run.tasks.startable_count(until)
    if run.max_concurrent is not None:
        count = max(0, min(count, run.max_concurrent - len(state.attempts.of_run(run.number))))
    purchase = {"spot": (SPOT_ONLY,), "on-demand": (ON_DEMAND_ONLY,)}.get(run.purchase, ())
    return Batch(
        cpu_units=run.needs.cpu_units,
        memory_mib=run.needs.memory_mib,
        gpus=run.needs.gpus,
        count=count,
        group=run.group,
        constraints=run.constraints + purchase,
        strategy=run.strategy,
    )


def active_rows(state: State) -> list[InstanceRow]:
    """The instances that may be given work, with what is free on them, in a stable order."""
    used = state.used_by_instance()
    groups = _running_by_group(state)
    return [
        _row(instance, *used.get(instance.id, (Resources(), 0)), groups.get(instance.id, {}))
        for instance in sorted(state.instances.values(), key=lambda i: (i.registered_at, i.id))
        if instance.placeable
    ]


def coming_rows(
    state: State, catalogue: Mapping[str, InstanceType]
) -> tuple[list[InstanceRow], dict[str, tuple[str, Purchase]]]:
    """Instances that boot, then those that fleets owe us; and which (pool, purchase) each of the latter is owed by."""
    rows, owed = [], {}
    for instance in sorted(state.instances.values(), key=lambda i: i.id):
        kind = catalogue.get(instance.instance_type)
        if instance.status is InstanceStatus.BOOTING and kind and not instance.interrupted_at:
            rows.append(_expected(instance.id, kind, instance.zone, instance.purchase))
    held = state.held()
    for pool in sorted(state.pools.values(), key=lambda p: p.key):
        for purchase, target in ((Purchase.SPOT, pool.spot_target), (Purchase.ON_DEMAND, pool.on_demand_target)):
            for number in range(target - held[pool.key, purchase] if pool.instance_type in catalogue else 0):
                row_id = f"owed/{pool.key}/{purchase}/{number}"
                owed[row_id] = (pool.key, purchase)
                rows.append(_expected(row_id, catalogue[pool.instance_type], pool.zone, purchase))
    return rows, owed


def _launch(state: State, run: Run, index: int, instance: Instance) -> Launch:
    key = next_key(run.id, index, int(run.tasks["attempts"][index]), int(run.tasks["launch"][index]))
    return Launch(key, state.next_plan, state.started_by(state.next_plan), instance.id, instance.cell)


def _instances_in_use(state: State, run: Run) -> set[str]:
    return {name.decode() for name, runs in state.attempts.runs_on_instance.items() if runs[run.number]}


def _soon_lost(state: State, run: Run) -> int:
    """Tasks on instances that were warned: the shortfall is bought in the same tick (DESIGN D10)."""
    warned = [i.id.encode() for i in state.instances.values() if i.alive and i.interrupted_at]
    on_instance = state.attempts.runs_on_instance
    return sum(on_instance[name][run.number] for name in warned if name in on_instance)


def _running_by_group(state: State) -> dict[str, dict[str, int]]:
    groups = {run.number: run.group for run in state.runs.values()}
    return {
        name.decode(): {groups[number]: count for number, count in runs.items() if count and number in groups}
        for name, runs in state.attempts.runs_on_instance.items()
    }


def _row(instance: Instance, used: Resources, tasks: int, groups: Mapping[str, int]) -> InstanceRow:
    free = instance.total.minus(used)
    return InstanceRow(
        id=instance.id,
        cpu_units=max(0, free.cpu_units),
        memory_mib=max(0, free.memory_mib),
        gpus=max(0, free.gpus),
        total_cpu_units=instance.total.cpu_units,
        total_memory_mib=instance.total.memory_mib,
        total_gpus=instance.total.gpus,
        attributes={**instance.attributes, PURCHASE_ATTRIBUTE: instance.purchase.value},
        registered_at=instance.registered_at,
        running_tasks=tasks,
        running_by_group=groups,
        lifecycle=instance.purchase.value,
        price_usd_per_hour=instance.price_usd_per_hour,
    )


def _expected(row_id: str, kind: InstanceType, zone: str, purchase: Purchase) -> InstanceRow:
    cpu_units, memory_mib, gpus = resources_of(kind)
    return InstanceRow(
        id=row_id,
        cpu_units=cpu_units,
        memory_mib=memory_mib,
        gpus=gpus,
        total_cpu_units=cpu_units,
        total_memory_mib=memory_mib,
        total_gpus=gpus,
        attributes=expected_attributes(kind, zone, purchase),
        lifecycle=purchase.value,
    )
