"""What waits and what runs beside a run that waits, as columns: for the course of starts.

The course looks at the part of the cluster whose instances could take a task of the run if they were empty. Of runs
that could use other instances as well, so much less waits there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from argosy.market.cover import alike, hypothetical, tasks_per_instance
from argosy.market.daemons import daemons_of
from argosy.market.limits import QuotaKey, quota_of, vcpus_of
from argosy.market.offers import offers_of
from argosy.model.instances import Instance
from argosy.model.moment import Moment
from argosy.model.pools import Offer
from argosy.model.run_terms import RunTerms
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.placement.demand import Batch
from argosy.placement.explain import ever_fits
from argosy.placement.supply import Supply
from argosy.scheduler.affordable import instances_left
from argosy.scheduler.budget import is_about_money
from argosy.scheduler.caps import is_at_cap
from argosy.scheduler.fair_order import FairOrder
from argosy.scheduler.queue import batch_of, shunned_by
from argosy.scheduler.quotas import vcpus_left
from argosy.scheduler.roster import Lineup, Roster
from argosy.scheduler.urgency import latest_starts
from argosy.sharing.columns import Columns, IntArray, Sharers
from argosy.sharing.course import ANY, STEP_S, BusyRuns, RoomInTime
from argosy.sharing.pieces import WHOLE, FloatArray, Pieces

BoolArray: TypeAlias = NDArray[np.bool_]

A_TICK_S = 5.0  # between two of them while there is work
OVERDUE = 0.25  # of a task's usual time, that one still takes which has taken as long as that


@dataclass(frozen=True, slots=True)
class Crowd:
    """The runs that share a part of the cluster with a run that waits. Rows are those of `order.runs`; the limits are
    cpu units, MiB and GPUs."""

    order: FairOrder
    runs: BusyRuns
    sharers: Sharers
    room: RoomInTime
    row: int  # of the run
    instances: int  # here and to come, in that part of the cluster
    known: BoolArray  # (runs,) whether it is known how long its tasks take: from those that ended, or from the spec
    seen: BoolArray  # (runs,) whether some of its tasks have ended

    @property
    def live(self) -> IntArray:
        """(runs,) how many tasks of each run now."""
        return np.bincount(self.runs.live_run, weights=self.runs.live_count, minlength=len(self.known)).astype(np.int64)

    @property
    def used(self) -> IntArray:
        """(sharers, 3) what the tasks take that run now."""
        found = np.zeros((len(self.sharers.weight), 3), dtype=np.int64)
        np.add.at(found, self.runs.columns.sharer, self.live[:, None] * self.runs.columns.takes)
        return found


@dataclass(frozen=True, slots=True)
class Market:
    """What may be bought for a run."""

    offer: Offer | None  # the cheapest for a task of it; None = nothing could take it now
    instances: int  # how many may be bought
    full: tuple[QuotaKey, ...] = ()  # the quotas that what could take it draws on, where none of them has room

    @classmethod
    def of(cls, moment: Moment, batch: Batch) -> Market:
        """Where the deployment's own limits are all that counts."""
        state = moment.state
        offers = offers_of(state.pools.values(), moment.catalogue, moment.now, moment.policy, daemons=daemons_of(state))
        fits = tasks_per_instance(replace(batch, count=1), offers).tolist()
        able = [(each.effective / tasks, each) for each, tasks in zip(offers, fits, strict=True) if tasks]
        best = min(able, key=lambda one: one[0])[1] if able else None
        left = vcpus_left(moment)
        open_to = [each for _, each in able if vcpus_of(each) <= left.get(quota_of(each), math.inf)]
        full = [] if open_to else sorted(able, key=lambda one: one[0])
        quotas = tuple(dict.fromkeys(quota_of(each) for _, each in full))
        return cls(best, max(0, min(instances_left(moment), _in_quotas(open_to, left))), quotas)


