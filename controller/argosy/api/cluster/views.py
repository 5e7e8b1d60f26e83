"""Instances, fleets and reservations in replies. Pure functions from the state to the replies' bodies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from argosy.api.views import JSON, iso
from argosy.catalogue.lookup import BANDS, interruption_band, load_catalogue
from argosy.market.offers import is_stale, price_of, rate_of, rate_source, rejected
from argosy.model.attempts import AttemptStatus
from argosy.model.instances import Instance, Purchase
from argosy.model.policy import Policy
from argosy.model.pools import CAPACITY_BLOCK, Floor, Pool
from argosy.model.resources import CPU_UNITS_PER_VCPU, Resources
from argosy.model.state import State


def cluster_view(state: State, needs: Mapping[int, Resources], now: float, policy: Policy) -> JSON:
    """The instances, fleets and costs of DescribeCluster's body. needs: of a task of each open run, by Run.number."""
    used, tasks = used_by_instance(state, needs)
    alive = [instance for instance in state.instances.values() if instance.alive]
    peaks = (state.peak_cpu, state.peak_memory, state.peak_gpus)
    return {
        "instances": [
            instance_view(instance, used.get(instance.id), tasks.get(instance.id, 0))
            for instance in state.instances.values()
        ],
        "fleets": [fleet_view(pool, now, policy) for pool in state.pools.values() if not pool.reservation],
        "reservations": [reservation_view(pool) for pool in state.pools.values() if pool.reservation],
        "usdPerHour": sum(instance.price_usd_per_hour for instance in alive),
        "spentUsd": state.spent_usd + sum(i.hours(now) * i.price_usd_per_hour for i in alive),
        "onDemandUsd": state.spent_on_demand_usd + sum(i.hours(now) * i.on_demand_usd_per_hour for i in alive),
        "peakUtilisation": dict(zip(("cpu", "memory", "gpus"), peaks, strict=True)),
        "floor": floor_view(state.floor),
        "readings": readings_view(state),
    }


def readings_view(state: State) -> list[JSON]:
    """What the controller has seen of how AWS reads its contracts (docs/maintainers/notes/readings.md)."""
    seen = state.readings.seen
    return [{"reading": name, "holds": each.holds, "saw": each.saw, "at": iso(each.at)} for name, each in seen.items()]


def floor_view(floor: Floor) -> JSON | None:
    """The minimum size that a user has requested; None = no number."""
    if not floor.instances:
        return None
    return {
        "instances": floor.instances,
        "instanceTypes": list(floor.types),
        "askedAt": iso(floor.asked_at),
        "until": iso(floor.until) if floor.until else None,
        "waiting": floor.waiting or None,
    }


def used_by_instance(state: State, needs: Mapping[int, Resources]) -> tuple[dict[str, Resources], dict[str, int]]:
    """The use of each instance by live attempts, and their number."""
    table, used = state.attempts, dict[str, Resources]()
    for name, runs in table.runs_on_instance.items():
        taken = Resources()
        for number, count in runs.items():
            taken = taken.plus(needs.get(number, Resources()), count)
        used[name.decode()] = taken
    at_work = Counter(table["instance"][at_work_rows(state)].tolist())
    return used, {name.decode(): count for name, count in at_work.items()}


def at_work_rows(state: State) -> NDArray[np.int64]:
    """The rows of attempts that ECS has, and that take their place on their instance."""
    table = state.attempts
    rows: NDArray[np.int64] = table.placed()
    return rows[table.has_status(AttemptStatus.LAUNCHED, AttemptStatus.RUNNING)[rows]]


