"""Which pending task goes where: onto active instances now, onto ordered ones soon, and what is left over?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from argosy.market.buy import NO_FITNESS
from argosy.market.offers import CELL_ATTRIBUTE, PURCHASE_ATTRIBUTE, expected_attributes, resources_of
from argosy.model.actions import Launch
from argosy.model.attempts import AttemptStatus
from argosy.model.instance_types import InstanceType
from argosy.model.instances import Instance, InstanceStatus, Purchase
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.pools import Pool
from argosy.model.resources import Resources
from argosy.model.run_terms import Port
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.placement.demand import Batch
from argosy.placement.fitness import Fitness
from argosy.placement.place import place
from argosy.placement.strategy import own_functions
from argosy.placement.supply import InstanceRow, Supply
from argosy.scheduler.asks import NO_BOUND, Ask, asks_of
from argosy.scheduler.here import place_now
from argosy.scheduler.outlook import Outlook
from argosy.scheduler.upkeep import next_key

COUNTED_ON = 3  # refusals in a row, for want of room, after which tasks do not wait for an instance any more


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
    coming_per_run: tuple[int, ...]  # how many of its tasks wait for instances on their way
    counted_on: tuple[frozenset[str], ...] = ()  # per run, the ids of the instances that it has or is promised
    owed: Mapping[str, tuple[str, Purchase]] = field(default_factory=dict)  # by id, of those that are only ordered
    ordinary: Mapping[int, Batch] = field(default_factory=dict)  # by row of runs, what has its turn after left_over
    usd_rooms: tuple[float, ...] = ()  # per run, how many USD an hour more may be bought; empty = no caps
    at_once: frozenset[str] = frozenset()  # instances that do not linger when they idle


def assign(
    state: State,
    catalogue: Mapping[str, InstanceType],
    now: float,
    policy: Policy,
    fitness: Mapping[str, Fitness] = NO_FITNESS,
    at_most: Mapping[str, int] = NO_BOUND,
) -> Places:
    """Place the pending tasks of all ready runs, first come first served. `fitness`: users' own functions; a run that
    names another one is left out. `at_most`: by run id, for how many tasks it may ask."""
    runs = tuple(
        run
        for run in state.runs.values()
        if run.ready and all(name in fitness for name in own_functions(run.terms.strategy))
    )
    asks = asks_of(state, runs, now, policy, at_most)
    rows = active_rows(state, now)
    coming, owed = coming_rows(state, catalogue, now, policy)
    outlook = Outlook.of(Moment(state, catalogue, now, policy), runs)
    rows = outlook.on(rows, lambda name: state.instances[name].pool)
    coming = outlook.on(coming, lambda name: owed[name][0] if name in owed else state.instances[name].pool)
    placed, not_here = place_now([ask.batch for ask in asks], rows, coming, fitness)
    wanted, per_run = {rows[row].id for _, row in placed}, [_instances_in_use(state, run) for run in runs]
    for number, row in placed:
        per_run[asks[number].run].add(rows[row].id)
    here = [((number, rows[row].id), count) for (number, row), count in sorted(placed.items())]
    launches = _launches(state, runs, asks, here, now, policy)
    last = {ask.run: number for number, ask in enumerate(asks)}  # the ask for its ordinary tasks
    rest = [
        replace(ask.batch, count=unplaced + (_soon_lost(state, runs[ask.run]) if last[ask.run] == number else 0))
        for number, (ask, unplaced) in enumerate(zip(asks, not_here, strict=True))
    ]
    rest = [_still_allowed(batch, runs[ask.run], len(per_run[ask.run])) for ask, batch in zip(asks, rest, strict=True)]
    later = place(rest, Supply.of(coming), fitness=fitness)
    for number, row in sorted(set(zip(later.batch.tolist(), later.row.tolist(), strict=True))):
        per_run[asks[number].run].add(coming[row].id)
    needed = {coming[row].id for row in later.row.tolist()}
    wanted |= needed - owed.keys()
    coming_per_run = [0] * len(runs)
    for ask, batch, unplaced in zip(asks, rest, later.unplaced.tolist(), strict=True):
        coming_per_run[ask.run] += batch.count - unplaced
    return Places(
        runs=runs,
        batches=tuple(asks[number].batch for number in last.values()),
        launches=tuple(launches),
        wanted=frozenset(wanted),
        owed_used=Counter(owed[name] for name in needed & owed.keys()),
        left_over=_left_over(asks, later.unplaced.tolist()),
        ordinary=_ordinary(asks, later.unplaced.tolist()),
        instances_per_run=tuple(len(ids) for ids in per_run),
        coming_per_run=tuple(coming_per_run),
        counted_on=tuple(frozenset(ids) for ids in per_run),
        owed=owed,
    )


def _left_over(asks: Sequence[Ask], unplaced: Sequence[int]) -> tuple[Batch, ...]:
    """Per run, what is bought for now: one batch, so that caps hold. What must go to on-demand is first."""
    per_run: dict[int, Batch] = {}
    for ask, count in zip(asks, unplaced, strict=True):
        if ask.run not in per_run or not per_run[ask.run].count:
            per_run[ask.run] = replace(ask.batch, count=count, max_instances=None)  # buying has a cap of its own
    return tuple(per_run.values())


def _ordinary(asks: Sequence[Ask], unplaced: Sequence[int]) -> dict[int, Batch]:
    """What is bought for where on-demand cannot be ordered: nobody waits for tasks that wait for that."""
    return {
        ask.run: replace(ask.batch, count=count, max_instances=None)
        for number, (ask, count) in enumerate(zip(asks, unplaced, strict=True))
        if count and number and asks[number - 1].run == ask.run and unplaced[number - 1]
    }


def _launches(
    state: State,
    runs: Sequence[Run],
    asks: Sequence[Ask],
    placed: Sequence[tuple[tuple[int, str], int]],
    now: float,
    policy: Policy,
) -> list[Launch]:
    """As many of the tasks that were placed, ((ask, instance), count) each, as the tick and a cell may start."""
    launches: list[Launch] = []
    room, cell_room = policy.max_launches_per_tick, _cell_room(state, policy)
    next_index = [iter(runs[ask.run].tasks.startable(now, room, ask.among).tolist()) for ask in asks]
    for (number, instance_id), count in placed:
        instance, run = state.instances[instance_id], runs[asks[number].run]
        indexes = list(islice(next_index[number], max(0, min(room, cell_room[instance.cell], count))))
        room -= len(indexes)
        cell_room[instance.cell] -= len(indexes)
        first = len(launches)
        launches += [
            _launch(state, run, index, instance, (first + offset) // policy.plan_size)
            for offset, index in enumerate(indexes)
        ]
    return launches


def _still_allowed(batch: Batch, run: Run, used: int) -> Batch:
    """The batch on instances that are still to come: as many more as the run's own limit leaves."""
    if run.terms.max_instances is None or batch.max_instances is None:
        return batch
    more = run.terms.max_instances - used
    return replace(batch, max_instances=more) if more > 0 else replace(batch, count=0)


