"""For which runs is room taken, and whose tasks are stopped for it?

Example: queue `prod` may take room after 60 s. `maxInstances` is reached, and its run r2 has waited for 70 s with two
tasks. Two exchanges are made: two tasks of queue `batch` are stopped, and their instances are kept for r2 for three
minutes, because a task has up to two minutes to answer SIGTERM.

Room is taken only if the sharing document allows it for the run's queue, nothing more may be bought, and the run has
waited for a while. A pure step chooses the victims (`argosy.sharing.victims`); this module gives its input and limits
how much may happen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from argosy.market.daemons import daemons_of
from argosy.market.limits import is_quota
from argosy.model.actions import NoteHeld, StopAttempt, YieldInstance
from argosy.model.arns import cell_of
from argosy.model.attempts import AttemptStatus, StopCause, since_checkpoint_s
from argosy.model.instances import Instance
from argosy.model.moment import Moment
from argosy.model.money.occupancy import part_of
from argosy.model.resources import AXES
from argosy.model.run_terms import DEFAULT_QUEUE
from argosy.model.runs import Run
from argosy.model.sharers import queue_of_run
from argosy.model.shares.sharing import Reclaim
from argosy.placement.demand import Batch
from argosy.placement.place import place
from argosy.placement.supply import InstanceRow, Supply
from argosy.scheduler.buying.orders import DEPLOYMENT_USD, MarketView, OrderedPlaces, order_limits
from argosy.scheduler.buying.reasons import DEPLOYMENT
from argosy.scheduler.buying.uncapped_runs import UncappedRuns
from argosy.scheduler.placing.places import Places
from argosy.scheduler.placing.run_places import RunPlaces
from argosy.scheduler.supply.kept_instances import kept_for_runs
from argosy.scheduler.supply.rows import row_of, uses_by_number
from argosy.scheduler.taking_room.drain_choice import DrainChoice
from argosy.scheduler.turns.caps import CapRoom, units_of
from argosy.scheduler.turns.fair_order import FairOrder
from argosy.scheduler.turns.share_levels import ShareLevels, long_run_launches
from argosy.scheduler.upkeep.upkeep import arn_of_row
from argosy.sharing.columns import IntArray, Limits, Sharers
from argosy.sharing.victims import Exchange, Holders, Standings, WaitingTask, exchange, is_just

MOST_STOPPED = 50  # tasks in a tick, and a hundredth of those that run
KEPT_S = 180.0  # how long the room is kept: a task has up to two minutes to answer SIGTERM
EMPTIED_S = 3600.0  # how long an instance may take until it is empty
HOUR_S = 3600.0
Acts = list[NoteHeld | YieldInstance | StopAttempt]


def reclaims(market: MarketView, ordered: OrderedPlaces, money: UncappedRuns) -> Acts:
    """The runs that wait for room that they may take; and the stops and kept instances for those that have waited for
    long enough. ordered: including everything that starts in this tick. money: a run must be able to pay for the work
    that is lost."""
    moment, places = market.moment, ordered.places
    sharing, reclaim = moment.state.sharing, moment.state.sharing.reclaim
    held = _held(moment, ordered) if reclaim is not None else {}
    acts: Acts = [] if held.keys() == sharing.held_since.keys() else [NoteHeld(tuple(sorted(held)))]
    ripe = {
        run_id: each
        for run_id, each in held.items()
        if reclaim is not None and moment.now - sharing.held_since.get(run_id, moment.now) >= reclaim.after_s
    }
    if ripe and reclaim is not None:
        acts += _TickExchanges(market, reclaim, ripe, places, money).acts()
    return acts


@dataclass(frozen=True, slots=True)
class _RunWithoutRoom:
    """A run that may take room, and the number of its tasks without room."""

    places: RunPlaces
    tasks: int

    @property
    def run(self) -> Run:
        return self.places.run


def _held(moment: Moment, ordered: OrderedPlaces) -> dict[str, _RunWithoutRoom]:
    """By id, the runs that may take room and for whose tasks nothing may be bought."""
    queues = moment.state.sharing.queues()
    found = {}
    for its, shortfall in ordered.runs():
        queue = queues.get(its.run.terms.queue) or queues[DEFAULT_QUEUE]
        takes = queue.preempts and queue.weight and its.run.terms.gang is None
        if takes and shortfall.tasks and _is_of_all(moment, shortfall.reason):
            found[its.run.id] = _RunWithoutRoom(its, min(shortfall.tasks, its.left_over.count))
    return found


def _is_of_all(moment: Moment, reason: str) -> bool:
    """Whether it is a limit that others may have reached: instances, dollars or vCPUs of the deployment."""
    return reason in (DEPLOYMENT, DEPLOYMENT_USD.format(moment.state.sharing.usd_per_hour)) or is_quota(reason)


class _TickExchanges:
    """The exchanges of one tick."""

    def __init__(
        self,
        market: MarketView,
        reclaim: Reclaim,
        held: Mapping[str, _RunWithoutRoom],
        places: Places,
        money: UncappedRuns,
    ) -> None:
        """places: with all that starts in this tick."""
        moment, state = market.moment, market.moment.state
        self.moment, self.reclaim, self.money, self.fitness = moment, reclaim, money, market.fitness
        self.kept = kept_for_runs(state, moment.now)
        self.order = FairOrder.of(state, list(state.runs.values()))
        self.promised = Counter[int]()
        for name, number in self.kept.items():
            self.promised[number] += state.instances[name].yields_tasks
        self.wanted = {run_id: each.tasks - self.promised[each.run.number] for run_id, each in held.items()}
        self.held = {run_id: each for run_id, each in held.items() if self.wanted[run_id] > 0}
        self.lifting = _lifting(moment, places)
        self.standing = self._standing()
        takers = {self.order.row[run_id] for run_id in held}  # launches of this tick raise only these
        for launch in places.launches:
            run = state.runs[launch.key.run_id]
            if self.order.row[run.id] in takers and state.row_of(launch.key) is None:
                self.standing.move(self.order.row[run.id], self._takes(run))
        spared = self.kept.keys() | {launch.instance_id for launch in places.launches}
        self.instances = [each for each in state.instances.values() if each.placeable and each.id not in spared]
        self._emptying = DrainChoice(market, self.instances, self._row, order_limits(moment))
        self._rows: IntArray = np.zeros(0, dtype=np.int64)  # of the holders, in the table of attempts
        self._uses, self._daemons = uses_by_number(state), daemons_of(state)
        self._usd_left, self._queues = _usd_left(moment, reclaim), state.sharing.queues()
        self._caps = CapRoom.of(state) if state.sharing.limits_queues else None
        self._free = self._free_on(places.here)
        for launch in places.launches:
            self._count(state.runs[launch.key.run_id], state.instances[launch.instance_id])
        for name, number in self.kept.items():
            taker = state.run_by_number(number)
            if taker is not None:
                self._count(taker, state.instances[name], state.instances[name].yields_tasks)

    def _takes(self, run: Run) -> IntArray:
        """(5,) the amounts that one task counts."""
        return np.array(self.lifting.takes(run), dtype=np.int64)

    def _standing(self) -> Standings:
        """The levels to come: without attempts that are being stopped or are on instances kept for others, and with
        incoming room."""
        state, table, order, kept = self.moment.state, self.moment.state.attempts, self.order, self.kept
        used, runs = self.lifting.used(state, order), {run.number: run for run in state.runs.values()}
        rows = table.placed()
        kept_rows = [row for name in kept for row in table.on_instance(name) if kept[name] != int(table["run"][row])]
        goes = np.union1d(rows[table["stop_cause"][rows] != StopCause.NONE.value], np.array(kept_rows, dtype=np.int64))
        for number, its in _by_run(table["run"], goes).items():
            if number in runs and not runs[number].is_daemon:
                used[order.row[runs[number].id]] -= len(its) * self._takes(runs[number])
        for number, tasks in self.promised.items():
            used[order.row[runs[number].id]] += tasks * self._takes(runs[number])
        limits = Limits.of(self.lifting.capacity, self.lifting.capacity)
        return Standings(Sharers.of(order.weight, used, order.parts, order.factor), limits)

    def acts(self) -> Acts:
        """As many exchanges as a tick may make. For a run without one, an instance takes no new work of others."""
        found: Acts = []
        stopped, most = 0, max(1, min(MOST_STOPPED, len(self.moment.state.attempts.live()) // 100))
        holders, self._rows = self._holders()
        waiting = dict(self.held)
        while waiting and stopped < most and self.reclaim.stops:
            held = min(waiting.values(), key=lambda each: self.standing.level(self.order.row[each.run.id]))
            made = self._exchange(held, holders)
            if made is None:
                del waiting[held.run.id]
                continue
            found += self._stops(held, made)
            stopped += len(made.victims)
            self._move(held, made, holders)
            holders.spare(made.place)  # it is kept for a run now
            self.wanted[held.run.id] -= 1
            if not self.wanted[held.run.id]:
                del waiting[held.run.id]
        return found or [*self._emptied()]

    def _exchange(self, held: _RunWithoutRoom, holders: Holders) -> Exchange | None:
        run = held.run
        made = exchange(self._wish(run), holders, self.standing, lambda where, rows: self._fits(held, where, rows))
        if made is None or made.loss > self._usd_left or not self.money.can_lose(run.id, made.loss):
            return None
        return made

    def _wish(self, run: Run) -> WaitingTask:
        return WaitingTask(self.order.row[run.id], self._takes(run))

    def _stops(self, held: _RunWithoutRoom, made: Exchange) -> Acts:
        run, instance, state = held.run, self.instances[made.place], self.moment.state
        until = self.moment.now + KEPT_S
        found: Acts = [YieldInstance(instance.id, run.id, 1, until, made.loss)]
        for row in self._rows[list(made.victims)].tolist():
            key, arn = state.key_of(row), arn_of_row(state, row)
            if key is not None and arn is not None:
                reason = f"argosy: stopped for run {run.id} of queue {run.terms.queue}"
                found.append(StopAttempt(arn, cell_of(arn), key, StopCause.PREEMPTED, reason, run.id))
        return found

    def _count(self, run: Run, instance: Instance, tasks: int = 1) -> None:
        """Counts that many tasks against the cap of the run's queue."""
        if self._caps is not None:
            units = np.array([units_of(run.needs, instance.size, instance.price_usd_per_hour)], dtype=np.int64)
            self._caps = self._caps.less(np.array([self._queue_row(run)]), tasks * units)

    def _is_within_cap(self, run: Run, instance: Instance) -> bool:
        """Whether the cap admits one more task; otherwise it could not start in the room taken for it."""
        if self._caps is None:
            return True
        units = np.array(units_of(run.needs, instance.size, instance.price_usd_per_hour), dtype=np.int64)
        return bool((units <= self._caps.left[self._queue_row(run)]).all())

    def _queue_row(self, run: Run) -> int:
        assert self._caps is not None
        return self._caps.names.index(queue_of_run(run, self._queues))

    def _move(self, held: _RunWithoutRoom, made: Exchange, holders: Holders) -> None:
        """The instance as it will be."""
        for row in made.victims:
            self.standing.move(int(holders.sharer[row]), -holders.takes[row])
        self.standing.move(self.order.row[held.run.id], self._takes(held.run))
        self._usd_left -= made.loss
        self._count(held.run, self.instances[made.place])
        self.money.lose(held.run.id, made.loss)

    def _holders(self) -> tuple[Holders, IntArray]:
        """The attempts that may be stopped, and their rows in the table."""
        state, table = self.moment.state, self.moment.state.attempts
        queues = self._queues
        places = table.positions([each.id for each in self.instances])
        live = table.has_status(AttemptStatus.LAUNCHED, AttemptStatus.RUNNING)
        live &= (table["stop_cause"] == StopCause.NONE.value) & (table["left_at"] == 0)
        rows, runs = [np.zeros(0, dtype=np.int64)], []
        of_run = _by_run(table["run"], np.flatnonzero(live))
        for run in state.runs.values():
            queue = queues.get(run.terms.queue) or queues[DEFAULT_QUEUE]
            if (
                run.number not in of_run
                or run.terms.serves
                or run.terms.gang
                or not queue.gives_up(run.terms.preemptible)
            ):
                continue
            its = of_run[run.number]
            its = its[run.tasks["preempted"][table["index"][its]] < self.reclaim.per_task]
            its = its[places[table.instance_number[its]] >= 0]
            rows.append(its)
            runs += [run] * len(its)
        known = np.concatenate(rows)
        return self._columns(known, places[table.instance_number[known]], runs), known

    def _columns(self, rows: IntArray, places: IntArray, runs: Sequence[Run]) -> Holders:
        """rows: of the table of attempts. The loss is each attempt's cost since its last checkpoint, plus that of its
        next start."""
        started_at = self.moment.state.attempts["started_at"][rows]
        needs = np.array([run.needs for run in runs], dtype=np.int64).reshape(-1, AXES)
        known = {run.number: self.lifting.takes(run) for run in {run.number: run for run in runs}.values()}
        takes = np.array([known[run.number] for run in runs], dtype=np.int64).reshape(-1, 5)
        sizes = np.array([each.size for each in self.instances], dtype=np.float64).reshape(-1, AXES)
        prices = np.array([each.price_usd_per_hour for each in self.instances])
        every_s = np.array([run.terms.checkpoint_s for run in runs])
        lost_s = since_checkpoint_s(np.maximum(0.0, self.moment.now - started_at), every_s) + self.moment.policy.start_s
        seconds = np.where(started_at > 0, lost_s, 0.0)
        losses = seconds * part_of(needs.T, sizes[places].T) * prices[places] / HOUR_S
        sharers = np.array([self.order.row[run.id] for run in runs], dtype=np.int64)
        return Holders(places, sharers, takes, losses, self._free)

    def _row(self, where: int, without: Mapping[int, int] | None = None) -> InstanceRow:
        """The instance, less that many attempts of each run."""
        state, instance = self.moment.state, self.instances[where]
        runs = Counter(state.attempts.runs_on_instance.get(instance.id.encode(), {}))
        runs.subtract(without or {})
        return row_of(instance, runs, self._uses, self.moment.policy, self._daemons)

    def _free_on(self, here: Sequence[InstanceRow]) -> IntArray:
        """(instances, 3) before this tick's launches, which go elsewhere. here: rows from placement; only the others
        are made again."""
        known = {row.id: row for row in here}
        rows = [known.get(each.id) or self._row(where) for where, each in enumerate(self.instances)]
        free = [(row.cpu_units, row.memory_mib, row.gpus) for row in rows]
        return np.maximum(0, np.array(free, dtype=np.int64).reshape(-1, 3))

    def _fits(self, held: _RunWithoutRoom, where: int, rows: Sequence[int]) -> bool:
        """Whether placement puts the task there without those attempts. A group that keeps together stays on its
        instance."""
        run, instance = held.run, self.instances[where]
        full = run.terms.max_instances is not None and len(held.places.instances) >= run.terms.max_instances
        if run.terms.affinity or (full and instance.id not in held.places.instances):
            return False
        if not self._is_within_cap(run, instance):
            return False
        row = self._row(where, Counter(self.moment.state.attempts["run"][self._rows[list(rows)]].tolist()))
        return not place([_one(held.places.left_over)], Supply.of([row]), fitness=self.fitness).unplaced.any()

    def _emptied(self) -> Iterator[YieldInstance]:
        """The run with the lowest level that fits nowhere gets an instance that takes no new work of others until it
        is empty, one at a time. Owners of the work that ends there must not have a lower level afterwards."""
        for held in sorted(self.held.values(), key=lambda each: self.standing.level(self.order.row[each.run.id])):
            if self.promised[held.run.number]:
                continue
            candidates = self._emptying.candidates(_one(held.places.left_over))
            found = next((where for where in candidates if self._may_empty(held, where)), None)
            if found is not None:
                until, batch = self.moment.now + EMPTIED_S, held.places.left_over
                tasks = self._emptying.room(found, replace(batch, count=self.wanted[held.run.id]))
                yield YieldInstance(self.instances[found].id, held.run.id, max(1, tasks), until, is_emptied=True)
                return

    def _may_empty(self, held: _RunWithoutRoom, where: int) -> bool:
        if not self._is_within_cap(held.run, self.instances[where]):
            return False
        state, those = self.moment.state, self._emptying.runs_on(where, serves=False)
        rows = [(row, int(state.attempts["run"][row])) for row in state.attempts.on_instance(self.instances[where].id)]
        runs = {number: state.run_by_number(number) for number in those}
        known = [(row, run) for row, number in rows if (run := runs.get(number)) is not None]
        placed = np.array([row for row, _ in known], dtype=np.int64)
        holders = self._columns(placed, np.full(len(known), where), [run for _, run in known])
        return is_just(self._wish(held.run), holders, self.standing, range(len(known)))


