"""Types bought for several batches at once, by the pattern allocator.

A batch takes part if only resources and the offer's maximum number of tasks limit how many of its tasks fit on an empty
instance. A batch with its own limit per instance, a port, distinctInstance or a disk does not take part. Batches with
equal constraints share an order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from argosy.market.allocation.allocate import Allocation, allocate
from argosy.market.allocation.effort import QUICK
from argosy.market.allocation.generate import is_available
from argosy.market.allocation.problem import PoolTable, Problem, TaskShapes, rooms
from argosy.market.limits import Choice, Headroom, OrderLimits
from argosy.market.offers import over_zones
from argosy.model.instance_types import GPU_SHARING_ATTRIBUTE, SHARES_GPUS
from argosy.model.pools import Offer, Patterns
from argosy.placement.arrays import MAX_TASKS, IntArray
from argosy.placement.demand import Batch

_MOST_SHAPES = 60  # of tasks in one allocation: a tick has little time


@dataclass(frozen=True, slots=True)
class JointOrder:
    """The allocator's order for several batches."""

    bought: tuple[Offer, ...] = ()  # one entry per instance; empty if there is nothing to gain
    lower_bound_usd_per_hour: float | None = None  # of placing every batch; None if they were bought for in groups
    method: str = ""
    patterns: Patterns = ()
    all_of_it: bool = False  # whether it covers all batches


def joint_order(
    batches: Sequence[Batch], fits: IntArray, offers: Sequence[Offer], limits: OrderLimits, patterns: Patterns = ()
) -> JointOrder:
    """The order for the batches together.

    fits: (batches, offers) tasks of each batch that an empty instance of each offer takes. patterns: of an earlier
    order.
    """
    sizes = np.array([offer.resources.cpu_memory_gpus for offer in offers], dtype=np.int64).reshape(-1, 3)
    needs = np.array([batch.need for batch in batches], dtype=np.int64).reshape(-1, 3)
    mosts = np.array([MAX_TASKS if o.most_tasks is None else o.most_tasks for o in offers], dtype=np.int64)
    room = np.minimum(np.minimum(rooms(sizes, needs).T, mosts), _shares_on(batches, offers))
    groups = _groups(batches, fits, room) if is_available() else []
    bought: list[Offer] = []
    found: list[Allocation] = []
    for members in groups:
        shares = np.array([(batches[n].gpu_share_mib, batches[n].gpu_owner) for n in members], dtype=np.int64)
        shapes, of_batch = np.unique(np.column_stack([needs[members], shares]), axis=0, return_inverse=True)
        if 1 < len(shapes) <= _MOST_SHAPES:
            count = np.zeros(len(shapes), dtype=np.int64)
            np.add.at(count, of_batch.reshape(-1), [batches[member].count for member in members])
            admitted = [offers[n] for n in np.flatnonzero((fits[members] > 0).any(axis=0)).tolist()]
            if admitted:
                wanted = TaskShapes(shapes[:, :3], count, shapes[:, 3:] if shares[:, 0].any() else None)
                allocation, chosen = _allocated(wanted, admitted, limits, patterns)
                found.append(allocation)
                bought += chosen
    whole = len(found) == 1 and len(groups[0]) == len(batches) and not found[0].left_out.any()
    return JointOrder(
        bought=tuple(_evenly(bought, limits.instances)),
        lower_bound_usd_per_hour=found[0].lower_bound_usd_per_hour if whole else None,
        method="patterns" if any(each.method == "patterns" for each in found) else "greedy",
        patterns=tuple(dict.fromkeys(pattern for each in found for pattern in each.kept)),
    )


def _groups(batches: Sequence[Batch], fits: IntArray, room: IntArray) -> list[list[int]]:
    """Indexes of batches that may share an order, in the order of the first of each group. room: as `fits`, limited
    only by resources and the most tasks on an instance."""
    plain = ((fits == 0) | (fits == room)).all(axis=1)
    groups: dict[object, list[int]] = {}
    for number, batch in enumerate(batches):
        alone = batch.affinity or batch.disk_gib  # limits that are no axis of the allocator
        if batch.count and plain[number] and batch.max_instances is None and not alone:
            constraints = tuple(each for each in batch.constraints if each != SHARES_GPUS)  # see `_gpu_mib`
            groups.setdefault((constraints, batch.anti_affinity), []).append(number)
    return list(groups.values())


