"""Present offers with prices, and reasons why pools make none."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from argosy.catalogue.lookup import (
    image_gb,
    image_of,
    in_region,
    interruption_band,
    load_catalogue,
    overheads_of,
    transfer_usd_per_gb,
)
from argosy.market import risk
from argosy.market.daemons import Daemon, kept_for
from argosy.model.instance_types import GPU_SHARING_ATTRIBUTE, RESERVED_UNTIL_ATTRIBUTE, InstanceType
from argosy.model.instances import Purchase
from argosy.model.policy import Policy
from argosy.model.pools import Offer, Pool
from argosy.model.run_terms import RUNNER_ATTRIBUTE
from argosy.model.runs import Run
from argosy.model.wording import time_of_day

_USUAL = Policy()
SIMILAR_PRICE = 1.1  # zones within 10 % of the cheapest share a purchase


def offers_of(
    pools: Iterable[Pool],
    catalogue: Mapping[str, InstanceType],
    now: float,
    policy: Policy = _USUAL,
    attempt_s: float | None = None,
    daemons: Sequence[Daemon] = (),
) -> list[Offer]:
    """A spot and an on-demand offer for every fleet, and one for every Capacity Reservation, without a reason in
    `rejected`, cheapest first.

    now: infinity includes the pools that are cooling off. attempt_s: the duration of an attempt that an interruption
    repeats; None = the policy's estimate. daemons: the room they will take of each instance is not offered.
    """
    pools = list(pools)
    bare = lacking_until(pools, now, policy, "without_runner_at")
    unshared = lacking_until(pools, now, policy, "without_sharing_at")
    found = [
        (pool, kind, purchase)
        for pool in pools
        for purchase in ((pool.ordered_as,) if pool.reservation else (Purchase.SPOT, Purchase.ON_DEMAND))
        if (kind := catalogue.get(pool.instance_type)) is not None and not _reason(pool, kind, purchase, now, policy)
    ]
    prices = [cost_of(pool, kind, purchase, now, policy) for pool, kind, purchase in found]
    rates = [interruption_rate_of(pool, purchase, now, policy) for pool, _, purchase in found]
    lost = risk.redo_share(np.array(rates), attempt_s or policy.attempt_s)
    lost = lost + risk.boot_share(np.array(rates), policy.boot_s, policy.planned_life_s)
    pulls = np.array([_pull_usd(pool, kind, policy) for pool, kind, _ in found])
    pulls = pulls * risk.starts_per_hour(np.array(rates), policy.planned_life_s)
    caution = np.array([_caution(pool, now) if purchase is Purchase.SPOT else 1.0 for pool, _, purchase in found])
    effective = risk.effective_price(np.array(prices), lost, caution, pulls).tolist()
    offers = [
        _less_daemons(
            Offer(
                pool=pool.key,
                cell=pool.cell,
                instance_type=pool.instance_type,
                zone=pool.zone,
                purchase=purchase,
                price_usd_per_hour=price,
                resources=kind.resources,
                disk_gib=policy.task_disk_gib_of(kind),
                most_tasks=policy.most_tasks_of(kind.name),
                attributes=_attributes_of(
                    policy.expected_attributes(kind, pool.zone, purchase, pool.cell)
                    | reserved_until(pool.empty_by - policy.boot_s),
                    {RUNNER_ATTRIBUTE: bare, GPU_SHARING_ATTRIBUTE: unshared},
                    (pool.cell, kind.image),
                ),
                effective_usd_per_hour=useful,
                interruption_rate=rate,
            ),
            daemons,
        )
        for (pool, kind, purchase), price, useful, rate in zip(found, prices, effective, rates, strict=True)
    ]
    return sorted(offers, key=lambda offer: (offer.price_usd_per_hour, offer.pool, offer.purchase))


def reserved_until(at: float) -> dict[str, str]:
    """The attribute of an instance that has to be empty at that time. at: epoch seconds; 0 or less = never."""
    return {RESERVED_UNTIL_ATTRIBUTE: str(int(at))} if at > 0 else {}


def _less_daemons(offer: Offer, daemons: Sequence[Daemon]) -> Offer:
    kept = kept_for(daemons, dict(offer.attributes), offer.resources, offer.disk_gib) if daemons else None
    if kept is None or not kept.tasks:
        return offer
    left = offer.resources.beyond(kept.resources)
    return replace(
        offer,
        resources=left,
        disk_gib=max(0, offer.disk_gib - kept.disk_gib),
        most_tasks=None if offer.most_tasks is None else max(0, offer.most_tasks - kept.tasks),
        for_daemons=offer.resources.minus(left),
        host_ports=kept.host_ports,
    )


def lacking_until(pools: Iterable[Pool], now: float, policy: Policy, since: str) -> dict[tuple[str, str], float]:
    """(cell, AMI) -> until when its new instances are expected to lack the runner, or shared GPUs, because the last
    ones did. More would be bought repeatedly, for runs that cannot use them. An AMI that has it does not vouch for
    another. since: the field of a pool."""
    found: dict[tuple[str, str], float] = {}
    for pool in pools:
        until = getattr(pool, since) + policy.cool_off_max_s if getattr(pool, since) else 0.0
        if until > now:
            group = (pool.cell, image_of(pool.instance_type))
            found[group] = max(until, found.get(group, 0.0))
    return found


def _attributes_of(
    expected: Mapping[str, str], lacking: Mapping[str, Container[tuple[str, str]]], group: tuple[str, str]
) -> tuple[tuple[str, str], ...]:
    """group: cell and AMI."""
    return tuple((name, value) for name, value in expected.items() if group not in lacking.get(name, ()))


def rejected(
    pools: Iterable[Pool],
    catalogue: Mapping[str, InstanceType],
    now: float,
    policy: Policy = _USUAL,
    purchase: Purchase = Purchase.SPOT,
) -> list[tuple[str, str]]:
    """(pool, reason) for every pool that makes no such offer now."""
    found = [(pool, _reason(pool, catalogue.get(pool.instance_type), purchase, now, policy)) for pool in pools]
    return [(pool.key, reason) for pool, reason in found if reason]


def _reason(pool: Pool, kind: InstanceType | None, purchase: Purchase, now: float, policy: Policy) -> str:
    """Why the pool makes no offer of that kind; "" when it makes one."""
    if kind is None:
        return f"unknown type: {pool.instance_type} is not in the catalogue (argosy catalogue refresh --type)"
    if pool.closed:
        return f"its cell is closed: {pool.closed}"
    if not pool.fleet_id:
        return pool.unusable or "there is no fleet for it"
    if pool.reservation and pool.reserved_free <= 0 and math.isfinite(now):
        return f"all {pool.reserved} instances of the Capacity Reservation {pool.reservation} are in use"
    if pool.withdrawn_at:
        return f"EC2 no longer offers {pool.instance_type} in {pool.zone}; the next deployment leaves its fleet out"
    until = pool.short_until if purchase is Purchase.SPOT else pool.on_demand_short_until
    if until > now:
        because = f" after {pool.short_reason}" if pool.short_reason else ""
        return f"cooling off until {time_of_day(until)}{because}"
    if pool.reservation:
        return ""
    price = price_of(pool, kind, purchase, now, policy)
    return _above_cap(kind, price, policy) if risk.is_price(price) else "its price is unknown"


def _above_cap(kind: InstanceType, price: float, policy: Policy) -> str:
    units = ("GPU", kind.gpus, policy.max_usd_per_gpu_hour, "perGpuHour")
    if not kind.gpus:
        units = ("vCPU", kind.vcpus, policy.max_usd_per_vcpu_hour, "perVcpuHour")
    what, count, cap, name = units
    if price > policy.max_usd_per_hour:
        return f"${price:.4g} an hour is above priceCaps.perInstanceHour (${policy.max_usd_per_hour:.4g})"
    if price / count > cap:
        return f"${price / count:.4g} an hour for each {what} is above priceCaps.{name} (${cap:.4g})"
    return ""


def cost_of(pool: Pool, kind: InstanceType, purchase: Purchase, now: float, policy: Policy) -> float:
    """USD an hour of an instance with its disk and its address."""
    overheads = overheads_of(pool.cell, policy.billed_disk_gib_of(kind), policy.public_addresses)
    return price_of(pool, kind, purchase, now, policy) + overheads.usd_per_hour


def _pull_usd(pool: Pool, kind: InstanceType, policy: Policy) -> float:
    """The cost of pulling an instance's images at each start, from the home Region's registry."""
    if not policy.data_cell or pool.cell == policy.data_cell:
        return 0.0
    return image_gb(kind.gpus > 0) * transfer_usd_per_gb(policy.data_cell, pool.cell)


def price_of(pool: Pool, kind: InstanceType, purchase: Purchase, now: float, policy: Policy) -> float:
    """USD an hour in EC2, which price caps limit. For a spot price never seen, the type's typical one; for one that
    is too old, on-demand's. A reservation is paid anyway: using it adds nothing."""
    if purchase.is_reserved:
        return 0.0
    here, seen = in_region(kind, pool.cell), pool.spot_usd_per_hour
    on_demand = pool.listed_usd_per_hour or here.on_demand_usd_per_hour
    if purchase is Purchase.ON_DEMAND or is_stale(pool, now, policy):
        return on_demand
    return seen if risk.is_price(seen) else here.typical_spot_usd_per_hour or on_demand


