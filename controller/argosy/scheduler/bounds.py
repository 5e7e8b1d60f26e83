"""What may be bought now: by the deployment's own limits, and for each run?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from argosy.catalogue.quotas import quota_key
from argosy.market.limits import Bounds, Limits, QuotaKey, ShareKey
from argosy.model.instance_types import InstanceType
from argosy.model.instances import Purchase
from argosy.model.policy import Policy
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.scheduler.places import Places, group_is_running

AT_ONCE = "growth: no more instances are ordered at once, the next tick goes on"
DEPLOYMENT = "maxInstances of the deployment"
HOUR_S = 3600.0
USUAL_ATTEMPT_S = 300.0  # until attempts have been seen


def room_and_bounds(state: State, catalogue: Mapping[str, InstanceType], policy: Policy) -> tuple[int, Bounds]:
    """How many instances more, and what else the deployment allows."""
    promised = promised_by_fleets(state)
    left = policy.max_instances - sum(instance.alive for instance in state.instances.values()) - promised.total()
    return min(policy.growth_per_tick, left), Bounds(
        max_type_share=policy.max_type_share,
        max_cell_share=policy.max_cell_share,
        held_cpu_units=_held_cpu(state, catalogue, promised),
        vcpus_left=_vcpus_left(state, catalogue, promised, policy),
        room_is=AT_ONCE if 0 < policy.growth_per_tick < left else DEPLOYMENT,
    )


def limits_of(state: State, places: Places, policy: Policy) -> list[Limits]:
    """For each run's batch."""
    rooms = places.usd_rooms or (math.inf,) * len(places.runs)
    return [
        _limits(state, places, run, has, usd, policy)
        for run, has, usd in zip(places.runs, places.instances_per_run, rooms, strict=True)
    ]


def promised_by_fleets(state: State) -> Counter[tuple[str, Purchase]]:
    """Instances that fleets may still launch, wanted or not: what we give up counts until EC2 has acknowledged it."""
    held, warned = state.held(), state.warned()
    return Counter(
        {
            (pool.key, purchase): missing
            for pool in state.pools.values()
            for purchase, wanted, confirmed in (
                (Purchase.SPOT, pool.spot_target, pool.confirmed_spot),
                (Purchase.ON_DEMAND, pool.on_demand_target, pool.confirmed_on_demand),
            )
            if (missing := max(wanted, confirmed) - held[pool.key, purchase] - warned[pool.key, purchase]) > 0
        }
    )


def _limits(state: State, places: Places, run: Run, has: int, usd: float, policy: Policy) -> Limits:
    instances = policy.max_instances if run.terms.max_instances is None else run.terms.max_instances - has
    if run.group in run.terms.affinity:
        instances = min(instances, _one_in_all(state, places, run))
    return Limits(
        instances=instances,
        usd_per_hour=usd,
        data_cell=policy.data_cell,
        away_usd_per_task_hour=away_usd_per_task_hour(run, policy),
    )


def away_usd_per_task_hour(run: Run, policy: Policy) -> float:
    """What the run's traffic costs for each hour that a task runs in another Region than its data: USD.

    capacity.transferGbPerTask x the price of a GB between Regions, spread over the time a task takes.
    """
    gigabytes = run.terms.transfer_gb_per_task
    if not gigabytes or not policy.data_cell:
        return 0.0
    expected = run.terms.expected_seconds or USUAL_ATTEMPT_S
    return gigabytes * policy.transfer_usd_per_gb * HOUR_S / max(1.0, run.mean_seconds(expected) or expected)


def _one_in_all(state: State, places: Places, run: Run) -> int:
    """How many instances may be bought for a group that keeps together: one, unless it has or is promised some."""
    promised = zip(places.runs, places.instances_per_run, strict=True)
    has = any(count for other, count in promised if other.group == run.group)
    return 0 if has or group_is_running(state, run.group) else 1


def _held_cpu(
    state: State, catalogue: Mapping[str, InstanceType], promised: Counter[tuple[str, Purchase]]
) -> Mapping[ShareKey, int]:
    """Cpu units alive or ordered, by type and by cell."""
    cpu: Counter[ShareKey] = Counter()
    for instance in state.instances.values():
        if instance.counts_for_target and (kind := catalogue.get(instance.instance_type)):
            cpu["type", instance.instance_type] += kind.cpu_units
            cpu["cell", instance.cell] += kind.cpu_units
    for (key, _), count in promised.items():
        pool = state.pools[key]
        if kind := catalogue.get(pool.instance_type):
            cpu["type", pool.instance_type] += count * kind.cpu_units
            cpu["cell", pool.cell] += count * kind.cpu_units
    return cpu


def _vcpus_left(
    state: State,
    catalogue: Mapping[str, InstanceType],
    promised: Counter[tuple[str, Purchase]],
    policy: Policy,
) -> Mapping[QuotaKey, int]:
    """Of each quota that the settings name: what neither instances that EC2 still counts nor orders take."""
    if not policy.vcpu_quotas:
        return {}
    used: Counter[QuotaKey] = Counter()

    def use(cell: str, instance_type: str, purchase: str, count: int) -> None:
        kind = catalogue.get(instance_type)
        vcpus = kind.vcpus if kind else 0
        used[cell, purchase, quota_key(instance_type, purchase)] += count * vcpus

    for instance in state.instances.values():
        if instance.alive and instance.owned:
            use(instance.cell, instance.instance_type, instance.purchase.value, 1)
    for (key, purchase), count in promised.items():
        use(state.pools[key].cell, state.pools[key].instance_type, purchase.value, count)
    return {
        (quota.cell, quota.purchase, quota.family): quota.vcpus - used[quota.cell, quota.purchase, quota.family]
        for quota in policy.vcpu_quotas
    }