def _lifting(moment: Moment, places: Places) -> ShareLevels:
    """By the order in which this tick shared out places; otherwise the room would be taken back."""
    if places.share is not None:
        return places.share.levels
    alive = [each for each in moment.state.instances.values() if each.alive]
    sizes = np.array([each.size for each in alive], dtype=np.int64).reshape(-1, AXES)
    prices = np.array([each.price_usd_per_hour for each in alive])
    return ShareLevels.of(moment.state, sizes, prices, long_run_launches(moment))


def _by_run(numbers: IntArray, rows: IntArray) -> dict[int, IntArray]:
    """By Run.number, its part of the rows, in their order. numbers: of every row of the table."""
    ordered = rows[np.argsort(numbers[rows], kind="stable")]
    known, first = np.unique(numbers[ordered], return_index=True)
    return dict(zip(known.tolist(), np.split(ordered, first[1:]), strict=True)) if len(known) else {}


def _usd_left(moment: Moment, reclaim: Reclaim) -> float:
    """The work that may still be lost in this hour, in USD."""
    alive = sum(each.price_usd_per_hour for each in moment.state.instances.values() if each.alive)
    lost = sum(usd for at, usd in moment.state.sharing.displaced if at > moment.now - HOUR_S)
    return reclaim.per_hour_of_spend * alive - lost


def _one(batch: Batch) -> Batch:
    return replace(batch, count=1, max_instances=None)