def is_stale(pool: Pool, now: float, policy: Policy) -> bool:
    """Whether its spot price is too old to be used."""
    age_s = now - pool.priced_at if now != float("inf") else 0.0
    return bool(pool.priced_at) and age_s > policy.price_limit_s


def rate_of(pool: Pool, now: float, policy: Policy) -> float:
    """Expected interruptions per instance-hour on spot: the Advisor's band, the account's record of two weeks, and our
    own count, decayed until now."""
    age_s = max(0.0, now - pool.rate_at) if now != float("inf") else 0.0
    kept = 0.5 ** (age_s / policy.rate_half_life_s)
    prior = risk.interruption_rate(risk.rate_of_band(_band(pool)), pool.account_interruptions, pool.account_hours)
    return float(risk.interruption_rate(prior, pool.interruptions * kept, pool.instance_hours * kept))


def rate_source(pool: Pool, now: float, policy: Policy) -> str:
    """Which source determines the rate most: `own` count, `account` (EC2 Capacity Manager), `advisor` (its band) or
    `none`."""
    age_s = max(0.0, now - pool.rate_at)
    if pool.instance_hours * 0.5 ** (age_s / policy.rate_half_life_s) > risk.PRIOR_HOURS:
        return "own"
    if pool.account_hours > risk.PRIOR_HOURS:
        return "account"
    return "none" if _band(pool) is None else "advisor"


