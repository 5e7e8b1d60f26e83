"""On-demand capacity for a run's tasks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from argosy.catalogue.lookup import load_catalogue
from argosy.catalogue.quotas import quota_key
from argosy.market.daemons import Daemon, daemons_of
from argosy.market.limits import ROUNDING
from argosy.market.offers import cost_of, rejected, tasks_in
from argosy.model.instances import Instance, Purchase
from argosy.model.policy import Policy
from argosy.model.pools import Pool
from argosy.model.runs import Run
from argosy.model.sharers import queue_of_run
from argosy.model.state import State

_QuotaKey = tuple[str, str]  # cell, key of the quota family


def is_ever_available(run: Run, state: State, policy: Policy) -> bool:
    """Whether quotas, price caps and caps on money an hour allow one instance. Cool-offs end by themselves."""
    quotas = _quotas(policy)
    return any(
        quotas.get(_key(pool), math.inf) >= load_catalogue()[pool.instance_type].vcpus
        and _affordable(run, pool, state, policy) >= 1
        for pool in _open_to(run, state, policy)
    )


def most_tasks(run: Run, state: State, policy: Policy) -> float:
    """The most tasks that on-demand takes at a time, by quotas and the run's hourly cap; infinite without limits."""
    pools = list(_open_to(run, state, policy))
    daemons = daemons_of(state)
    by_money = max(
        (_affordable(run, pool, state, policy) * _tasks(pool, run, policy, daemons) for pool in pools), default=0
    )
    return min(_by_quotas(run, state, pools, policy), by_money)


def instances_of_others(run: Run, state: State) -> int:
    """How many live instances run only tasks of other runs and were not bought for this one."""
    return sum(i.alive and not _is_its(run, state, i, or_idle=True) for i in state.instances.values())


def _by_quotas(run: Run, state: State, pools: list[Pool], policy: Policy) -> float:
    """By the type that takes the fewest tasks in each quota; the quotas are added up."""
    left, fewest, daemons = _left(run, state, policy), dict[_QuotaKey, float](), daemons_of(state)
    for pool in pools:
        key = _key(pool)
        if key not in left:
            return math.inf
        tasks = left[key] // load_catalogue()[pool.instance_type].vcpus * _tasks(pool, run, policy, daemons)
        if tasks > 0:
            fewest[key] = min(tasks, fewest.get(key, tasks))
    return sum(fewest.values())


def _left(run: Run, state: State, policy: Policy) -> dict[_QuotaKey, int]:
    """vCPUs by quota, without those that other runs hold. Ordered instances may be for this run and do not count."""
    quotas = _quotas(policy)
    used: Counter[_QuotaKey] = Counter()
    for each in state.instances.values() if quotas else ():
        kind = load_catalogue().get(each.instance_type)
        is_owned = each.alive and each.owned and each.purchase is Purchase.ON_DEMAND
        if kind and is_owned and not _is_its(run, state, each):
            used[each.cell, quota_key(each.instance_type, Purchase.ON_DEMAND.value)] += kind.vcpus
    return {key: vcpus - used[key] for key, vcpus in quotas.items()}


def _is_its(run: Run, state: State, instance: Instance, or_idle: bool = False) -> bool:
    tasks = state.attempts.runs_on_instance.get(instance.id.encode()) or Counter[int]()
    if tasks.get(run.number) or instance.bought_for == run.number:
        return True
    return or_idle and not state.has_work(instance.id)


def _open_to(run: Run, state: State, policy: Policy) -> Iterator[Pool]:
    """The pools that sell on-demand instances for the run's tasks, including those that are cooling off."""
    closed = {key for key, _ in rejected(state.pools.values(), load_catalogue(), math.inf, policy, Purchase.ON_DEMAND)}
    daemons = daemons_of(state)
    open_pools = (pool for key, pool in state.pools.items() if key not in closed and not pool.reservation)
    return (pool for pool in open_pools if tasks_in(pool, run, policy, daemons))


def _affordable(run: Run, pool: Pool, state: State, policy: Policy) -> float:
    """How many instances of the pool capacity.maxHourlyCost, the cap of its queue and that of the deployment pay for at
    most."""
    queues, own = state.sharing.queues(), run.terms.max_hourly_usd
    of_queue = queues[queue_of_run(run, queues)].cap.usd_per_hour
    most = min(math.inf if own is None else own, of_queue, state.sharing.usd_per_hour)
    if math.isinf(most):
        return math.inf
    price = cost_of(pool, load_catalogue()[pool.instance_type], Purchase.ON_DEMAND, math.inf, policy)
    return int(most / max(price, ROUNDING) * (1 + ROUNDING))


def _tasks(pool: Pool, run: Run, policy: Policy, daemons: Sequence[Daemon]) -> int:
    return min(tasks_in(pool, run, policy, daemons), run.terms.max_tasks_per_instance or 1_000_000)


def _quotas(policy: Policy) -> dict[_QuotaKey, int]:
    return {(q.cell, q.family): q.vcpus for q in policy.vcpu_quotas if q.purchase == Purchase.ON_DEMAND.value}


def _key(pool: Pool) -> _QuotaKey:
    return pool.cell, quota_key(pool.instance_type, Purchase.ON_DEMAND.value)
