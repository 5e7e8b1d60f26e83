"""Which instances place one batch at the lowest price per task, within the limits; and what holds the rest back?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from argosy.market.limits import Choice, Headroom, Limits
from argosy.market.offers import over_zones
from argosy.model.pools import Offer
from argosy.placement.arrays import IntArray
from argosy.placement.demand import Batch
from argosy.placement.place import place
from argosy.placement.supply import InstanceRow, Supply

_HAIR = 1e-9
MONEY = "the run's budget"
RUN_LIMIT = "capacity.maxInstances of the run"


def cover(
    batch: Batch, limits: Limits, offers: Sequence[Offer], fits: IntArray, headroom: Headroom
) -> tuple[list[Offer], str]:
    """One offer per instance, taken out of `headroom`, and what holds back tasks that could be placed; "" = nothing.

    The offer that places the rest at the lowest price per task, spread over zones of similar price; where a share or a
    quota ends before the work does, the next best. `fits`: as of `tasks_per_instance`.
    """
    open_to = [(offer, tasks) for offer, tasks in zip(offers, fits.tolist(), strict=True) if tasks]
    picked: list[Offer] = []
    rest, usd = batch.count, limits.usd_per_hour
    while rest > 0 and open_to:
        choice = Choice.of((offer for offer, _ in open_to), _least_cpu(rest, open_to))
        room = limits.instances - len(picked)
        best = _best(rest, _most(room, usd, limits, open_to, headroom, choice))
        if best is None:
            return picked, _why(room, usd, open_to, headroom, choice)
        offer, tasks, instances = best
        siblings = [
            other
            for other, _ in open_to
            if headroom.most(other, choice) > 0
            and other.price_usd_per_hour <= usd * (1 + _HAIR)
            and limits.away(other) <= limits.away(offer)
        ]
        for zone in over_zones(offer, siblings, instances):
            if headroom.most(zone, choice) <= 0 or zone.price_usd_per_hour > usd * (1 + _HAIR):
                continue
            headroom.take(zone)
            picked.append(zone)
            rest, usd = rest - tasks, usd - zone.price_usd_per_hour
    return picked, ""


def _most(
    room: int,
    usd: float,
    limits: Limits,
    open_to: Sequence[tuple[Offer, int]],
    headroom: Headroom,
    choice: Choice,
) -> list[tuple[Offer, int, int, float]]:
    """(offer, tasks it holds, instances of it that may be bought, what a task costs besides) where it is any."""
    found = []
    for offer, tasks in open_to:
        affordable = room if math.isinf(usd) else int(usd / max(offer.price_usd_per_hour, _HAIR) * (1 + _HAIR))
        if (most := min(room, affordable)) > 0 and (most := min(most, headroom.most(offer, choice))) > 0:
            found.append((offer, tasks, most, limits.away(offer)))
    return found


def _best(rest: int, options: Sequence[tuple[Offer, int, int, float]]) -> tuple[Offer, int, int] | None:
    """The offer with the lowest price per task placed, the tasks on one instance, and how many instances of it."""
    best: tuple[Offer, int, int] | None = None
    lowest = math.inf
    for offer, tasks, most, away in options:
        instances = min(most, -(-rest // tasks))
        price = instances * offer.effective / min(rest, instances * tasks) + away
        if price < lowest * (1 - _HAIR):
            # What would not fill an instance is looked at by itself: a smaller one may do.
            best, lowest = (offer, tasks, max(1, min(most, rest // tasks))), price
    return best


def _least_cpu(rest: int, open_to: Sequence[tuple[Offer, int]]) -> int:
    """What the rest takes at least, bought from one offer."""
    return min(-(-rest // tasks) * offer.resources.cpu_units for offer, tasks in open_to)


def _why(room: int, usd: float, open_to: Sequence[tuple[Offer, int]], headroom: Headroom, choice: Choice) -> str:
    """The reason of the offer that would be bought next."""
    offer = min(open_to, key=lambda option: option[0].effective / option[1])[0]
    if room <= 0:
        return RUN_LIMIT
    if reason := headroom.why_none(offer, choice):
        return reason
    cheapest = min(each.price_usd_per_hour for each, _ in open_to)
    return f"{MONEY}: {max(0.0, usd):.4f} USD an hour may still be bought, an instance costs {cheapest:.4f}"


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
        price_usd_per_hour=offer.price_usd_per_hour,
        interruption_rate=offer.interruption_rate,
    )


def less(row: InstanceRow, batch: Batch, count: int) -> InstanceRow:
    """The instance with so many tasks of the batch on it."""
    return replace(
        row,
        cpu_units=row.cpu_units - count * batch.cpu_units,
        memory_mib=row.memory_mib - count * batch.memory_mib,
        gpus=row.gpus - count * batch.gpus,
        used_host_ports=row.used_host_ports.union(batch.host_ports),
        finish_at=max(row.finish_at, batch.finish_at),
        running_tasks=row.running_tasks + count,
        running_by_group={
            **row.running_by_group,
            batch.group: row.running_by_group.get(batch.group, 0) + count,
        },
    )


def alike(batch: Batch) -> Batch:
    """Equal for batches that an empty instance tells the same: what it takes of them, and why not."""
    by_group = batch.affinity or batch.anti_affinity or any("task:group" in each for each in batch.constraints)
    return replace(batch, count=1, group=batch.group if by_group else "", soft=(), strategy=(), finish_at=0.0)


def tasks_per_instance(batch: Batch, offers: Sequence[Offer]) -> IntArray:
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
