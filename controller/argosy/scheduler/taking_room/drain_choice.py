"""Which instance is emptied for a run that fits on none?

The problem: a run needs a whole instance of 8 GPUs, and every instance runs a few small tasks. Stopping tasks for it is
unfair or not allowed. The idea: one instance takes no new work until its tasks have ended by themselves.

Example: instance 0 has tasks that end in 20 and 5 minutes, instance 1 one that ends in 10, and instance 2 also runs a
service. Instance 3 is idle, and how long the task on instance 4 takes is unknown. If each would take the run, instance
1 is chosen, because it is empty first.

>>> tasks = [(1200.0, 300.0), (600.0,), (60.0,), (), (math.inf,)]
>>> in_order([InstanceWork(left_s, serves=number == 2) for number, left_s in enumerate(tasks)])
[1, 0, 2]

A suitable instance takes the run's tasks once it is empty, or allows a purchase of one that does once it is gone: it
frees one instance, its vCPUs and its dollars, which must be the scarce limit. Tasks of batch runs there end by
themselves. Those of services move as from a warned instance: others start elsewhere first (`services.rollout`). So an
instance with such tasks is emptied only if there is room for them elsewhere. Daemons go last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from argosy.catalogue.quotas import quota_key
from argosy.market.cover import tasks_per_instance
from argosy.market.limits import Choice, Headroom, OrderLimits
from argosy.model.instances import Instance
from argosy.model.runs import Run
from argosy.placement.demand import Batch
from argosy.placement.place import place
from argosy.placement.supply import InstanceRow, Supply
from argosy.scheduler.buying.orders import MarketView
from argosy.scheduler.turns.asks import batch_of, shunned_by

MOST_TRIED = 8  # instances with service tasks whose possible moves are checked


class InstanceWork(NamedTuple):
    """The work on an instance, without daemons."""

    left_s: tuple[float, ...]  # of each task of a batch run, seconds until it should end; infinite = unknown
    serves: bool = False  # whether tasks of services run there


def in_order(works: Sequence[InstanceWork]) -> list[int]:
    """The instances in the order in which they are empty, those with service tasks last. Idle instances and those with
    a task of unknown duration are left out."""
    busy = sorted(
        (each.serves, max(0.0, max(each.left_s, default=0.0)), number)
        for number, each in enumerate(works)
        if each.left_s or each.serves
    )
    return [number for _, seconds, number in busy if seconds < math.inf]


@dataclass(slots=True)
class DrainChoice:
    """The choice in one tick. row: an instance of that place, less that many attempts of each run."""

    market: MarketView
    instances: Sequence[Instance]
    row: Callable[[int, Mapping[int, int]], InstanceRow]
    limits: OrderLimits
    _others: Supply | None = field(init=False, default=None)
    _runs: Mapping[int, Run] = field(init=False)  # by Run.number
    _soonest: list[tuple[int, bool]] | None = field(init=False, default=None)  # and whether services are there

    def __post_init__(self) -> None:
        self._runs = {run.number: run for run in self.market.moment.state.runs.values()}

    def candidates(self, batch: Batch) -> Iterator[int]:
        """Places of the suitable instances, in order of when they are empty; those with service tasks last. batch:
        one task."""
        if self._soonest is None:  # the same for every run
            works = [self._work(each) for each in self.instances]
            self._soonest = [(where, works[where].serves) for where in in_order(works)]
        tried = 0
        for where, serves in self._soonest:
            if tried >= MOST_TRIED:
                return
            tried += serves
            helps = self.room(where, batch) or self._opens(where, batch)
            if helps and (not serves or self._has_room_elsewhere(where)):
                yield where

    def room(self, where: int, batch: Batch) -> int:
        """How many tasks of the batch the instance takes once it is empty; daemons stay."""
        empty = Supply.of([self.row(where, self.runs_on(where))])
        left = place([replace(batch, max_instances=None)], empty, fitness=self.market.fitness)
        return batch.count - int(left.unplaced.sum())

    def runs_on(self, where: int, *, serves: bool | None = None) -> dict[int, int]:
        """By Run.number, of all runs but daemons, their live attempts there. serves: only those of services, or of
        no service."""
        name, found = self.instances[where].id.encode(), dict[int, int]()
        on_it: Mapping[int, int] = self.market.moment.state.attempts.runs_on_instance.get(name, {})
        for number, count in on_it.items():
            run = self._runs.get(number)
            if run is not None and count and not run.is_daemon and serves in (None, run.terms.serves):
                found[number] = count
        return found

    def _work(self, instance: Instance) -> InstanceWork:
        """A task of a suspended run has an unknown duration."""
        table, now = self.market.moment.state.attempts, self.market.moment.now
        left_s: list[float] = []
        serves = False
        for row in table.on_instance(instance.id):
            run, started_at = self._runs.get(int(table["run"][row])), float(table["started_at"][row])
            if run is None:
                left_s.append(math.inf)
            elif run.terms.serves:
                serves = serves or not run.is_daemon
            else:
                past = now - started_at if started_at else 0.0
                left_s.append(run.expected_seconds(self.market.moment.policy.attempt_s) - past)
        return InstanceWork(tuple(left_s), serves)

    def _opens(self, where: int, batch: Batch) -> bool:
        """Whether an instance that takes one may be bought once this instance is gone."""
        gone, limits = self.instances[where], self.limits
        kind = self.market.moment.catalogue.get(gone.instance_type)
        key = gone.cell, gone.purchase.value, quota_key(gone.instance_type, gone.purchase.value)
        vcpus = {each: left + (each == key and kind is not None) * (kind.vcpus if kind else 0)
                 for each, left in limits.vcpus_left.items()}  # fmt: skip
        after = Headroom(
            replace(
                limits,
                instances=max(0, limits.instances) + 1,
                vcpus_left=vcpus,
                usd_per_hour=limits.usd_per_hour + gone.price_usd_per_hour,
            )
        )
        fits = tasks_per_instance(replace(batch, count=1), self.market.offers).tolist()
        able = [offer for offer, tasks in zip(self.market.offers, fits, strict=True) if tasks]
        return any(after.most(offer, Choice.of(able, offer.whole.cpu_units)) > 0 for offer in able)

    def _has_room_elsewhere(self, where: int) -> bool:
        """Whether there is room elsewhere for the service tasks there."""
        state, name = self.market.moment.state, self.instances[where].id
        if self._others is None:
            self._others = Supply.of([self.row(each, {}) for each in range(len(self.instances))])
        not_here, shunned = f"not(ec2InstanceId in [{name}])", shunned_by(state)
        batches = []
        for number, count in self.runs_on(where, serves=True).items():
            batch = batch_of(self.market.moment, self._runs[number], self.market.moment.now, shunned)
            batches.append(replace(batch, count=count, constraints=(*batch.constraints, not_here)))
        return not place(batches, self._others, fitness=self.market.fitness).unplaced.any()
