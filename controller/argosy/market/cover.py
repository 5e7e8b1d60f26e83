"""The instances that place one batch at the lowest price per task, within the limits.

A batch may have to be spread over the values of an attribute, such as zones. ECS spreads over the instances that exist,
so each value gets as many tasks as evens out the whole group, at the lowest price within that value. Tasks that a value
cannot take, for lack of offers or limits, go to the others: a spread never leaves a task without an instance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from argosy.market.limits import ROUNDING, BatchLimits, Choice, Headroom
from argosy.market.offers import over_zones
from argosy.model.pools import Offer
from argosy.placement.arrays import IntArray, sums
from argosy.placement.demand import Batch
from argosy.placement.place import place
from argosy.placement.supply import InstanceRow, Supply

MONEY = "the run's budget"
RUN_LIMIT = "capacity.maxInstances of the run"


def cover(
    batch: Batch, limits: BatchLimits, offers: Sequence[Offer], fits: IntArray, headroom: Headroom
) -> tuple[list[Offer], str]:
    """One offer per instance, taken out of `headroom`, and the limit that holds back tasks that could be placed; "" =
    none.

    Takes the offer that places the rest at the lowest price per task, spread over zones of similar price; when a share
    or a quota ends before the demand, the next best. fits: (offers,) as from `tasks_per_instance`.
    """
    open_to = [(offer, tasks) for offer, tasks in zip(offers, fits.tolist(), strict=True) if tasks]
    picked: list[Offer] = []
    rest = batch.count
    while rest > 0 and open_to:
        choice = Choice.of((offer for offer, _ in open_to), _least_cpu(rest, open_to))
        best = _best(rest, _most(limits, open_to, headroom, choice))
        if best is None:
            return picked, _why(limits, open_to, headroom, choice)
        offer, tasks, instances = best
        siblings = [
            other
            for other, _ in open_to
            if headroom.most(other, choice) > 0 and _pays(limits, other) and limits.away(other) <= limits.away(offer)
        ]
        for zone in over_zones(offer, siblings, instances):
            if headroom.most(zone, choice) <= 0 or not _pays(limits, zone):
                continue
            headroom.take(zone)
            picked.append(zone)
            rest, limits = rest - tasks, limits.after(zone)
    return picked, ""


def _pays(limits: BatchLimits, offer: Offer) -> bool:
    return offer.price_usd_per_hour <= limits.usd_per_hour * (1 + ROUNDING)


def _most(
    limits: BatchLimits, open_to: Sequence[tuple[Offer, int]], headroom: Headroom, choice: Choice
) -> list[tuple[Offer, int, int, float]]:
    """(offer, tasks it holds, instances of it that may be bought, USD an hour of traffic per task), where any may be
    bought."""
    room, usd = limits.instances, limits.usd_per_hour
    found = []
    for offer, tasks in open_to:
        affordable = room if math.isinf(usd) else int(usd / max(offer.price_usd_per_hour, ROUNDING) * (1 + ROUNDING))
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
        if price < lowest * (1 - ROUNDING):
            # Tasks that would not fill an instance are compared separately: a smaller one may be enough.
            best, lowest = (offer, tasks, max(1, min(most, rest // tasks))), price
    return best


def _least_cpu(rest: int, open_to: Sequence[tuple[Offer, int]]) -> int:
    """The fewest cpu units that the rest takes, bought from one offer."""
    return min(-(-rest // tasks) * offer.resources.cpu_units for offer, tasks in open_to)


def _why(limits: BatchLimits, open_to: Sequence[tuple[Offer, int]], headroom: Headroom, choice: Choice) -> str:
    """The limit that stops the purchase of the next offer."""
    offer = min(open_to, key=lambda option: option[0].effective / option[1])[0]
    if reason := headroom.why_none(offer, choice):
        return reason
    if limits.instances <= 0:  # that of a run without a limit is the deployment's, which is named above
        return RUN_LIMIT
    cheapest, usd = min(each.price_usd_per_hour for each, _ in open_to), max(0.0, limits.usd_per_hour)
    return f"{MONEY}: {usd:.4f} USD an hour may still be bought, an instance costs {cheapest:.4f}"


def hypothetical(offer: Offer, number: int) -> InstanceRow:
    """An instance of the offer as placement sees it, which does not distinguish it from a present one."""
    return InstanceRow(
        f"{offer.pool}/{offer.purchase}/{number}",
        *offer.resources.cpu_memory_gpus,  # all of it is free
        *offer.whole.cpu_memory_gpus,
        dict(offer.attributes),
        used_host_ports=offer.host_ports,
        gpu_memory_mib=offer.whole.gpu_share_mib // max(1, offer.whole.gpus),
        disk_gib=offer.disk_gib,
        most_tasks=offer.most_tasks,
        price_usd_per_hour=offer.price_usd_per_hour,
        interruption_rate=offer.interruption_rate,
    )


def less(row: InstanceRow, batch: Batch, count: int) -> InstanceRow:
    """The instance with that many tasks of the batch on it."""
    return replace(
        row,
        cpu_units=row.cpu_units - count * batch.cpu_units,
        memory_mib=row.memory_mib - count * batch.memory_mib,
        gpus=row.gpus - count * batch.gpus,
        gpu_use=replace(
            row.gpu_use.plus(batch.gpu_share_mib, count, batch.gpu_owner),
            whole_unknown=row.gpu_use.whole_unknown + count * batch.gpus,
        ),
        disk_gib=row.disk_gib - count * batch.disk_gib,
        used_host_ports=row.used_host_ports.union(batch.host_ports),
        finish_at=max(row.finish_at, batch.finish_at),
        running_tasks=row.running_tasks + count,
        running_by_group={**row.running_by_group, batch.group: row.running_by_group.get(batch.group, 0) + count},
    )


def alike(batch: Batch) -> Batch:
    """The batch without fields that do not affect an empty instance. Equal results share one answer: how many of
    their tasks it takes, and why no more."""
    by_group = batch.affinity or batch.anti_affinity or any("task:group" in each for each in batch.constraints)
    alone = replace(batch, count=1, soft=(), strategy=(), finish_at=0.0, gpu_owner=0, image="")
    return replace(alone, group=batch.group if by_group else "")


def tasks_per_instance(batch: Batch, offers: Sequence[Offer]) -> IntArray:
    """(offers,) how many tasks of the batch an empty instance of each offer takes."""
    fits = np.zeros(len(offers), dtype=np.int64)
    if not offers:
        return fits
    rows = [hypothetical(offer, number) for number, offer in enumerate(offers)]
    # Ask for more tasks than all offers could take, or a spread over instances would divide a small batch among them.
    # A batch that keeps together would use one offer only.
    others = tuple(group for group in batch.affinity if group != batch.group)
    probe = replace(batch, count=10_000_000, strategy=(), max_instances=None, affinity=others)
    placed = place([probe], Supply.of(rows))
    np.add.at(fits, placed.row, placed.count)
    return fits


@dataclass(frozen=True, slots=True)
class Spread:
    """tasks: by value, those of the group that run, start now, or wait for an incoming instance."""

    attribute: str
    tasks: Mapping[str, int]

    def also_on(self, supply: Supply, group: str) -> Spread:
        """With the group's tasks on these instances as well."""
        found = supply.attribute(self.attribute)
        counts = sums(found.codes, supply.of_group(group), len(found.values) + 1)
        more = {value: count for value, count in zip((*found.values, ""), counts.tolist(), strict=True) if count}
        return replace(self, tasks=Counter(self.tasks) + Counter(more))


