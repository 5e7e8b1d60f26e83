"""Which pending task goes where: onto active instances now, onto ordered ones soon, and what is left over?"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice

from argosy.market.buy import NO_FITNESS
from argosy.market.cover import Spread
from argosy.model.actions import Launch
from argosy.model.attempts import AttemptStatus
from argosy.model.instances import Instance
from argosy.model.moment import Moment, PoolPurchase
from argosy.model.policy import Policy
from argosy.model.runs import Run
from argosy.model.setbacks import What
from argosy.model.state import State
from argosy.placement.demand import Batch
from argosy.placement.fitness import Fitness
from argosy.placement.place import place
from argosy.placement.strategy import own_functions, spread_attribute
from argosy.placement.supply import InstanceRow, Supply
from argosy.scheduler.placing.asks import NO_BOUND, Ask, asks_of, place_now
from argosy.scheduler.supply.outlook import Outlook
from argosy.scheduler.supply.roster import Roster
from argosy.scheduler.turns.caps import CapRoom, prices
from argosy.scheduler.turns.fair_order import FairOrder, latest_starts
from argosy.scheduler.turns.fair_share import FairShare, LaunchRoom, QueueCaps
from argosy.scheduler.turns.share_levels import ShareLevels, long_run_launches
from argosy.scheduler.turns.slices import counted
from argosy.scheduler.upkeep.upkeep import next_key


@dataclass(frozen=True, slots=True)
class RunPlaces:
    """What one run asked for, what it got, and what still has to be bought for it."""

    run: Run
    batch: Batch  # what it asked for; of a run whose lost tasks move to on-demand, its ordinary tasks
    left_over: Batch  # what found no place and is bought for now
    instances: frozenset[str] = frozenset()  # ids of the instances that it has or is promised
    coming: int = 0  # how many of its tasks wait for instances on their way
    ordinary: Batch | None = None  # what is bought for where `left_over` finds no offer
    usd_room: float = math.inf  # how many USD an hour more may be bought
    spread: Spread | None = None  # over which attribute its tasks go first, and where the group has tasks already


@dataclass(frozen=True, slots=True)
class Places:
    """The outcome of placing every ready run's pending tasks."""

    runs: tuple[RunPlaces, ...] = ()  # those that asked for places, in queue order
    launches: tuple[Launch, ...] = ()
    wanted: frozenset[str] = frozenset()  # instances, booting or idle, that got work or are promised some
    owed: Mapping[str, PoolPurchase] = field(default_factory=dict)  # by id in `instances`, of those only ordered
    owed_used: Mapping[PoolPurchase, int] = field(default_factory=dict)  # ordered instances that the demand needs
    no_linger: frozenset[str] = frozenset()  # instances that go as soon as they idle
    dealing: FairShare | None = None  # where several share the cluster
    here: Sequence[InstanceRow] = ()  # the instances that may be given work, as they were before `launches`


NO_PLACES = Places()


@dataclass(frozen=True, slots=True)
class _Ordered:
    """What is placed on instances that are on their way."""

    asked: list[Batch]  # per ask, what had to be placed there
    unplaced: list[int]  # per ask
    tasks: Mapping[tuple[int, int], int]  # (ask, row) -> tasks that wait for the instance
    used: set[str]  # ids of those instances


def assign(
    moment: Moment,
    roster: Roster,
    fitness: Mapping[str, Fitness] = NO_FITNESS,
    at_most: Mapping[str, int] = NO_BOUND,
) -> Places:
    """Place the pending tasks of all ready runs but daemons': those of who comes first (`fair_order`), as far as they
    are due to it where there is not room for all.

    roster: what is kept of earlier looks at the state; it changes no answer. fitness: users' own functions; a run
    that names another function is left out. at_most: by run id, the number of tasks that it may ask for.
    """
    state = moment.state
    ready = [run for run in state.runs.values() if run.ready and not run.is_daemon]
    ready = [run for run in ready if state.may_try(What.LAUNCH, run.id, moment.now)]
    ready = [run for run in ready if all(name in fitness for name in own_functions(run.terms.strategy))]
    order = FairOrder.of(state, ready, latest_starts(moment, ready))
    runs = order.runs
    asks = asks_of(moment, runs, at_most)
    room = CapRoom.of(state)
    lineup = roster.at(moment)
    caps = dealing = None
    if order.is_shared or (room is not None and asks):
        usd_per_hour = prices(moment, lineup)
        caps = None if room is None or not asks else QueueCaps(order, asks, lineup, room, usd_per_hour)
        lifting = ShareLevels.of(state, lineup.supply.total.T, usd_per_hour, long_run_launches(moment))
        dealing = FairShare(order, asks, lifting, lifting.used(state, order), caps)
    owed, instances = lineup.owed, moment.state.instances
    seen = Outlook.of(moment, runs).on(
        lineup.supply, lambda name: owed[name][0] if name in owed else instances[name].pool
    )
    lineup = replace(lineup, supply=seen)
    here, coming = lineup.here, lineup.coming
    counted_on = _instances_in_use(moment.state, runs)
    placed, not_here = place_now(_beside_elsewhere(asks, here, counted_on), lineup, fitness, dealing)
    if caps is not None:
        placed, not_here = caps.kept_to(placed, not_here)
    for number, row in placed:
        counted_on[asks[number].run.id].add(here.row(row).id)
    on_here = [(number, here.row(row).id, count) for (number, row), count in sorted(placed.items())]
    ordered = _place_on_ordered(_rest(moment.state, asks, not_here, counted_on), coming, fitness, dealing)
    if caps is not None:
        caps.promise(ordered.tasks)
    for number, row in ordered.tasks:
        counted_on[asks[number].run.id].add(coming.row(row).id)
    return Places(
        runs=_with_spreads(_per_run(asks, ordered, counted_on), asks, [(here, placed), (coming, ordered.tasks)]),
        launches=tuple(_launches(moment, asks, on_here, dealing)),
        wanted=frozenset({here.row(row).id for _, row in placed} | (ordered.used - owed.keys())),
        owed=owed,
        owed_used=Counter(owed[name] for name in ordered.used & owed.keys()),
        dealing=dealing,
        here=here.rows,
    )


