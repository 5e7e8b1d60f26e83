"""Which instances do the Capacity Reservations of the settings still have, and until when?

Example: the Capacity Block cr-1 reserves 4 p5.48xlarge until 12:00. EC2 begins to end its instances at 11:30, so they
have to be empty by 11:28: what would end later is not placed there, and what still runs then is stopped and starts
elsewhere, like on a spot instance that EC2 takes back.
"""

from __future__ import annotations

from argosy.model.events import Observed
from argosy.model.instances import pool_key
from argosy.model.policy import Policy
from argosy.model.pools import CAPACITY_BLOCK, Pool, ReservationSeen
from argosy.model.state import State
from argosy.model.wording import time_of_day

# EC2 begins to end the instances of a block 30 minutes before its end; those of other reservations stay, and cost what
# on-demand instances do.
ENDED_EARLIER_S = 1800.0
GONE = "EC2 or the settings no longer name it"
STOPS_S = 120.0  # for the stops of its tasks: a spot warning leaves as much
ENDED = ("expired", "cancelled", "cancelling", "failed", "payment-failed", "unsupported", "unavailable")


def see(state: State, seen: ReservationSeen, now: float) -> None:
    """The reservation is a pool with the launch template of the spot fleet of its type and zone."""
    key = pool_key(seen.cell, seen.instance_type, seen.zone, seen.reservation)
    new = Pool(seen.cell, seen.instance_type, seen.zone, "", confirmed_spot=0, reservation=seen.reservation)
    pool = state.pools.setdefault(key, new)
    fleet = state.pools.get(pool_key(seen.cell, seen.instance_type, seen.zone))
    before = _shown(pool)
    pool.reserved_as, pool.reserved, pool.reserved_until = seen.reserved_as, seen.instances, seen.ends_at
    pool.reserved_free = max(0, seen.free - pool.on_demand_count)
    pool.empty_by = min(pool.empty_by or now, now) if seen.state in ENDED else _empty_by(seen)
    pool.unusable = _why_unusable(seen, pool, fleet, now)
    pool.fleet_id = "" if pool.unusable else seen.reservation
    if fleet is not None:
        pool.listed_usd_per_hour = fleet.listed_usd_per_hour
    _end_with(state, pool)
    state.changed_pools |= before != _shown(pool)


def observe(state: State, sweep: Observed, policy: Policy) -> None:
    """What a sweep shows of them, and what its complete listings lack."""
    for each in sweep.reservations:
        see(state, each, sweep.at)
    miss(state, sweep, policy)


def miss(state: State, sweep: Observed, policy: Policy) -> None:
    """Those that a complete listing lacks, because they are gone or the settings no longer name them, have ended once
    the quiet time is over. Without instances they are forgotten by the next sweep: until then, calls are answered."""
    shown = {each.reservation for each in sweep.reservations}
    used = {each.reservation for each in state.instances.values() if each.owes}
    for key, pool in list(state.pools.items()):
        if not pool.reservation or pool.reservation in shown or pool.cell not in sweep.reservations_read:
            continue
        if pool.unusable == GONE and not (pool.target or pool.on_demand_count or pool.reservation in used):
            del state.pools[key]
        else:
            latest = sweep.at + policy.absence_s
            pool.empty_by = min(pool.empty_by or latest, latest)
            pool.fleet_id, pool.unusable, pool.reserved_free = "", GONE, 0
            _end_with(state, pool)
        state.changed_pools = True


def _empty_by(seen: ReservationSeen) -> float:
    earlier_s = ENDED_EARLIER_S if seen.reserved_as == CAPACITY_BLOCK else 0.0
    return seen.ends_at - earlier_s - STOPS_S if seen.ends_at else 0.0


def _why_unusable(seen: ReservationSeen, pool: Pool, fleet: Pool | None, now: float) -> str:
    if seen.state != "active":
        starts = f" and starts at {time_of_day(seen.starts_at)}" if seen.starts_at > now else ""
        return f"it is {seen.state}{starts}"
    if pool.empty_by and now >= pool.empty_by:
        return f"it ends at {time_of_day(seen.ends_at)}"
    if fleet is None or not fleet.fleet_id:
        return f"the deployment has no fleet of {seen.instance_type} in {seen.zone}: name the type in instanceTypes"
    return ""


def _end_with(state: State, pool: Pool) -> None:
    for instance in state.instances.values():
        if instance.reservation == pool.reservation and instance.empty_by != pool.empty_by:
            instance.empty_by = pool.empty_by
            state.changed_instances.add(instance.id)


def _shown(pool: Pool) -> tuple[object, ...]:
    size = pool.reserved, pool.reserved_free, pool.reserved_until, pool.empty_by
    return pool.fleet_id, pool.unusable, pool.reserved_as, pool.listed_usd_per_hour, *size
