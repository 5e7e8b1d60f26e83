"""What a commit records about the cluster: samples, and each order when it is placed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum

from argosy.lifecycle.hosts import shares_in_use
from argosy.model.cluster_history import (
    EVERY_S,
    FIRST_EVERY_S,
    MOST_ORDERS,
    MOST_POOLS,
    MOST_RUNS,
    ClusterSample,
    PlacedOrder,
    PoolCount,
)
from argosy.model.instances import Instance, InstanceStatus, Purchase
from argosy.model.pools import Pool, PoolFacts
from argosy.model.resources import Resources
from argosy.model.state import State
from argosy.model.tasks import TaskStatus

_STARTING, _RUNNING = (TaskStatus.STARTING,), (TaskStatus.RUNNING, TaskStatus.VERIFYING)


def note(state: State, now: float) -> None:
    """Add the orders to the coming commit, and a sample if one is due."""
    state.orders = _orders(state, now)[:MOST_ORDERS]
    counts = _task_counts(state)
    is_at_rest = not (counts or _living(state))
    is_due = not 0 <= now - state.sampled_at < _until_next_s(state)  # a clock that was set back does not delay it
    if is_at_rest == state.sampled_at_rest and (is_at_rest or not is_due):
        return
    if state.sampled_at_rest:
        state.busy_since = now
    state.sample = sample_of(state, now, counts)
    state.sampled_at, state.sampled_at_rest = now, is_at_rest


def _until_next_s(state: State) -> float:
    """Seconds from the last sample to the next: as long as it had been busy by then, within bounds, so that a run of a
    minute is seen."""
    return min(EVERY_S, max(FIRST_EVERY_S, state.sampled_at - state.busy_since))


def _living(state: State) -> list[Instance]:
    return [each for each in state.instances.values() if each.owned and each.alive]


def _task_counts(state: State) -> list[tuple[int, ...]]:
    """The tasks of each open run by TaskStatus. Tasks of suspended runs continue."""
    suspended = [found.record.counts for found in state.suspended.values()]
    return [tuple(run.tasks.counts().tolist()) for run in state.runs.values() if not run.done] + suspended


def sample_of(
    state: State, now: float, counts: Sequence[Sequence[int]], needs: Mapping[int, Resources] | None = None
) -> ClusterSample:
    """The cluster now. counts: the tasks of each open run by TaskStatus. needs: of a task of each run, by its number;
    None = as the state has them."""
    instances = _living(state)
    by_status = Counter(each.status for each in instances)
    by_purchase = Counter(each.purchase for each in instances)
    cpu, memory, gpus = shares_in_use(state, needs)
    return ClusterSample(
        at=now,
        runs=len(counts),
        queued=sum(each[TaskStatus.PENDING] for each in counts),
        starting=sum(each[status] for each in counts for status in _STARTING),
        running=sum(each[status] for each in counts for status in _RUNNING),
        booting=by_status[InstanceStatus.BOOTING],
        active=by_status[InstanceStatus.ACTIVE],
        leaving=by_status[InstanceStatus.DRAINING] + by_status[InstanceStatus.RELEASING],
        spot=by_purchase[Purchase.SPOT],
        on_demand=len(instances) - by_purchase[Purchase.SPOT],
        usd_per_hour=fsum(each.price_usd_per_hour for each in instances),
        spent_usd=state.spent_usd + fsum(each.hours(now) * each.price_usd_per_hour for each in instances),
        spent_on_demand_usd=state.spent_on_demand_usd
        + fsum(each.hours(now) * each.on_demand_usd_per_hour for each in instances),
        interruptions=state.interruptions,
        cpu_used=cpu,
        memory_used=memory,
        gpu_used=gpus,
        pools=_pool_counts(state.pools, instances),
    )


def _pool_counts(pools: Mapping[str, Pool], instances: list[Instance]) -> list[PoolCount]:
    """The largest pools, by their instances or targets."""
    held = Counter((each.pool, each.purchase) for each in instances)
    names = {pool for pool, _ in held} | {key for key, pool in pools.items() if pool.target}
    found = [
        PoolCount(
            pool=name,
            spot=held[name, Purchase.SPOT],
            on_demand=sum(held[name, each] for each in Purchase if each is not Purchase.SPOT),
            target=pools[name].target if name in pools else 0,
        )
        for name in names
    ]
    return sorted(found, key=lambda each: (-max(each.spot + each.on_demand, each.target), each.pool))[:MOST_POOLS]


def _orders(state: State, now: float) -> list[PlacedOrder]:
    """Targets that this commit raises."""
    if not state.changed_pools:
        return []
    waiting = sorted(run.number for run in state.runs.values() if run.ready and run.tasks.counts()[TaskStatus.PENDING])
    return [
        PlacedOrder(now, pool.key, purchase.value, count, price, waiting[:MOST_RUNS], _why(state, now))
        for _, pool in sorted(state.pools.items())
        for purchase, count, price in _growth(pool, state.committed.pools.get(pool.key))
    ]


def _growth(pool: Pool, before: PoolFacts | None) -> list[tuple[Purchase, int, float]]:
    """The increase of its targets since the last commit: (purchase, instances, EC2's price of one)."""
    if before is None:  # a fleet that is new in this commit has the target that an earlier controller set
        spot, order = pool.spot_target if pool.confirmed_spot < 0 else pool.confirmed_spot, 0
    else:
        spot, order = before.spot_target, before.on_demand_order
    grown = (
        (Purchase.SPOT, pool.spot_target - spot, pool.spot_usd_per_hour),
        (pool.ordered_as, pool.on_demand_count if pool.on_demand_order != order else 0, 0.0),
    )
    return [each for each in grown if each[1] > 0]


def _why(state: State, now: float) -> str:
    """The reason of the order in words, as far as the tick has noted it."""
    order = state.last_order
    if order.at != now:
        return "to keep the minimum number of instances"
    if order.gap is None:
        return "for tasks without a place"
    return f"for tasks without a place, at most {100 * order.gap:.1f} % above the least it could cost"