def group_is_running(state: State, group: str) -> bool:
    """Whether a task of the group is live anywhere."""
    numbers = {run.number for run in state.runs.values() if run.group == group}
    return any(runs[number] for runs in state.attempts.runs_on_instance.values() for number in numbers)


def active_rows(state: State, now: float = float("inf")) -> list[InstanceRow]:
    """The instances that may be given work, with what is free on them, in a stable order; less those that refused
    some a moment before `now`."""
    return _rows_of(state, [i for i in state.instances.values() if i.placeable and i.paused_until <= now])


def _rows_of(state: State, instances: Sequence[Instance]) -> list[InstanceRow]:
    if not instances:
        return []
    used = state.used_by_instance()
    groups, ports = _running_by_group(state), _ports_in_use(state)
    return [
        replace(
            _row(instance, *used.get(instance.id, (Resources(), 0))),
            running_by_group=groups.get(instance.id, {}),
            used_host_ports=ports.get(instance.id, frozenset()),
        )
        for instance in sorted(instances, key=lambda i: (i.registered_at, i.id))
    ]


def coming_rows(
    state: State, catalogue: Mapping[str, InstanceType], now: float, policy: Policy
) -> tuple[list[InstanceRow], dict[str, tuple[str, Purchase]]]:
    """Instances that refused a task a moment ago, those that boot, then those that fleets owe us; and which
    (pool, purchase) each of the latter is owed by."""
    rows, owed = _rows_of(state, [i for i in state.instances.values() if _pauses(i, now)]), {}
    for instance in sorted(state.instances.values(), key=lambda i: i.id):
        kind = catalogue.get(instance.instance_type)
        if kind and _may_still_come(instance, now, policy):
            rows.append(_expected(instance.id, kind, instance, instance.purchase))
    for (pool_key, purchase), count in sorted(state.owed().items()):
        pool = state.pools[pool_key]
        for number in range(count if pool.instance_type in catalogue else 0):
            row_id = f"owed/{pool_key}/{purchase}/{number}"
            owed[row_id] = (pool_key, purchase)
            rows.append(_expected(row_id, catalogue[pool.instance_type], pool, purchase))
    return rows, owed


