"""Where does each pending task go: an active instance, an ordered one, or a purchase?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np

from argosy.market.cover import Spread
from argosy.market.order import NO_FITNESS
from argosy.model.actions import Launch
from argosy.model.moment import Moment, PoolPurchase
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.placement.demand import Batch, Queue
from argosy.placement.fitness import Fitness
from argosy.placement.pass_state import PassState
from argosy.placement.place import place, place_further
from argosy.placement.strategy import EMPTYING, spread_attribute
from argosy.placement.supply import InstanceRow, Supply
from argosy.scheduler.placing.gang_places import gang_places
from argosy.scheduler.placing.launches import launches
from argosy.scheduler.placing.run_places import RunPlaces
from argosy.scheduler.placing.spare_room import NO_SPARE_ROOM, SpareRoom, replacements, spare_batches, spare_room
from argosy.scheduler.supply.present import what_is_there
from argosy.scheduler.supply.roster import PlacementRows, Roster
from argosy.scheduler.turns.asks import NO_BOUND, Ask, Bound
from argosy.scheduler.turns.fair_share import FairShare, Placed, placed_in_slices
from argosy.scheduler.turns.turns import Turns, whose_turn


@dataclass(frozen=True, slots=True)
class Places:
    """The result of `placed`, the third phase of a tick.

    Example: run r1 asks for 10 tasks, 3 fit on i-1, 2 on an instance that a fleet owes. Then `launches` holds 3
    launches on i-1, `owed_used` counts 1 for that fleet's pool, and `runs[0]` has `coming` 2 and `left_over.count` 5.
    """

    runs: tuple[RunPlaces, ...] = ()  # those that asked for places, in queue order
    launches: tuple[Launch, ...] = ()
    wanted: frozenset[str] = frozenset()  # instances, booting or idle, that got work or have tasks waiting for them
    owed: Mapping[str, PoolPurchase] = field(default_factory=dict)  # by id in `instances`, of those only ordered
    owed_used: Mapping[PoolPurchase, int] = field(default_factory=dict)  # ordered instances that the demand needs
    no_linger: frozenset[str] = frozenset()  # instances that go as soon as they idle
    share: FairShare | None = None  # where several share the cluster; its caps count what is placed
    here: Sequence[InstanceRow] = ()  # instances that may be given work, as they were before `launches`
    spare: SpareRoom = NO_SPARE_ROOM  # for further tasks, on what those of this tick leave


NO_PLACES = Places()


@dataclass(frozen=True, slots=True)
class _PresentTasks:
    """Tasks placed on present instances. Example: {(0, 3): 5} = five tasks of ask 0 in row 3."""

    tasks: Mapping[tuple[int, int], int]  # (ask, row) -> tasks
    unplaced: Sequence[int]  # per ask
    in_use: Mapping[str, set[str]]  # by run id, ids of the instances with its tasks, including those placed now
    share: FairShare | None  # of the turns, with the caps less what is placed


@dataclass(frozen=True, slots=True)
class _OrderedTasks:
    """Tasks placed on incoming instances."""

    asked: list[Batch]  # per ask, the tasks to place there
    unplaced: list[int]  # per ask
    tasks: Mapping[tuple[int, int], int]  # (ask, row) -> tasks that wait for the instance
    used: set[str]  # ids of those instances
    share: FairShare | None  # of the turns, with the caps less what is placed and what waits


def assign(
    moment: Moment, roster: Roster, fitness: Mapping[str, Fitness] = NO_FITNESS, at_most: Mapping[str, Bound] = NO_BOUND
) -> Places:
    """The first three phases of a tick: present instances, turns and places.

    roster: a cache from earlier ticks; it changes no answer. fitness: users' own functions. at_most: by run id.
    """
    return placed(whose_turn(what_is_there(moment, roster, fitness), at_most))


def placed(turns: Turns) -> Places:
    """Place the pending tasks of all ready runs except daemons: gangs, then the other tasks."""
    if not turns.gangs:
        return _placed(turns)
    gangs = gang_places(turns)
    others = _placed(replace(turns, present=replace(turns.present, lineup=gangs.lineup)))
    return replace(
        others,
        runs=(*gangs.runs, *others.runs),
        launches=(*gangs.launches, *others.launches),
        wanted=others.wanted | gangs.wanted,
        owed_used=Counter(others.owed_used) + gangs.owed_used,
    )


def _placed(turns: Turns) -> Places:
    """First on present instances, the rest on ordered ones."""
    present, asks = turns.present, turns.asks
    here, coming, owed = present.lineup.here, present.lineup.coming, present.lineup.owed
    on_here = _on_here(turns, here)
    ordered = _on_ordered(turns, on_here, coming)
    starting = [(number, here.row(row).id, count) for (number, row), count in sorted(on_here.tasks.items())]
    runs = _per_run(asks, ordered, on_here.in_use)
    on_rows = [(here, on_here.tasks), (coming, ordered.tasks)]
    has_caps = turns.share is not None and turns.share.caps is not None  # a replacement could exceed them
    spare = [*(() if has_caps else replacements(present.moment)), *spare_batches(present.moment)]
    return Places(
        runs=_with_spreads(runs, asks, on_rows),
        launches=tuple(launches(turns, starting)),
        wanted=frozenset({here.row(row).id for _, row in on_here.tasks} | (ordered.used - owed.keys())),
        owed=owed,
        owed_used=Counter(owed[name] for name in ordered.used & owed.keys()),
        share=ordered.share,
        here=here.rows,
        spare=spare_room([emptying(each) for each in spare], asks, on_rows),
    )


def _on_here(turns: Turns, here: Supply) -> _PresentTasks:
    present, asks, share = turns.present, turns.asks, turns.share
    in_use = _instances_in_use(present.moment.state, present.runs)
    batches = _beside_elsewhere(asks, here, in_use)
    tasks, unplaced = place_now(batches, present.lineup, present.fitness, share)
    if share is not None and share.caps is not None:
        tasks, unplaced, caps = share.caps.kept_to(tasks, unplaced)
        share = replace(share, caps=caps)
    for number, row in tasks:
        in_use[asks[number].run.id].add(here.row(row).id)
    return _PresentTasks(tasks, unplaced, in_use, share)


def _on_ordered(turns: Turns, on_here: _PresentTasks, coming: Supply) -> _OrderedTasks:
    """Adds the instances that runs wait for to `on_here.in_use`."""
    share, fitness = on_here.share, turns.present.fitness
    asked = _rest(turns, on_here)
    if share is None:
        found = place(asked, coming, fitness=fitness)
        tasks, unplaced = found.tasks(), found.unplaced.tolist()
    else:
        tasks, unplaced = share.placed(asked, coming, fitness)
        if share.caps is not None:
            share = replace(share, caps=share.caps.with_promised(tasks))
    for number, row in tasks:
        on_here.in_use[turns.asks[number].run.id].add(coming.row(row).id)
    return _OrderedTasks(asked, unplaced, tasks, {coming.row(row).id for _, row in tasks}, share)


def _rest(turns: Turns, on_here: _PresentTasks) -> list[Batch]:
    """Per ask, the tasks to place on incoming instances. Tasks on warned instances count among the ordinary ones:
    their replacement is bought in the same tick (DESIGN D10)."""
    warned = _tasks_on_warned(turns.present.moment.state)
    return [
        _still_allowed(
            replace(ask.batch, count=unplaced + (0 if ask.moves else warned[ask.run.number])),
            ask.run,
            len(on_here.in_use[ask.run.id]),
        )
        for ask, unplaced in zip(turns.asks, on_here.unplaced, strict=True)
    ]


def _per_run(asks: Sequence[Ask], ordered: _OrderedTasks, counted_on: Mapping[str, set[str]]) -> tuple[RunPlaces, ...]:
    asked = zip(asks, ordered.asked, ordered.unplaced, strict=True)
    return tuple(
        _run_places(list(its), frozenset(counted_on[run_id]))
        for run_id, its in groupby(asked, lambda each: each[0].run.id)
    )


def _with_spreads(
    runs: tuple[RunPlaces, ...], asks: Sequence[Ask], placed: Sequence[tuple[Supply, Mapping[tuple[int, int], int]]]
) -> tuple[RunPlaces, ...]:
    """placed: instances with the tasks placed on them in this tick, by (ask, row)."""
    return tuple(
        replace(its, spread=_spread(its.run, attribute, asks, placed))
        if (attribute := spread_attribute(its.run.terms.strategy)) is not None
        else its
        for its in runs
    )


def _spread(
    run: Run, attribute: str, asks: Sequence[Ask], placed: Sequence[tuple[Supply, Mapping[tuple[int, int], int]]]
) -> Spread:
    """Where the tasks of the run's group are, including those placed in this tick."""
    spread, tasks = Spread(attribute, {}), Counter[str]()
    for supply, counts in placed:
        spread = spread.also_on(supply, run.group)
        for (number, row), count in counts.items():
            if asks[number].run.group == run.group:
                tasks[supply.row(row).attributes.get(attribute, "")] += count
    return replace(spread, tasks=Counter(spread.tasks) + tasks)


