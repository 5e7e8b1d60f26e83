"""The use, share and waiting tasks of each queue, and the use of vCPU quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from argosy.market.limits import QuotaKey, quota_name
from argosy.model.moment import Moment
from argosy.model.sharers import live_by_number, queue_of_run
from argosy.model.shares.recent_use import Sharer
from argosy.model.shares.sharing import Cap, Guarantee
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.scheduler.turns.caps import (
    OF_A_VCPU,
    SCALE,
    queues_by_number,
    quotas_of,
    use_by_run,
    use_of_quotas,
    vcpus_left,
)
from argosy.scheduler.turns.fair_order import FairOrder
from argosy.sharing.columns import ONE_FACTOR
from argosy.sharing.history import part_used

NO_CAP, NOTHING_USED = Cap(), Cap(0.0, 0.0, 0.0, 0.0)


class PastUse(NamedTuple):
    """Past use of a queue, or of an owner in one that is shared by owners."""

    owner: str  # "" = the queue itself
    use: float  # the largest share that it used of the cluster, 0..1, where older use counts less
    factor: float  # the resulting factor of its weight


@dataclass(slots=True)
class QueueUse:
    """One queue, now."""

    name: str
    weight: int
    by_owner: bool
    runs: int = 0  # open ones
    waiting: int = 0  # tasks
    running: int = 0  # tasks that have a place
    use: float = 0.0  # the largest share that it uses of the cluster's cpu, memory or GPUs, 0..1
    share: float = 0.0  # its weight's share of the weights of the queues with open runs, 0..1
    level: float | None = None  # use / weight; None if the weight is 0
    cap: Cap = NO_CAP
    guarantee: Guarantee | None = None
    lend: bool = True
    used: Cap = NOTHING_USED  # use that counts against the cap
    preempts: bool = False  # whether its runs may take room
    preemptible: bool | None = None  # whether its tasks may be stopped for them; None = as each run says
    preempted: int = 0  # attempts of its open runs that were stopped for others
    kept: int = 0  # instances that take no work but its own, until its tasks arrive
    lately: Sequence[PastUse] = ()  # by its sharers with open runs, if past use counts


def use_of_queues(state: State) -> Sequence[QueueUse]:
    """In the order of the document; an unlisted queue counts as the default one, the first."""
    queues = state.sharing.queues()
    found = {
        name: QueueUse(
            name,
            queue.weight,
            queue.by_owner,
            cap=queue.cap,
            guarantee=queue.guarantee,
            lend=queue.lend,
            preempts=queue.preempts,
            preemptible=queue.preemptible,
        )
        for name, queue in queues.items()
    }
    kept = Counter(each.yields_to for each in state.instances.values() if each.yields_to and each.alive)
    live = live_by_number(state)
    taken = {name: [0, 0, 0] for name in found}
    queue_of = queues_by_number(state)
    units = use_by_run(state, queue_of)
    for number, uses in units.items():
        its = found[queue_of[number]]
        its.used = Cap(*(has + more / scale for has, more, scale in zip(its.used, uses, SCALE, strict=False)))
    for run in state.runs.values():
        if run.is_daemon:
            continue  # it belongs to no queue
        name = queue_of_run(run, queues)
        its = found[name]
        its.runs += 1
        its.preempted += run.preemptions
        its.kept += kept[run.number]
        its.waiting += int(run.tasks.counts()[TaskStatus.PENDING])
        its.running += live.get(run.number, 0)
        for axis, need in enumerate(run.needs.cpu_memory_gpus):
            taken[name][axis] += live.get(run.number, 0) * need
    whole = [sum(each.total[axis] for each in state.instances.values() if each.alive) for axis in range(3)]
    weights = sum(each.weight for each in found.values() if each.runs)
    for name, its in found.items():
        its.use = max((part / all_ for part, all_ in zip(taken[name], whole, strict=True) if all_), default=0.0)
        its.share = its.weight / weights if its.runs and weights else 0.0
        its.level = its.use / its.weight if its.weight else None
    for (name, owner), factor in _factors(state).items():
        used = part_used(state.sharing.recent, (name, owner))
        found[name].lately = [*found[name].lately, PastUse(owner, used, factor / ONE_FACTOR)]
    return list(found.values())


def _factors(state: State) -> dict[Sharer, int]:
    """The factors of sharers with open runs, if past use counts."""
    if not state.sharing.recent.at:
        return {}
    order = FairOrder.of(state, list(state.runs.values()))
    return dict(sorted(zip(order.sharers, order.factor.tolist(), strict=True)))


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """One vCPU quota, now."""

    key: QuotaKey
    vcpus: int
    left: int  # may be below 0 after a quota was reduced
    used: Mapping[str, float]  # by queue, vCPUs that its tasks reserve, the largest first

    @property
    def name(self) -> str:
        """As in the reasons of runs."""
        return quota_name(self.key, {self.key: self.vcpus})


def quotas_by_queue(moment: Moment, keys: Sequence[QuotaKey] | None = None) -> Sequence[QuotaUse]:
    """keys: None = all in the settings."""
    whole, left, queues = quotas_of(moment.policy), vcpus_left(moment), queues_by_number(moment.state)
    keys = tuple(whole) if keys is None else keys
    used: dict[QuotaKey, Counter[str]] = {key: Counter() for key in keys}
    for number, units in use_of_quotas(moment, keys).items():
        for key, its in zip(keys, units.tolist(), strict=True):
            if number in queues and its:
                used[key][queues[number]] += its
    return [
        QuotaUse(key, whole[key], left[key], {name: its / OF_A_VCPU for name, its in used[key].most_common()})
        for key in keys
    ]