def _gpu_mib(offer: Offer) -> int:
    """MiB of one GPU, for tasks that share it."""
    shared = any(name == GPU_SHARING_ATTRIBUTE for name, _ in offer.attributes)
    return offer.whole.gpu_share_mib // max(1, offer.whole.gpus) * shared


def _shares_on(batches: Sequence[Batch], offers: Sequence[Offer]) -> IntArray:
    """(batches, offers) the most tasks that the GPUs take of those that share one."""
    share = np.array([batch.gpu_share_mib for batch in batches], dtype=np.int64).reshape(-1, 1)
    memory = np.array([_gpu_mib(offer) for offer in offers], dtype=np.int64)
    gpus = np.array([offer.resources.gpus for offer in offers], dtype=np.int64)
    found: IntArray = np.where(share > 0, memory // np.maximum(share, 1) * gpus, MAX_TASKS)
    return found


def _allocated(
    wanted: TaskShapes, admitted: list[Offer], limits: OrderLimits, patterns: Patterns
) -> tuple[Allocation, list[Offer]]:
    """The allocator gets only the cheapest zone of each type and of each room that daemons leave in it: the others
    cost about the same, or nothing is bought there."""
    cheapest: dict[object, Offer] = {}
    memory = {id(offer): 0 if wanted.shares is None else _gpu_mib(offer) for offer in admitted}
    for offer in sorted(admitted, key=lambda offer: offer.effective):
        alike = offer.instance_type, offer.purchase, offer.resources, offer.most_tasks, memory[id(offer)]
        cheapest.setdefault(alike, offer)
    options = list(cheapest.values())
    kinds = {kind: number for number, kind in enumerate(dict.fromkeys(option.instance_type for option in options))}
    tasks = int(wanted.count.sum())
    offered = PoolTable.of(
        [option.resources.cpu_memory_gpus for option in options],
        [option.effective for option in options],
        _depths(options, admitted, tasks, limits),
        [kinds[option.instance_type] for option in options],
        [MAX_TASKS if option.most_tasks is None else option.most_tasks for option in options],
    )
    if wanted.shares is not None:
        offered = replace(offered, gpu_mib=np.array([memory[id(option)] for option in options], dtype=np.int64))
    share = max(limits.max_type_share, 1 / len(kinds))
    found = allocate(Problem(offered, wanted, share if share < 1 else None), QUICK, kept=patterns)
    bought = np.bincount(found.pool, weights=found.times, minlength=len(options)).astype(int)
    zones = {mib: [offer for offer in admitted if memory[id(offer)] == mib] for mib in set(memory.values())}
    chosen = [over_zones(one, zones[memory[id(one)]], n) for one, n in zip(options, bought, strict=True)]
    return found, list(chain.from_iterable(chosen))


def _depths(options: list[Offer], admitted: list[Offer], tasks: int, limits: OrderLimits) -> list[int]:
    """The most instances of each option: as many as there are tasks, or as its quotas leave. Each of several types
    that share a quota may use all of it here; the excess is left out later."""
    if not (limits.vcpus_left or limits.reserved):
        return [tasks] * len(options)
    most = max(limits.instances, tasks)
    quotas = Headroom(OrderLimits(most, vcpus_left=limits.vcpus_left, reserved=limits.reserved))
    choice = Choice(1, 1, 0)
    alike = {
        (
            offer.pool if offer.pool in limits.reserved else offer.cell,
            offer.instance_type,
            offer.purchase,
        ): min(tasks, quotas.most(offer, choice))
        for offer in admitted
    }
    return [
        min(tasks, sum(most for (_, kind, how), most in alike.items() if (kind, how) == (o.instance_type, o.purchase)))
        for o in options
    ]


def _evenly(bought: list[Offer], room: int) -> list[Offer]:
    """At most `room` of them, each offer in proportion."""
    if len(bought) <= room:
        return bought
    return [bought[number * len(bought) // room] for number in range(max(0, room))]