def assumed_rates(offers: Iterable[Offer], pools: Mapping[str, Pool], now: float, policy: Policy) -> str:
    """The sentence about types without any data on how often EC2 takes their instances back; "" = there are none."""
    unknown = {
        offer.instance_type
        for offer in offers
        if offer.purchase is Purchase.SPOT
        and interruption_band(offer.cell, offer.instance_type) is None
        and (offer.pool not in pools or rate_source(pools[offer.pool], now, policy) == "none")
    }
    rate = f"no interruptions, so {risk.UNKNOWN_RATE:g} an hour are assumed until Argosy has counted its own"
    return f"AWS's Spot Instance Advisor lists {', '.join(sorted(unknown))} with {rate}" if unknown else ""


def _band(pool: Pool) -> int | None:
    """The Advisor has no data about what the owner of a reservation does."""
    return None if pool.reservation else interruption_band(pool.cell, pool.instance_type)


def interruption_rate_of(pool: Pool, purchase: Purchase, now: float, policy: Policy) -> float:
    """Expected interruptions per instance-hour; on-demand instances are never interrupted."""
    return rate_of(pool, now, policy) if purchase.may_be_taken_back else 0.0


def over_zones(winner: Offer, offers: Sequence[Offer], instances: int) -> list[Offer]:
    """One offer per instance, out of those `offers` that are of the winner's type and purchase option.

    Zones that cost about the same take turns, cheapest first with risk added, because a shortage affects one pool. A
    zone in which daemons leave less room than in the winner's is left out, because its instances take fewer tasks.
    """
    zones = [
        offer
        for offer in offers
        if (offer.instance_type, offer.purchase) == (winner.instance_type, winner.purchase)
        and offer.effective <= winner.effective * SIMILAR_PRICE
        and _is_as_roomy(offer, winner)
    ]
    zones.sort(key=lambda offer: offer.effective)
    return [zones[i % len(zones)] for i in range(instances)]


def _is_as_roomy(offer: Offer, winner: Offer) -> bool:
    room = zip(offer.resources, winner.resources, strict=True)
    return (
        all(has >= needed for has, needed in room)
        and offer.disk_gib >= winner.disk_gib
        and (offer.most_tasks is None or (winner.most_tasks is not None and offer.most_tasks >= winner.most_tasks))
        and offer.host_ports <= winner.host_ports
    )


def _caution(pool: Pool, now: float) -> float:
    return (risk.UNSETTLED if now < pool.unsettled_until else 1.0) * risk.score_factor(pool.placement_score)


def tasks_in(pool: Pool, run: Run, policy: Policy, daemons: Sequence[Daemon] = ()) -> int:
    """How many of a run's tasks an on-demand instance of the pool takes besides `daemons`, by resources and the most
    tasks; 0 outside the run's cells, or if its image or GPU model does not match."""
    kind = load_catalogue().get(pool.instance_type)
    if kind is None or (run.terms.cells and pool.cell not in run.terms.cells):
        return 0
    if not (kind.has_gpus(run.terms.gpu_model, run.terms.gpu_memory_mib) and kind.runs(run.architecture)):
        return 0
    if run.needs.gpus and kind.gpu_part != run.terms.gpu_part:
        return 0
    attributes = policy.expected_attributes(kind, pool.zone, Purchase.ON_DEMAND, pool.cell) if daemons else {}
    kept = kept_for(daemons, attributes, kind.resources, policy.task_disk_gib_of(kind))
    left = kind.resources.beyond(kept.resources)
    shares = kind.gpus * (kind.shared_gpu_mib // run.needs.gpu_share_mib) if run.needs.gpu_share_mib else math.inf
    fits = min(
        (have // need for have, need in zip(left.cpu_memory_gpus, run.needs.cpu_memory_gpus, strict=True) if need),
        default=1,
    )
    fits = int(min(fits, shares))
    return min(fits, max(0, policy.most_tasks_of(pool.instance_type) - kept.tasks))