def _rest(
    state: State, asks: Sequence[Ask], not_here: Sequence[int], counted_on: Mapping[str, set[str]]
) -> list[Batch]:
    """Per ask, what has to be placed on instances that are still to come. Tasks on instances that were warned count
    among the ordinary ones: the shortfall is bought in the same tick (DESIGN D10)."""
    warned = _tasks_on_warned(state)
    return [
        _still_allowed(
            replace(ask.batch, count=unplaced + (0 if ask.moves else warned[ask.run.number])),
            ask.run,
            len(counted_on[ask.run.id]),
        )
        for ask, unplaced in zip(asks, not_here, strict=True)
    ]


def _place_on_ordered(
    asked: list[Batch],
    coming: Supply,
    fitness: Mapping[str, Fitness],
    dealing: FairShare | None,
) -> _Ordered:
    if dealing is None:
        found = place(asked, coming, fitness=fitness)
        tasks, unplaced = counted(found), found.unplaced.tolist()
    else:
        tasks, unplaced = dealing.placed(asked, coming, fitness)
    return _Ordered(asked, unplaced, tasks, {coming.row(row).id for _, row in tasks})


def _per_run(asks: Sequence[Ask], ordered: _Ordered, counted_on: Mapping[str, set[str]]) -> tuple[RunPlaces, ...]:
    asked = zip(asks, ordered.asked, ordered.unplaced, strict=True)
    return tuple(
        _run_places(list(its), frozenset(counted_on[run_id]))
        for run_id, its in groupby(asked, lambda each: each[0].run.id)
    )


def _with_spreads(
    runs: tuple[RunPlaces, ...],
    asks: Sequence[Ask],
    placed: Sequence[tuple[Supply, Mapping[tuple[int, int], int]]],
) -> tuple[RunPlaces, ...]:
    """placed: instances with the tasks that are placed on them, by (ask, row), in this tick."""
    return tuple(
        replace(its, spread=_spread(its.run, attribute, asks, placed))
        if (attribute := spread_attribute(its.run.terms.strategy)) is not None
        else its
        for its in runs
    )


def _spread(
    run: Run,
    attribute: str,
    asks: Sequence[Ask],
    placed: Sequence[tuple[Supply, Mapping[tuple[int, int], int]]],
) -> Spread:
    """Where the tasks of the run's group are, those that were placed in this tick among them."""
    spread, tasks = Spread(attribute, {}), Counter[str]()
    for supply, counts in placed:
        spread = spread.also_on(supply, run.group)
        for (number, row), count in counts.items():
            if asks[number].run.group == run.group:
                tasks[supply.row(row).attributes.get(attribute, "")] += count
    return replace(spread, tasks=Counter(spread.tasks) + tasks)


def _run_places(asked: Sequence[tuple[Ask, Batch, int]], instances: frozenset[str]) -> RunPlaces:
    """asked: (ask, what of it was left for ordered instances, what found no place there either).

    What is bought for now is one batch, so that caps hold: what must go to on-demand is first, and no other task waits
    if that cannot be ordered.
    """
    # `capacity._limits` limits the instances that are bought.
    left = [replace(ask.batch, count=count, max_instances=None) for ask, _, count in asked]
    first = next((batch for batch in left if batch.count), left[-1])
    ordinary = asked[-1][0]
    return RunPlaces(
        run=ordinary.run,
        batch=ordinary.batch,
        left_over=first,
        instances=instances,
        coming=sum(batch.count - count for _, batch, count in asked),
        ordinary=left[-1] if left[-1].count and first is not left[-1] else None,
    )


