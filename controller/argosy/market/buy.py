"""Which offers cover the demand that neither active nor ordered instances can take?

Buying is placing onto instances that do not exist yet (DESIGN D6): for each batch in queue order, first the room left
on what was already chosen in this tick, then the offer that places the rest at the lowest price per task, spread over
the zones where that type costs about the same, so that one shortage does not take everything. Prices are compared with
what risk adds to them (`Offer.effective`); limits of money count what is paid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from argosy.market.cover import alike, cover, hypothetical, less, tasks_per_instance
from argosy.market.limits import NO_BOUNDS, Bounds, Choice, Headroom, Limits
from argosy.market.together import Plan, planned_together
from argosy.model.instances import Purchase
from argosy.model.orders import Patterns
from argosy.model.pools import Offer
from argosy.placement.arrays import IntArray
from argosy.placement.demand import Batch
from argosy.placement.fitness import Fitness
from argosy.placement.place import place
from argosy.placement.supply import InstanceRow, Supply

__all__ = ["NO_FITNESS", "Bounds", "Limits", "Order", "buy", "hypothetical", "tasks_per_instance"]
_SETTLING = 4  # times that an order is looked at again with the next tick's eyes
NO_FITNESS: Mapping[str, Fitness] = MappingProxyType({})


@dataclass(slots=True)
class Order:
    """What to add: instances per (pool, purchase); per batch, how many tasks found no offer and what held them back."""

    instances: Counter[tuple[str, Purchase]] = field(default_factory=Counter)
    uncovered: list[int] = field(default_factory=list)
    held_back: list[str] = field(default_factory=list)  # "" = nothing; what the tasks wait for is another matter then
    usd_per_hour: float = 0.0  # of `instances`, with what risk adds
    lower_bound_usd_per_hour: float | None = None  # what covering the batches costs at least; None = not known
    method: str = "run by run"  # or "patterns", "greedy"
    patterns: Patterns = ()  # of the allocator, for the next order

    @property
    def gap(self) -> float | None:
        """How much dearer than the bound, as a share of it; None where the bound is not known or speaks of more."""
        low = self.lower_bound_usd_per_hour
        if not low or any(self.uncovered):
            return None
        return max(0.0, self.usd_per_hour / low - 1)


def buy(
    batches: Sequence[Batch],
    limits: Sequence[Limits],
    offers: Sequence[Offer],
    room: int,
    fitness: Mapping[str, Fitness] = NO_FITNESS,
    bounds: Bounds = NO_BOUNDS,
    patterns: Patterns = (),
) -> Order:
    """Cover `batches` with offers.

    `limits`: per batch; `room`: how many instances more over all. A batch that asks for on-demand says so in its
    constraints. `fitness`: users' own functions, which fill what is bought and have no say in what is. `patterns`: of
    an earlier order, to begin with.
    """
    ask = _Ask(batches, limits, offers, room, fitness, bounds)
    alone = ask.settled([])
    plan = ask.plan(patterns)
    if plan.bought:
        # The plan is in patterns, but tasks will be placed first in, first out: what counts is what that makes of it.
        together = ask.settled(plan.bought)
        if ask.is_better(together, alone):
            alone = replace(together, method=plan.method)
    return replace(
        alone,
        usd_per_hour=ask.price(alone),
        lower_bound_usd_per_hour=ask.lower_bound(plan),
        patterns=plan.patterns or patterns,
    )


@dataclass(frozen=True, slots=True)
class _Ask:
    """The question of one order."""

    batches: Sequence[Batch]
    limits: Sequence[Limits]
    offers: Sequence[Offer]
    room: int
    fitness: Mapping[str, Fitness]
    bounds: Bounds
    known: dict[Batch, IntArray] = field(default_factory=dict)

    def fits(self, batch: Batch) -> IntArray:
        """(offers,) tasks of the batch that an empty instance of each takes; asked once for equal batches."""
        key = alike(batch)
        if key not in self.known:
            self.known[key] = tasks_per_instance(batch, self.offers)
        return self.known[key]

    def settled(self, planned: Sequence[Offer]) -> Order:
        """An order that the next tick will find sufficient, so that one backlog is not bought for tick after tick.

        There the first batch finds the instances that were bought for the last one, and may fill them differently.
        """
        order = self._one_by_one(planned, self.limits)
        free = [each if each.free(self.room) else replace(each, instances=0) for each in self.limits]
        for _ in range(_SETTLING if sum(batch.count > 0 for batch in self.batches) > 1 else 0):
            by_name = {(offer.pool, offer.purchase): offer for offer in self.offers}
            bought = [by_name[name] for name, count in sorted(order.instances.items()) for _ in range(count)]
            again = self._one_by_one(bought, free)
            again.uncovered = [min(pair) for pair in zip(order.uncovered, again.uncovered, strict=True)]
            again.held_back = [why if rest else "" for why, rest in zip(order.held_back, again.uncovered, strict=True)]
            if again.instances == order.instances:
                break
            order = again
        return order

    def plan(self, patterns: Patterns) -> Plan:
        """What the allocator would buy for those batches that no limit of their own holds back, in order of filling."""
        free = [
            batch
            for batch, limits in zip(self.batches, self.limits, strict=True)
            if limits.free(self.room) and batch.count
        ]
        if self.room <= 0 or len({batch.need for batch in free}) < 2:
            return Plan()
        fits = np.array([self.fits(batch) for batch in free])
        fits = fits.reshape(len(free), len(self.offers))
        plan = planned_together(free, fits, self.offers, self.room, self.bounds, patterns)
        bought = sorted(plan.bought, key=lambda offer: (offer.pool, offer.purchase))
        return replace(plan, bought=tuple(self._within(bought)), all_of_it=len(free) == self._asking)

    def is_better(self, order: Order, other: Order) -> bool:
        """Leaves no more tasks without an offer, and is cheaper or leaves fewer."""
        here, there = sum(order.uncovered), sum(other.uncovered)
        return here < there or (here == there and self.price(order) < self.price(other) * (1 - 1e-9))

    def price(self, order: Order) -> float:
        """USD an hour, with what risk adds."""
        price = {(offer.pool, offer.purchase): offer.effective for offer in self.offers}
        return sum(price[bought] * count for bought, count in order.instances.items())

    def lower_bound(self, plan: Plan) -> float | None:
        """What covering the batches costs at least: the allocator's bound, or, for one batch, in closed form."""
        if self._asking == 1:
            batch = next(batch for batch in self.batches if batch.count)
            fits = self.fits(batch)
            prices = [o.effective / tasks for o, tasks in zip(self.offers, fits.tolist(), strict=True) if tasks]
            whole = [o.effective for o, tasks in zip(self.offers, fits.tolist(), strict=True) if tasks]
            return max(batch.count * min(prices), min(whole)) if prices else None
        return plan.lower_bound_usd_per_hour if plan.all_of_it else None

    @property
    def _asking(self) -> int:
        return sum(batch.count > 0 for batch in self.batches)

    def _within(self, planned: Sequence[Offer]) -> list[Offer]:
        """As many of them as the deployment's limits allow."""
        headroom = Headroom(self.room, self.bounds)
        choice = Choice.of(self.offers, sum(offer.resources.cpu_units for offer in planned))
        kept = []
        for offer in planned:
            if headroom.most(offer, choice) > 0:
                headroom.take(offer)
                kept.append(offer)
        return kept

    def _one_by_one(self, planned: Sequence[Offer], limits: Sequence[Limits]) -> Order:
        """Each batch in turn onto what is bought already, `planned` to begin with; the best offers for the rest."""
        order = Order()
        headroom = Headroom(self.room, self.bounds)
        for offer in planned:
            headroom.take(offer)
        bought = list(planned)
        chosen = [hypothetical(offer, number) for number, offer in enumerate(planned)]
        for batch, its in zip(self.batches, limits, strict=True):
            rest, chosen = _fill(batch, chosen, self.fitness)
            held_back = ""
            if rest:
                picked, held_back = cover(replace(batch, count=rest), its, self.offers, self.fits(batch), headroom)
                for offer in picked:
                    bought.append(offer)
                    chosen.append(hypothetical(offer, len(chosen)))
                if picked:
                    rest, chosen = _fill(replace(batch, count=rest), chosen, self.fitness)
            order.uncovered.append(rest)
            order.held_back.append(held_back if rest else "")
        order.instances.update((o.pool, o.purchase) for o, row in zip(bought, chosen, strict=True) if row.running_tasks)
        return order


def _fill(batch: Batch, rows: list[InstanceRow], fitness: Mapping[str, Fitness]) -> tuple[int, list[InstanceRow]]:
    """Place the batch on the rows: how many tasks are left over, and the rows with what is still free."""
    if not rows:
        return batch.count, rows
    placed = place([batch], Supply.of(rows), fitness=fitness)
    for row, count in zip(placed.row.tolist(), placed.count.tolist(), strict=True):
        rows[row] = less(rows[row], batch, count)
    return int(placed.unplaced[0]), rows