def _run_places(asked: Sequence[tuple[Ask, Batch, int]], instances: frozenset[str]) -> RunPlaces:
    """asked: (ask, its tasks left for ordered instances, its tasks that found no place there either).

    The demand to buy for now is one batch, so that caps hold. Tasks that must go to on-demand come first; if that
    cannot be ordered, no other task waits for it.
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


def _beside_elsewhere(asks: Sequence[Ask], here: Supply, in_use: Mapping[str, set[str]]) -> list[Batch]:
    """Per ask, the tasks to place. Instances that accept no work, such as warned ones, count towards a run's
    instance limit as long as it has tasks there; the kernel sees none of them."""
    if all(ask.batch.max_instances is None for ask in asks):
        return [ask.batch for ask in asks]
    seen = {row.id for row in here.rows}
    return [_still_allowed(ask.batch, ask.run, len(in_use[ask.run.id] - seen)) for ask in asks]


def _still_allowed(batch: Batch, run: Run, used: int) -> Batch:
    """The batch, limited to the further instances that the run's own limit leaves."""
    if run.terms.max_instances is None or batch.max_instances is None:
        return batch
    more = run.terms.max_instances - used
    return replace(batch, max_instances=more) if more > 0 else replace(batch, count=0)


def group_is_running(state: State, group: str) -> bool:
    """Whether a task of the group is live on any instance."""
    numbers = {run.number for run in state.runs.values() if run.group == group}
    return any(runs[number] for runs in state.attempts.runs_on_instance.values() for number in numbers)


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
    """By Run.number, its live attempts on warned instances. Replacements of a service's tasks are pending already
    (`scheduler.services.rollout`)."""
    found: Counter[int] = Counter()
    for instance in state.instances.values():
        if instance.alive and instance.interrupted_at:
            found.update(state.attempts.runs_on_instance.get(instance.id.encode(), {}))
    for run in state.runs.values():
        if run.terms.service is not None:
            del found[run.number]
    return found