def _in_quotas(open_to: Sequence[Offer], left: Mapping[QuotaKey, int]) -> int:
    """How many instances of these the quotas leave: of each, those with the fewest vCPUs."""
    vcpus: dict[QuotaKey, int] = {}
    for offer in open_to:
        key = quota_of(offer)
        if key not in left:
            return ANY
        vcpus[key] = min(vcpus.get(key, ANY), vcpus_of(offer))
    return sum(left[key] // each for key, each in vcpus.items())


def crowd_of(moment: Moment, run: Run, batch: Batch, market: Market, everywhere: bool = False) -> Crowd:
    """batch: one task of the run. everywhere: look at the whole cluster, as if its tasks fitted on any instance."""
    made = _Making(moment, Roster().at(moment), market, everywhere)
    return made.crowd(run, batch)


class _Making:
    """One look at one moment."""

    def __init__(self, moment: Moment, lineup: Lineup, market: Market, everywhere: bool) -> None:
        self._moment, self._lineup, self._market, self._everywhere = moment, lineup, market, everywhere
        offers = [hypothetical(market.offer, 0)] if market.offer else []
        self._offers = Supply.of(offers)
        self._shunned = shunned_by(moment.state)
        self._fits: dict[Batch, tuple[BoolArray, bool]] = {}

    def crowd(self, run: Run, batch: Batch) -> Crowd:
        state, lineup = self._moment.state, self._lineup
        part, _ = self._where(batch)
        who, instance = _at_work(state, lineup)
        inside = part[instance]
        who, rows = who[inside], state.attempts.placed()[_is_here(state, lineup)][inside]
        running = set(np.unique(who).tolist())
        those = [each for each in _sharing(state) if each.number in running or _may_start(each)]
        order = FairOrder.of(state, those, latest_starts(self._moment, those))
        columns, takes = self._columns(order, part), np.array([each.needs for each in order.runs], dtype=np.int64)
        seconds, known = _durations(order.runs, columns, self._moment.policy.start_s)
        by_number = {each.number: row for row, each in enumerate(order.runs)}
        of_run = np.array([by_number.get(number, -1) for number in who.tolist()], dtype=np.int64)
        live = self._live(of_run[of_run >= 0], rows[of_run >= 0], seconds)
        used = np.zeros((len(order.sharers), 3), dtype=np.int64)
        room = self._room(part, takes[live[0]].T @ live[2] if len(live[0]) else np.zeros(3, dtype=np.int64))
        busy = BusyRuns.of(columns, seconds, self._most(order.runs, part), live)
        return Crowd(
            order=order,
            runs=replace(busy, pieces=self._pieces(part, room, takes)),
            sharers=Sharers.of(order.weight, used, order.parts, order.factor),
            room=room,
            row=next(row for row, each in enumerate(order.runs) if each is run),
            instances=int(part.sum()),
            known=known,
            seen=np.array([each.ended > 0 for each in order.runs], dtype=np.bool_),
        )

    def _where(self, batch: Batch) -> tuple[BoolArray, bool]:
        """Which instances could take it if they were empty, and whether what would be bought could."""
        if self._everywhere:
            return np.ones(len(self._lineup.supply), dtype=np.bool_), True
        key = alike(batch)
        if key not in self._fits:
            bought = bool(ever_fits(key, self._offers).any()) if len(self._offers) else False
            self._fits[key] = ever_fits(key, self._lineup.supply), bought
        return self._fits[key]

    def _columns(self, order: FairOrder, part: BoolArray) -> Columns:
        """Of the tasks of each run, those that will want a place in that part."""
        wants = [self._wants(run, part) for run in order.runs]
        return Columns.of([order.row[run.id] for run in order.runs], wants, [run.needs for run in order.runs])

    def _wants(self, run: Run, part: BoolArray) -> int:
        moment = self._moment
        if not _may_start(run):
            return 0
        batch = batch_of(moment.state, run, moment.now + moment.policy.linger_s, self._shunned)
        waiting = run.tasks.startable_count(moment.now + moment.policy.linger_s)
        fits, bought = self._where(replace(batch, count=1))
        both = int((fits & part).sum())
        if not both:
            return waiting if bought else 0
        return -(-waiting * both // int(fits.sum()))

    def _most(self, runs: Sequence[Run], part: BoolArray) -> list[int]:
        """How many tasks of each may run at once. Where its queue is at its cap, no more than now."""
        here = self._moment.state.attempts.here_of_run
        return [
            len(here(run.number)) if is_at_cap(run.waiting) else _most_at_once(run.terms, int(part.sum()))
            for run in runs
        ]

    def _live(self, who: IntArray, rows: IntArray, seconds: FloatArray) -> tuple[IntArray, FloatArray, IntArray]:
        """By run and by the step in which they end: the tasks that run now."""
        started = self._moment.state.attempts["started_at"][rows]
        age = np.where(started > 0, self._moment.now - started, 0.0)
        usual = seconds[who]
        left = np.maximum(usual - age, OVERDUE * usual)
        step = np.where(np.isfinite(left), np.round(np.minimum(left, 1e9) / STEP_S * 2), -1)
        groups, count = np.unique(np.stack([who, step.astype(np.int64)]), axis=1, return_counts=True)
        return groups[0], np.where(groups[1] < 0, math.inf, groups[1] * STEP_S / 2), count

    def _room(self, part: BoolArray, taken: IntArray) -> RoomInTime:
        """taken: (3,) what the tasks take that run now."""
        supply, ready, policy = self._lineup.supply, self._lineup.ready, self._moment.policy
        here = part & (np.arange(len(supply)) < ready)
        coming = np.flatnonzero(part & ~here)
        times = [self._comes_in(supply.row(int(row)).id) for row in coming]
        amounts = supply.free.T[coming].tolist()
        for number, count in enumerate(self._growth()):
            assert self._market.offer is not None
            times.append(policy.boot_s + number * STEP_S)
            amounts.append([count * each for each in self._market.offer.resources])
        cells = max(1, len({pool.cell for pool in self._moment.state.pools.values()}))
        starts = min(policy.max_launches_per_tick, policy.launches_per_cell * cells) / A_TICK_S
        return RoomInTime.of(supply.free[:, here].sum(axis=1) + taken, times, amounts, starts)

    def _pieces(self, part: BoolArray, room: RoomInTime, takes: IntArray) -> Pieces | None:
        """How large tasks and free pieces are, as parts of an instance of average size."""
        supply, ready = self._lineup.supply, self._lineup.ready
        instances = int(part.sum())
        size = supply.total[:, part].sum(axis=1) / max(1, instances)
        if not size.any():
            return None
        free = supply.free[:, :ready][:, part[:ready]]
        axes = size > 0
        return Pieces.of(
            np.maximum(1, WHOLE * (takes[:, axes] / size[axes]).max(axis=1)),
            WHOLE * (free[axes] / size[axes, None]).min(axis=0),
            WHOLE * (room.comes[:, axes] / size[axes]).max(axis=1),
            instances,
        )

    def _comes_in(self, name: str) -> float:
        """In how many seconds an instance takes its first task: one that boots, that pauses, or that is owed."""
        instance, now, policy = self._moment.state.instances.get(name), self._moment.now, self._moment.policy
        if instance is None:
            return policy.boot_s
        return max(0.0, _ready_at(instance, policy.boot_s) - now)

    def _growth(self) -> list[int]:
        """How many instances may be bought in each step from now on."""
        a_step = max(1, int(self._moment.policy.growth_per_tick * STEP_S / A_TICK_S))
        left = self._market.instances
        return [min(a_step, left - sum_) for sum_ in range(0, left, a_step)]


def _ready_at(instance: Instance, boot_s: float) -> float:
    return instance.paused_until if instance.registered_at else instance.launched_at + boot_s


def _sharing(state: State) -> list[Run]:
    return [run for run in state.runs.values() if not run.is_daemon]


def _may_start(run: Run) -> bool:
    """Whether it takes a place that comes free."""
    return run.ready and not is_about_money(run.waiting)


def _is_here(state: State, lineup: Lineup) -> BoolArray:
    """(live attempts that have their place,) whether that is on an instance that may be given work."""
    table = state.attempts
    found: BoolArray = table.positions(lineup.here.ids)[table.instance_number[table.placed()]] >= 0
    return found


def _at_work(state: State, lineup: Lineup) -> tuple[IntArray, IntArray]:
    """Of those, the number of the run and the row of the instance."""
    table = state.attempts
    rows = table.placed()[_is_here(state, lineup)]
    return table["run"][rows].astype(np.int64), table.positions(lineup.here.ids)[table.instance_number[rows]]


def _durations(runs: Sequence[Run], columns: Columns, start_s: float) -> tuple[FloatArray, BoolArray]:
    """(runs,) for how many seconds a task takes its place, and whether that is known. What is not known is taken to be
    as long as the others are."""
    said = [run.mean_seconds(run.terms.expected_seconds) for run in runs]
    serves = np.array([run.terms.service is not None for run in runs], dtype=np.bool_)
    known = np.array([each is not None for each in said], dtype=np.bool_) | serves
    seconds = np.array([math.nan if each is None else float(each) for each in said], dtype=np.float64)
    usual = np.isfinite(seconds)
    weight = np.maximum(columns.wants[usual], 1)
    mean = float((seconds[usual] * weight).sum() / weight.sum()) if usual.any() else math.inf
    seconds = np.where(usual, seconds, mean) + start_s
    return np.where(serves, math.inf, seconds), known


def _most_at_once(terms: RunTerms, instances: int) -> int:
    """How many of its tasks may run at once there, by its own limits."""
    most = ANY if terms.max_concurrent is None else terms.max_concurrent
    if terms.max_tasks_per_instance is None:
        return most
    return min(most, terms.max_tasks_per_instance * (terms.max_instances or max(1, instances)))