def _launches(
    moment: Moment, asks: Sequence[Ask], placed: Sequence[tuple[int, str, int]], dealing: FairShare | None
) -> list[Launch]:
    """As many of the tasks that were placed, (ask, instance id, count) each, as the tick and a cell may start."""
    state, policy = moment.state, moment.policy
    launches: list[Launch] = []
    room, cell_room = policy.max_launches_per_tick, _cell_room(state, policy)
    if dealing is not None and placed:
        cell_of = {name: state.instances[name].cell for _, name, _ in placed}
        may_start = LaunchRoom(room, cell_room, max(1, policy.max_promised_documents // 2))
        placed = dealing.launched(_startable(moment, asks, placed), cell_of, may_start)
    next_index = {
        number: iter(asks[number].run.tasks.startable(moment.now, room, asks[number].among).tolist())
        for number in {number for number, _, _ in placed}
    }
    for number, instance_id, count in placed:
        instance, run = state.instances[instance_id], asks[number].run
        indexes = list(islice(next_index[number], max(0, min(room, cell_room[instance.cell], count))))
        room -= len(indexes)
        cell_room[instance.cell] -= len(indexes)
        first = len(launches)
        launches += [
            _launch(state, run, index, instance, (first + offset) // policy.wave_size)
            for offset, index in enumerate(indexes)
        ]
    return launches


def _startable(
    moment: Moment, asks: Sequence[Ask], placed: Sequence[tuple[int, str, int]]
) -> list[tuple[int, str, int]]:
    """Without the places of tasks that are backing off."""
    left = {
        number: asks[number].run.tasks.startable_count(moment.now, asks[number].among)
        for number in {number for number, _, _ in placed}
    }
    found = []
    for number, name, count in placed:
        if (now := min(count, left[number])) > 0:
            left[number] -= now
            found.append((number, name, now))
    return found


def in_waves(state: State, policy: Policy, launches: Sequence[Launch]) -> list[Launch]:
    """As many of them as the tick and the cells may start, the first ones first, in waves that follow each other."""
    room = policy.max_launches_per_tick - len(state.attempts.with_status(AttemptStatus.INTENT))  # sent now or later
    cell_room, found = _cell_room(state, policy), list[Launch]()
    for launch in launches:
        if len(found) < room and cell_room[launch.cell] > 0:
            cell_room[launch.cell] -= 1
            number = state.next_wave + len(found) // policy.wave_size
            found.append(replace(launch, wave=number, started_by=state.started_by(number)))
    return found


def _beside_elsewhere(asks: Sequence[Ask], here: Supply, in_use: Mapping[str, set[str]]) -> list[Batch]:
    """Per ask, what is to be placed. Instances that may be given nothing, such as warned ones, count among those that
    a run may use for as long as it has tasks there; the kernel sees none of them."""
    if all(ask.batch.max_instances is None for ask in asks):
        return [ask.batch for ask in asks]
    seen = {row.id for row in here.rows}
    return [_still_allowed(ask.batch, ask.run, len(in_use[ask.run.id] - seen)) for ask in asks]


def _still_allowed(batch: Batch, run: Run, used: int) -> Batch:
    """The batch beside so many other instances: on as many more as the run's own limit leaves."""
    if run.terms.max_instances is None or batch.max_instances is None:
        return batch
    more = run.terms.max_instances - used
    return replace(batch, max_instances=more) if more > 0 else replace(batch, count=0)


def group_is_running(state: State, group: str) -> bool:
    """Whether a task of the group is live anywhere."""
    numbers = {run.number for run in state.runs.values() if run.group == group}
    return any(runs[number] for runs in state.attempts.runs_on_instance.values() for number in numbers)


def _launch(state: State, run: Run, index: int, instance: Instance, wave: int) -> Launch:
    """wave: how many waves of this tick are full already."""
    key = next_key(run.id, index, int(run.tasks["attempts"][index]), int(run.tasks["launch"][index]))
    number = state.next_wave + wave
    return Launch(key, number, state.started_by(number), instance.id, instance.cell)


def _cell_room(state: State, policy: Policy) -> defaultdict[str, int]:
    """How many launches each cell can still be given: what is begun and not sent takes from its rate."""
    room: defaultdict[str, int] = defaultdict(lambda: policy.launches_per_cell)
    for row in state.attempts.with_status(AttemptStatus.INTENT).tolist():
        instance = state.instance_of(row)
        if instance is not None:
            room[instance.cell] -= 1
    return room


def _instances_in_use(state: State, runs: Sequence[Run]) -> dict[str, set[str]]:
    """By run id, the ids of the instances on which it has live attempts."""
    ids = {run.number: run.id for run in runs}
    found: dict[str, set[str]] = {run.id: set() for run in runs}
    for name, tasks in state.attempts.runs_on_instance.items():
        for number, count in tasks.items():
            if count and number in ids:
                found[ids[number]].add(name.decode())
    return found


def _tasks_on_warned(state: State) -> Counter[int]:
    """By Run.number, its live attempts on instances that were warned. What takes the place of a service's is pending
    already (`scheduler.services.rollout`)."""
    found: Counter[int] = Counter()
    for instance in state.instances.values():
        if instance.alive and instance.interrupted_at:
            found.update(state.attempts.runs_on_instance.get(instance.id.encode(), {}))
    for run in state.runs.values():
        if run.terms.service is not None:
            del found[run.number]
    return found