def _pauses(instance: Instance, now: float) -> bool:
    """Whether it will probably take tasks again soon; one that refuses them again and again is not counted on."""
    return instance.placeable and instance.paused_until > now and instance.refusals < COUNTED_ON


def _may_still_come(instance: Instance, now: float, policy: Policy) -> bool:
    """Whether tasks may count on it: it boots, is not about to go, and has not been silent for too long."""
    leaving = instance.interrupted_at or instance.rebalance_at
    late = now - instance.launched_at >= policy.register_patience_s
    return instance.status is InstanceStatus.BOOTING and not (leaving or late)


def _launch(state: State, run: Run, index: int, instance: Instance, plan: int) -> Launch:
    """plan: how many plans of this tick are full already."""
    key = next_key(run.id, index, int(run.tasks["attempts"][index]), int(run.tasks["launch"][index]))
    number = state.next_plan + plan
    return Launch(key, number, state.started_by(number), instance.id, instance.cell)


def _cell_room(state: State, policy: Policy) -> defaultdict[str, int]:
    """How many launches each cell can still be given: what is begun and not sent takes from its rate."""
    room: defaultdict[str, int] = defaultdict(lambda: policy.launches_per_cell)
    for row in state.attempts.with_status(AttemptStatus.INTENT).tolist():
        instance = state.instance_of(row)
        if instance is not None:
            room[instance.cell] -= 1
    return room


def _instances_in_use(state: State, run: Run) -> set[str]:
    return {name.decode() for name, runs in state.attempts.runs_on_instance.items() if runs[run.number]}


def _soon_lost(state: State, run: Run) -> int:
    """Tasks on instances that were warned: the shortfall is bought in the same tick (DESIGN D10)."""
    warned = [i.id.encode() for i in state.instances.values() if i.alive and i.interrupted_at]
    on_instance = state.attempts.runs_on_instance
    return sum(on_instance[name][run.number] for name in warned if name in on_instance)


def _running_by_group(state: State) -> dict[str, dict[str, int]]:
    """Live tasks on each instance, those of runs that share a group added up."""
    groups = {run.number: run.group for run in state.runs.values()}
    found: dict[str, dict[str, int]] = {}
    for name, runs in state.attempts.runs_on_instance.items():
        here = found[name.decode()] = {}
        for number, count in runs.items():
            if count and number in groups:
                here[groups[number]] = here.get(groups[number], 0) + count
    return found


def _ports_in_use(state: State) -> dict[str, frozenset[Port]]:
    """The host ports that live attempts hold on each instance."""
    ports = {run.number: run.host_ports for run in state.runs.values() if run.host_ports}
    if not ports:
        return {}
    return {
        name.decode(): frozenset(port for number, count in runs.items() if count for port in ports.get(number, ()))
        for name, runs in state.attempts.runs_on_instance.items()
    }


def _row(instance: Instance, used: Resources, tasks: int) -> InstanceRow:
    free = instance.total.minus(used)
    if any(instance.foreign):
        free = free.minus(instance.foreign)
    return InstanceRow(
        id=instance.id,
        cpu_units=max(0, free.cpu_units),
        memory_mib=max(0, free.memory_mib),
        gpus=max(0, free.gpus),
        total_cpu_units=instance.total.cpu_units,
        total_memory_mib=instance.total.memory_mib,
        total_gpus=instance.total.gpus,
        attributes={
            **instance.attributes,
            PURCHASE_ATTRIBUTE: instance.purchase.value,
            CELL_ATTRIBUTE: instance.cell,
        },
        registered_at=instance.registered_at,
        running_tasks=tasks,
        price_usd_per_hour=instance.price_usd_per_hour,
    )


def _expected(row_id: str, kind: InstanceType, at: Instance | Pool, purchase: Purchase) -> InstanceRow:
    cpu_units, memory_mib, gpus = resources_of(kind)
    return InstanceRow(
        id=row_id,
        cpu_units=cpu_units,
        memory_mib=memory_mib,
        gpus=gpus,
        total_cpu_units=cpu_units,
        total_memory_mib=memory_mib,
        total_gpus=gpus,
        attributes=expected_attributes(kind, at.zone, purchase, at.cell),
    )
