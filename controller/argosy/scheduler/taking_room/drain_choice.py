"""Which instance is emptied for a run that fits on none?

The problem: a run needs a whole instance of 8 GPUs, and every instance runs a few small tasks. Stopping tasks for it is
unfair or not allowed. The idea: one instance takes no new work until its tasks have ended by themselves. Example: i-1
has tasks that end in 20 and 5 minutes, i-2 one that ends in 10. Both would take the run; i-2 is empty first, so it is
chosen.

A suitable instance takes the run's tasks once it is empty, or allows a purchase of one that does once it is gone: it
frees one instance, its vCPUs and its dollars, which must be the scarce limit. Tasks of batch runs there end by
themselves. Those of services move as from a warned instance: others start elsewhere first (`services.rollout`). So an
instance with such tasks is emptied only if there is room for them elsewhere. Daemons go last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

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


@dataclass(slots=True)
class DrainChoice:
    """The choice in one tick. row: an instance of that place, less that many attempts of each run."""

    market: MarketView
    instances: Sequence[Instance]
    row: Callable[[int, Mapping[int, int]], InstanceRow]
    limits: OrderLimits
    _others: Supply | None = field(init=False, default=None)
    _runs: Mapping[int, Run] = field(init=False)  # by Run.number
    _soonest: list[tuple[bool, float, int]] | None = field(init=False, default=None)  # the same for every run

    def __post_init__(self) -> None:
        self._runs = {run.number: run for run in self.market.moment.state.runs.values()}

    def candidates(self, batch: Batch) -> Iterator[int]:
        """Places of the suitable instances, in order of when they are empty; those with service tasks last. batch:
        one task."""
        if self._soonest is None:
            self._soonest = sorted((*self._empty_in(each), where) for where, each in enumerate(self.instances))
        tried = 0
        for serves, seconds, where in self._soonest:
            if math.isinf(seconds) or tried >= MOST_TRIED:
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

    def _empty_in(self, instance: Instance) -> tuple[bool, float]:
        """Whether service tasks are there, and in how many seconds the last other task should end; infinite if none
        runs there or a duration is unknown."""
        table, now = self.market.moment.state.attempts, self.market.moment.now
        longest, serves = -math.inf, False
        for row in table.on_instance(instance.id):
            run, started_at = self._runs.get(int(table["run"][row])), float(table["started_at"][row])
            if run is None:
                return False, math.inf
            if run.terms.serves:
                serves = serves or not run.is_daemon
            else:
                past = now - started_at if started_at else 0.0
                longest = max(longest, run.expected_seconds(self.market.moment.policy.attempt_s) - past)
        return serves, max(0.0, longest) if serves or longest > -math.inf else math.inf

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