def instance_view(instance: Instance, used: Resources | None, tasks: int) -> JSON:
    """One of `instances` of DescribeCluster's body. used: None = nothing."""
    total, used = instance.total, used or Resources()
    return {
        "instanceId": instance.id,
        "instanceType": instance.instance_type,
        "availabilityZone": instance.zone,
        "cell": instance.cell,
        "purchase": instance.purchase.value,
        "reservation": instance.reservation or None,
        "status": instance.status.value,
        "cpu": {"total": total.cpu_units / CPU_UNITS_PER_VCPU, "used": used.cpu_units / CPU_UNITS_PER_VCPU},
        "memory": {"total": total.memory_mib, "used": used.memory_mib},
        "gpus": {"total": total.gpus, "used": used.gpus},
        "tasks": tasks,
        "noWorkBecause": instance.cordon or None,
        "console": instance.console or None,
        "priceUsdPerHour": instance.price_usd_per_hour,
        "onDemandUsdPerHour": instance.on_demand_usd_per_hour,
        "diskUsdPerHour": instance.disk_usd_per_hour,
        "addressUsdPerHour": instance.address_usd_per_hour,
        "launchedAt": iso(instance.launched_at),
        "stoppedAt": iso(instance.stopped_at),
    }


def reservation_view(pool: Pool) -> JSON:
    """One of `reservations` of DescribeCluster's body. USD an hour at on-demand prices, whether used or not; null for a
    Capacity Block, which is paid in advance."""
    kind = None if pool.reserved_as == CAPACITY_BLOCK else load_catalogue(pool.cell).get(pool.instance_type)
    usd = price_of(pool, kind, Purchase.ON_DEMAND, 0.0, Policy()) if kind else None
    return {
        "reservation": pool.reservation,
        "kind": pool.reserved_as,
        "instanceType": pool.instance_type,
        "availabilityZone": pool.zone,
        "cell": pool.cell,
        "instances": pool.reserved,
        "free": pool.reserved_free,
        "endsAt": iso(pool.reserved_until),
        "emptyBy": iso(pool.empty_by),
        "unusableBecause": pool.unusable or None,
        "usdPerHour": usd and usd * pool.reserved,
        "idleUsdPerHour": usd and usd * pool.reserved_free,
    }


def fleet_view(pool: Pool, now: float, policy: Policy) -> JSON:
    """One of `fleets` of DescribeCluster's body. USD an hour; times are ISO 8601; unknown values are null."""
    kind = load_catalogue(pool.cell).get(pool.instance_type)
    band = interruption_band(pool.cell, pool.instance_type)
    why_not = rejected([pool], load_catalogue(pool.cell), now, policy)
    return {
        "instanceType": pool.instance_type,
        "availabilityZone": pool.zone,
        "cell": pool.cell,
        "spotTarget": pool.spot_target,
        "onDemandTarget": pool.on_demand_target,
        "spotUsdPerHour": pool.spot_usd_per_hour or None,
        "pricedAt": iso(pool.priced_at, "seconds"),
        "priceIsStale": is_stale(pool, now, policy),
        "onDemandUsdPerHour": price_of(pool, kind, Purchase.ON_DEMAND, now, policy) if kind else None,
        "onDemandFrom": "priceList" if pool.listed_usd_per_hour else "catalogue",
        "assumedUsdPerHour": price_of(pool, kind, Purchase.SPOT, now, policy) if kind else None,
        "interruptionBand": None if band is None else BANDS[band],
        "interruptionsPerHour": rate_of(pool, now, policy),
        "interruptionsFrom": rate_source(pool, now, policy),
        "coolingOffUntil": iso(pool.short_until if pool.short_until > now else 0.0, "seconds"),
        "coolingOffAfter": pool.short_reason if pool.short_until > now else None,
        "behindSince": iso(pool.behind_since, "seconds"),
        "behindBecause": pool.behind_because or None,
        "needsMending": pool.needs_mending and pool.cools_off(now),
        "unsettledUntil": iso(pool.unsettled_until if pool.unsettled_until > now else 0.0, "seconds"),
        "placementScore": pool.placement_score or None,
        "noOfferBecause": why_not[0][1] if why_not else None,
    }
