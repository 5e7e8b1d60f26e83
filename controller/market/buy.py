"""Which offers cover the demand that neither active nor ordered instances can take?

Buying is placing onto instances that do not exist yet (DESIGN D6): for each batch in queue order, first the room left
on what was already chosen in this tick, then the offer that places the rest at the lowest price per task, spread over
the zones where that type costs about the same, so that one shortage does not take everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from controller.market.together import planned_together
from controller.market.zones import over_zones
from controller.model.instances import Purchase
from controller.model.pools import Offer
from controller.placement.demand import Batch
from controller.placement.fitness import Fitness
from controller.placement.place import place
from controller.placement.supply import InstanceRow, Supply

_SETTLING = 4  # times that an order is looked at again with the next tick's eyes
NO_FITNESS: Mapping[str, Fitness] = MappingProxyType({})


@dataclass(slots=True)
class Order:
    """What to add: instances per (pool, purchase); and how many tasks of each batch found no offer."""

    instances: Counter[tuple[str, Purchase]] = field(default_factory=Counter)
    uncovered: list[int] = field(default_factory=list)


def buy(
    batches: Sequence[Batch],
    caps: Sequence[int],
    offers: Sequence[Offer],
    room: int,
    fitness: Mapping[str, Fitness] = NO_FITNESS,
    max_share: float | None = None,
) -> Order:
    """Cover `batches` with offers.

    `caps`: per batch, how many more instances may be bought for it; `room`: how many more over all. Offers are sorted
    by price; a batch that asks for on-demand says so in its constraints. `fitness`: users' own functions, which fill
    what is bought and have no say in what is. `max_share`: largest share of the bought cpu that one instance type may
    have, as far as several batches are bought for together; None = any.
    """
    alone = _settled(batches, caps, offers, room, fitness, [])
    planned = _planned(batches, caps, offers, room, max_share)
    if not planned:
        return alone
    # The plan is in patterns, but tasks will be placed first in, first out: what counts is what that makes of it.
    together = _settled(batches, caps, offers, room, fitness, planned)
    return together if _is_better(together, alone, offers, max_share) else alone


def _settled(
    batches: Sequence[Batch],
    caps: Sequence[int],
    offers: Sequence[Offer],
    room: int,
    fitness: Mapping[str, Fitness],
    planned: Sequence[Offer],
) -> Order:
    """An order that the next tick will find sufficient, so that one backlog is not bought for tick after tick.

    There the first batch finds the instances that were bought for the last one, and may fill them differently.
    """
    order = _one_by_one(batches, caps, offers, room - len(planned), fitness, planned)
    free = [cap if cap >= room else 0 for cap in caps]
    for _ in range(_SETTLING if sum(batch.count > 0 for batch in batches) > 1 else 0):
        by_name = {(offer.pool, offer.purchase): offer for offer in offers}
        bought = [by_name[name] for name, count in sorted(order.instances.items()) for _ in range(count)]
        again = _one_by_one(batches, free, offers, room - len(bought), fitness, bought)
        again.uncovered = [min(pair) for pair in zip(order.uncovered, again.uncovered, strict=True)]
        if again.instances == order.instances:
            break
        order = again
    return order


def _one_by_one(
    batches: Sequence[Batch],
    caps: Sequence[int],
    offers: Sequence[Offer],
    room: int,
    fitness: Mapping[str, Fitness],
    planned: Sequence[Offer],
) -> Order:
    """Each batch in turn onto what is bought already, `planned` to begin with; then the best offer for its rest."""
    order = Order()
    bought = list(planned)
    chosen = [hypothetical(offer, number) for number, offer in enumerate(planned)]
    for batch, cap in zip(batches, caps, strict=True):
        rest, chosen = _fill(batch, chosen, fitness)
        if rest and (picked := _best(replace(batch, count=rest), min(cap, room), offers)):
            for offer in picked:
                bought.append(offer)
                chosen.append(hypothetical(offer, len(chosen)))
            room -= len(picked)
            rest, chosen = _fill(replace(batch, count=rest), chosen, fitness)
        order.uncovered.append(rest)
    order.instances.update((o.pool, o.purchase) for o, row in zip(bought, chosen, strict=True) if row.running_tasks)
    return order


def _planned(
    batches: Sequence[Batch], caps: Sequence[int], offers: Sequence[Offer], room: int, max_share: float | None
) -> list[Offer]:
    """What the allocator would buy for those batches that no cap holds back, in the order of filling."""
    free = [batch for batch, cap in zip(batches, caps, strict=True) if cap >= room and batch.count]
    if room <= 0 or len({batch.need for batch in free}) < 2:
        return []
    fits = np.array([tasks_per_instance(batch, offers) for batch in free]).reshape(len(free), len(offers))
    planned = planned_together(free, fits, offers, room, max_share)
    return sorted(planned, key=lambda offer: (offer.pool, offer.purchase))


def _is_better(order: Order, other: Order, offers: Sequence[Offer], max_share: float | None) -> bool:
    """Leaves no more tasks without an offer, and is cheaper; with a maximum share, only the former."""
    return sum(order.uncovered) <= sum(other.uncovered) and (
        max_share is not None or _price(order, offers) < _price(other, offers) * (1 - 1e-9)
    )


def _price(order: Order, offers: Sequence[Offer]) -> float:
    price = {(offer.pool, offer.purchase): offer.price_usd_per_hour for offer in offers}
    return sum(price[bought] * count for bought, count in order.instances.items())


def hypothetical(offer: Offer, number: int) -> InstanceRow:
    """An instance of the offer, as placement sees it: it has no idea whether an instance is real."""
    cpu_units, memory_mib, gpus = offer.resources
    return InstanceRow(
        id=f"{offer.pool}/{offer.purchase}/{number}",
        cpu_units=cpu_units,
        memory_mib=memory_mib,
        gpus=gpus,
        total_cpu_units=cpu_units,
        total_memory_mib=memory_mib,
        total_gpus=gpus,
        attributes=dict(offer.attributes),
        lifecycle=offer.purchase.value,
        price_usd_per_hour=offer.price_usd_per_hour,
    )


def _fill(batch: Batch, rows: list[InstanceRow], fitness: Mapping[str, Fitness]) -> tuple[int, list[InstanceRow]]:
    """Place the batch on the rows: how many tasks are left over, and the rows with what is still free."""
    if not rows:
        return batch.count, rows
    placed = place([batch], Supply.of(rows), fitness=fitness)
    for row, count in zip(placed.row.tolist(), placed.count.tolist(), strict=True):
        rows[row] = _less(rows[row], batch, count)
    return int(placed.unplaced[0]), rows


def _less(row: InstanceRow, batch: Batch, count: int) -> InstanceRow:
    return replace(
        row,
        cpu_units=row.cpu_units - count * batch.cpu_units,
        memory_mib=row.memory_mib - count * batch.memory_mib,
        gpus=row.gpus - count * batch.gpus,
        used_host_ports=row.used_host_ports.union(batch.host_ports),
        running_tasks=row.running_tasks + count,
        running_by_group={
            **row.running_by_group,
            batch.group: row.running_by_group.get(batch.group, 0) + count,
        },
    )


def _best(batch: Batch, limit: int, offers: Sequence[Offer]) -> list[Offer]:
    """The instances of one type that place the batch at the lowest price per task placed; empty when none can."""
    if limit <= 0:
        return []
    fits = tasks_per_instance(batch, offers)
    best: tuple[float, int] | None = None
    for number, (offer, tasks) in enumerate(zip(offers, fits.tolist(), strict=True)):
        if tasks:
            instances = min(limit, -(-batch.count // tasks))
            price = instances * offer.price_usd_per_hour / min(batch.count, instances * tasks)
            if best is None or price < best[0] * (1 - 1e-9):
                best = (price, number)
    if best is None:
        return []
    winner, tasks = offers[best[1]], int(fits[best[1]])
    instances = min(limit, -(-batch.count // tasks))
    open_to = [offer for offer, fit in zip(offers, fits.tolist(), strict=True) if fit]
    return over_zones(winner, open_to, instances)


def tasks_per_instance(batch: Batch, offers: Sequence[Offer]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """How many tasks of the batch an empty instance of each offer takes; shape (offers,). One probe per offer."""
    fits = np.zeros(len(offers), dtype=np.int64)
    if not offers:
        return fits
    rows = [hypothetical(offer, number) for number, offer in enumerate(offers)]
    # A spread over instances would share a small batch out: ask for more than all could take. A batch that keeps
    # together would ask one offer alone.
    others = tuple(group for group in batch.affinity if group != batch.group)
    probe = replace(batch, count=10_000_000, strategy=(), max_instances=None, affinity=others)
    placed = place([probe], Supply.of(rows))
    np.add.at(fits, placed.row, placed.count)
    return fits