def place_now(
    batches: Sequence[Batch], lineup: PlacementRows, fitness: Mapping[str, Fitness], share: FairShare | None = None
) -> tuple[Counter[tuple[int, int]], list[int]]:
    """(batch, row) -> tasks on present instances; and how many tasks of each batch found no place there.

    Instances join in any order. If the first run in the queue filled each one that joins, it would take instances
    bought for the last run, and every tick would buy more. So one pass first fills present and incoming instances
    together, and the tasks on present instances start. The room left there then goes to tasks that would have to wait,
    first come first served. Tasks that spread over an attribute wait for the instances bought to spread them.

    share: where several sharers use the cluster, the division of scarce present and incoming room.
    """
    ours = [emptying(batch) for batch in batches]
    meant = None if share is None else share.meant_for(batches, lineup, fitness)
    meant = meant or _meant_for(batches, lineup, fitness)
    if meant is None:
        found = place(ours, lineup.here, fitness=fitness)
        return found.tasks(), found.unplaced.tolist()
    now, waits = meant
    queue = Queue.of(ours)
    free = PassState(lineup.here, queue)
    first, unplaced = _first(queue, now, free, fitness, share is not None)
    left = [batch.count - n + rest for batch, n, rest in zip(batches, now, unplaced, strict=True)]
    asked = [n - wait for n, wait in zip(left, waits, strict=True)]
    if share is not None:
        asked = share.within_caps(batches, asked, first)
    second = place_further(queue.counting(asked), free, fitness=fitness)
    return first + second.tasks(), [
        n - count + rest for n, count, rest in zip(left, asked, second.unplaced.tolist(), strict=True)
    ]


def _first(
    queue: Queue, counts: Sequence[int], free: PassState, fitness: Mapping[str, Fitness], are_shared: bool
) -> tuple[Placed, list[int]]:
    """The tasks that start here, and how many tasks of each batch found no place after all."""
    if are_shared:
        placed, unplaced = placed_in_slices(queue, np.array(counts, dtype=np.int64), free, fitness)
        return placed, unplaced.tolist()
    found = place_further(queue.counting(counts), free, fitness=fitness)
    return found.tasks(), found.unplaced.tolist()


def _meant_for(
    batches: Sequence[Batch], lineup: PlacementRows, fitness: Mapping[str, Fitness]
) -> tuple[list[int], list[int]] | None:
    """How many tasks of each batch would go to present instances if all instances were present, and how many spread
    tasks would go to the incoming ones; None if it makes no difference."""
    spread = [spread_attribute(batch.strategy) is not None for batch in batches]
    alike = len({batch.need for batch in batches if batch.count}) < 2
    if not 0 < lineup.ready < len(lineup.supply) or (alike and not any(spread)):
        return None
    together = place(batches, lineup.supply, fitness=fitness)
    here = together.row < lineup.ready
    now, later = (
        np.bincount(together.batch[chosen], weights=together.count[chosen], minlength=len(batches)).astype(int)
        for chosen in (here, ~here)
    )
    return now.tolist(), np.where(spread, later, 0).tolist()


def emptying(batch: Batch) -> Batch:
    """Fills idle instances last, so that they can be released, unless its run says otherwise."""
    return batch if batch.strategy else replace(batch, strategy=EMPTYING)