def cover_evenly(
    spread: Spread, batch: Batch, limits: BatchLimits, offers: Sequence[Offer], fits: IntArray, headroom: Headroom
) -> tuple[list[Offer], str]:
    """As `cover.cover`: one offer per instance, taken out of `headroom`, and the limit that holds back the tasks
    left over."""
    value_of = np.array([dict(offer.attributes).get(spread.attribute, "") for offer in offers], dtype=object)
    cheapest: dict[str, float] = {}
    for value, offer, tasks in zip(value_of.tolist(), offers, fits.tolist(), strict=True):
        if tasks:
            cheapest[value] = min(cheapest.get(value, np.inf), offer.effective / tasks)
    # Ties go to the cheaper value.
    values = sorted(cheapest, key=lambda value: (cheapest[value], value))
    if len(values) < 2 or limits.instances < len(values):
        return cover(batch, limits, offers, fits, headroom)
    here = [spread.tasks.get(value, 0) for value in values]
    picked: list[Offer] = []
    for value, count in zip(values, even_shares(batch.count, here), strict=True):
        found, _ = cover(replace(batch, count=count), limits, offers, np.where(value_of == value, fits, 0), headroom)
        for offer in found:
            limits = limits.after(offer)
        picked += found
    room_of = {(offer.pool, offer.purchase): tasks for offer, tasks in zip(offers, fits.tolist(), strict=True)}
    rest = batch.count - sum(room_of[offer.pool, offer.purchase] for offer in picked)
    if rest <= 0:
        return picked, ""
    more, reason = cover(replace(batch, count=rest), limits, offers, fits, headroom)
    return picked + more, reason


def even_shares(count: int, here: Sequence[int]) -> list[int]:
    """`count` divided so that the sums with `here` are as even as can be; of equal ones the first gets more.

    Five tasks added to 4, 0 and 1: the sums become 4, 3 and 3.

    >>> even_shares(5, [4, 0, 1])
    [0, 3, 2]
    """
    order = sorted(range(len(here)), key=lambda place: here[place])
    shares = [0] * len(here)
    for lowest in range(len(order), 0, -1):
        # The highest value still below the common level decides how many share.
        filled = sum(here[place] for place in order[:lowest]) + count
        level, extra = divmod(filled, lowest)
        if level >= here[order[lowest - 1]]:
            for place in order[:lowest]:
                shares[place] = level - here[place]
            for place in sorted(order[:lowest])[:extra]:
                shares[place] += 1
            break
    return shares
