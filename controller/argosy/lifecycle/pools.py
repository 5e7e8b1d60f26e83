"""A pool's shortages and interruptions: cool-offs that double and fade, counts that decay."""

from __future__ import annotations

from collections.abc import Mapping

from argosy.catalogue.lookup import image_of, load_catalogue
from argosy.catalogue.quotas import quota_key
from argosy.lifecycle import readings, unjoined_instances
from argosy.lifecycle.setbacks import carried_out, end_pause
from argosy.model.events import FleetSeen, HistoryRead, Observed, PoolShort, TargetAccepted
from argosy.model.instance_types import GPU_SHARING_ATTRIBUTE
from argosy.model.instances import Instance, InstanceStatus, Purchase, pool_key
from argosy.model.policy import Policy
from argosy.model.pools import OrderAnswered, Pool
from argosy.model.run_terms import RUNNER_ATTRIBUTE, RUNNER_PROTOCOL
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State

CLOSED = "its cell is closed: "  # begins the cordon of an instance


def close_cells(state: State, closed: Mapping[str, str]) -> None:
    """closed: cell -> why, for all cells that are closed now. Missing cells are open (again)."""
    for pool in state.pools.values():
        reason = closed.get(pool.cell, "")
        if pool.closed != reason:
            pool.closed, state.changed_pools = reason, True
    for instance in state.instances.values():
        cordon = f"{CLOSED}{closed[instance.cell]}" if instance.cell in closed else ""
        ours = not instance.cordon or instance.cordon.startswith(CLOSED)
        if instance.alive and ours and instance.cordon != cordon:
            instance.cordon = cordon
            state.changed_instances.add(instance.id)


NEVER_JOINED = "it never joined the cluster"
_FORGOTTEN = 20  # half-lives after which a count is negligible
GAVE_UP = "instances that were ordered and did not arrive"


def see_fleet(state: State, seen: FleetSeen, now: float) -> None:
    """A new fleet keeps its targets until the next decision. A pool keeps its fleet; other fleets of the same pool get
    the target 0."""
    met = Pool(seen.cell, seen.instance_type, seen.zone, seen.fleet_id, seen.spot_target)
    pool = state.pools.setdefault(met.key, met)
    before = _shown(pool)
    readings.see_fleet(state, seen, now)
    if not pool.fleet_id:
        _adopt(pool, seen)
    elif seen.is_modifying:
        pass  # what EC2 accepted counts: its listing may still show the earlier targets
    elif pool.fleet_id != seen.fleet_id:
        others = {*pool.surplus} - {seen.fleet_id}
        pool.surplus = sorted(others | ({seen.fleet_id} if seen.spot_target else set()))
    else:
        pool.confirmed_spot = seen.spot_target
        end_pause(state, Subject(Act.TARGET, pool.key), now)
        if seen.is_behind and seen.spot_target:
            pool.confirmed_spot = -1  # its target is set once more, which moves it: it may have to replace an instance
    if pool.fleet_id == seen.fleet_id and (seen.stays_behind or (pool.behind_since and seen.stays_behind is None)):
        pool.behind_since = (pool.behind_since or now) if seen.stays_behind else 0.0
        pool.behind_because, state.changed_pools = (seen.stays_behind or "")[:200], True
    if seen.spot_usd_per_hour:
        pool.spot_usd_per_hour, pool.priced_at = seen.spot_usd_per_hour, seen.priced_at or now
    pool.listed_usd_per_hour = seen.listed_usd_per_hour or pool.listed_usd_per_hour
    if seen.placement_score is not None:
        pool.placement_score = seen.placement_score
    _see_version(pool, seen, now)
    if seen.is_offered is not None:
        pool.withdrawn_at = 0.0 if seen.is_offered else pool.withdrawn_at or now
    if seen.record is not None:
        pool.account_interruptions, pool.account_hours = seen.record
    state.changed_pools |= before != _shown(pool)


def _see_version(pool: Pool, seen: FleetSeen, now: float) -> None:
    if seen.version not in ("", pool.version):
        pool.joined_version = pool.joined_version if pool.version else seen.version  # what joined before that counts
        pool.version, pool.version_at = seen.version, now


def _adopt(pool: Pool, seen: FleetSeen) -> None:
    """From now on this fleet is the pool's, with the targets that it has."""
    if pool.needs_mending:  # earlier trouble belongs to the previous fleet
        pool.short_until = pool.on_demand_short_until = 0.0
        pool.needs_mending = False
    pool.fleet_id, pool.ordered_since = seen.fleet_id, 0.0
    pool.spot_target = pool.confirmed_spot = seen.spot_target
    pool.surplus = [name for name in pool.surplus if name != seen.fleet_id]


def _shown(pool: Pool) -> tuple[object, ...]:
    prices = pool.spot_usd_per_hour, pool.listed_usd_per_hour, pool.priced_at, pool.placement_score, pool.withdrawn_at
    record = pool.account_interruptions, pool.account_hours
    return pool.fleet_id, pool.confirmed_spot, pool.version, *pool.surplus, *prices, *record


def miss_fleets(state: State, sweep: Observed) -> None:
    """Retire a pool whose fleet is missing from a complete listing of its cell: nothing is bought there, nothing is
    confirmed, and its instances may end. If the pool has other fleets, it continues with the one whose name sorts
    first. Pools of cells that the controller no longer works in are retired as well."""
    shown: dict[str, dict[str, FleetSeen]] = {}
    for fleet in sweep.fleets:
        shown.setdefault(pool_key(fleet.cell, fleet.instance_type, fleet.zone), {})[fleet.fleet_id] = fleet
    gone = dict[str, bool]()  # whether another fleet took its place
    for pool in state.pools.values():
        left_out = bool(sweep.cells) and pool.cell not in sweep.cells
        if pool.reservation or (pool.cell not in sweep.whole_cells and not left_out):
            continue
        before, fleets = _shown(pool), shown.get(pool.key, {})
        pool.surplus = [name for name in pool.surplus if name in fleets]
        if pool.fleet_id and pool.fleet_id not in fleets:
            gone[pool.fleet_id] = bool(fleets) or left_out
            none = FleetSeen(pool.cell, pool.instance_type, pool.zone, "", 0)
            _adopt(pool, fleets[min(fleets)] if fleets else none)
        state.changed_pools |= before != _shown(pool)
    readings.miss_fleets(state, gone, sweep.at)


def fleet_told(state: State, told: TargetAccepted) -> None:
    """EC2 has accepted a target. A surplus fleet's target is always 0."""
    pool = state.pools[told.pool]
    readings.note_target(state, pool, told)
    if told.fleet_id:
        pool.surplus = [name for name in pool.surplus if name != told.fleet_id]
    else:
        pool.confirmed_spot = told.spot_target
    state.changed_pools = True


def order_answered(state: State, told: OrderAnswered) -> None:
    carried_out(state, Act.ORDER, told.pool)
    pool = state.pools[told.pool]
    if told.order == pool.on_demand_order:
        pool.on_demand_count = 0
        state.changed_pools = True


def note_shortage(state: State, event: PoolShort, now: float, policy: Policy) -> None:
    """`pool` is a pool's key or its fleet's id: EC2's events name the fleet."""
    if event.only not in (None, Purchase.SPOT):
        carried_out(state, Act.ORDER, event.pool)
    for pool in list(state.pools.values()):
        if event.pool in (pool.key, pool.fleet_id):
            readings.note_shortage(state, pool, event, now)
            run_short(state, pool, event, now, policy)
            if event.over_quota and event.only:
                _avoid_quota(state, pool, event, now, policy)


def _avoid_quota(state: State, full: Pool, event: PoolShort, now: float, policy: Policy) -> None:
    """A vCPU quota is full: no pool that draws on it can deliver more."""
    assert event.only is not None
    key = quota_key(full.instance_type, event.only)
    for pool in state.pools.values():
        if pool.cell == full.cell and not pool.reservation and quota_key(pool.instance_type, event.only) == key:
            cool_off(pool, event.only, event.reason, now, policy)


def run_short(state: State, pool: Pool, event: PoolShort, now: float, policy: Policy) -> None:
    """The pool cannot deliver what it owes: stop waiting for it, and order nothing there for a while.

    If EC2 does not say which purchase option ran short, it is the one that was owed, or spot if none was.
    """
    owed = state.owed()
    short = {purchase for purchase in Purchase if owed[pool.key, purchase]} or {Purchase.SPOT}
    if event.only:
        short &= {event.only}
    for purchase in short:
        cool_off(pool, purchase, event.reason, now, policy)
    if short:
        explain(state, pool, event, now, policy)
    # The earlier target stays in force at EC2 until EC2 acknowledges a lower one, whether or not its first answer was
    # received.
    if Purchase.SPOT in short:
        pool.confirmed_spot = max(pool.confirmed_spot, pool.spot_target)
        pool.spot_target -= owed[pool.key, Purchase.SPOT]
    if pool.ordered_as in short:
        pool.on_demand_target -= owed[pool.key, pool.ordered_as]
        pool.on_demand_count = 0
    state.changed_pools = True


def cool_off(pool: Pool, purchase: Purchase, reason: str, now: float, policy: Policy) -> None:
    """Twice as long as the last time, unless that was long ago. A shortage reported again during a cool-off is the same
    one."""
    if now < (pool.short_until if purchase is Purchase.SPOT else pool.on_demand_short_until):
        return
    until = now + _next_pause_s(pool, now, policy)
    pool.short_reason, pool.needs_mending = reason, False
    if purchase is Purchase.SPOT:
        pool.short_until = until
    else:
        pool.on_demand_short_until = until


def explain(state: State, pool: Pool, event: PoolShort, now: float, policy: Policy) -> None:
    """Set the reason of a cool-off that has already begun. A cause that a person must fix closes the pool, for both
    purchase options, for the longest pause; a later shortage does not hide it."""
    if not pool.cools_off(now) or (pool.needs_mending and not event.lasting):
        return
    pool.short_reason, pool.needs_mending = event.reason, event.lasting
    if event.lasting:
        until = now + policy.cool_off_max_s
        if event.only is None or event.only is Purchase.SPOT:
            pool.short_until = max(pool.short_until, until)
        if event.only is not Purchase.SPOT:
            pool.on_demand_short_until = max(pool.on_demand_short_until, until)
    state.changed_pools = True


def note_history(state: State, event: HistoryRead, now: float, policy: Policy) -> None:
    """Apply what EC2's history says about a short fleet: its reason, if there was none or a vaguer one."""
    pool = state.pools.get(event.pool)
    if pool is not None and event.shortage is not None:
        explain(state, pool, event.shortage, now, policy)


def _next_pause_s(pool: Pool, now: float, policy: Policy) -> float:
    """Count one more problem, and return how long the pool is avoided for it."""
    quiet_s = max(0.0, now - max(pool.short_until, pool.on_demand_short_until, pool.unsettled_until))
    pool.shortages = pool.shortages * 0.5 ** (quiet_s / policy.cool_off_fade_s) + 1
    doubled = policy.cool_off_s * 2.0 ** min(pool.shortages - 1, _FORGOTTEN)
    return float(max(policy.cool_off_s, min(policy.cool_off_max_s, doubled)))


def note_orders(state: State, now: float) -> None:
    """Record since when each pool has owed instances. Patience is counted from then, and ends when all have come.
    Without an open order the on-demand target is what is there, because EC2 replaces none."""
    held = state.held()
    for pool in state.pools.values():
        there = held[pool.key, pool.ordered_as]
        if not pool.on_demand_count and pool.on_demand_target != there:
            pool.on_demand_target, state.changed_pools = there, True
    owed = state.owed_beyond(held, state.warned())
    for pool in state.pools.values():
        owes = owed[pool.key, Purchase.SPOT] + owed[pool.key, pool.ordered_as] > 0
        since = (pool.ordered_since or now) if owes else 0.0
        if since != pool.ordered_since:
            pool.ordered_since = since
            state.changed_pools = True


def note_delivery(state: State, instance: Instance, now: float) -> None:
    """An instance has come: if it was ordered since the last cool-off, it halves the count of shortages."""
    pool = state.pools.get(instance.pool)
    if pool is None or not pool.shortages or max(pool.short_until, pool.on_demand_short_until) > now:
        return
    pool.shortages /= 2
    state.changed_pools = True


def note_registered(state: State, instance: Instance) -> None:
    """It has joined the cluster, late or not."""
    if instance.cordon == NEVER_JOINED:
        instance.cordon = ""
    pool = state.pools.get(instance.pool)
    if pool is not None and pool.joined_version != pool.version and instance.launched_at >= pool.version_at:
        pool.joined_version, state.changed_pools = pool.version, True
    if pool is not None and (pool.unregistered or pool.cell_unregistered):
        unjoined_instances.forgive(state, pool)


def note_unregistered(state: State, now: float, policy: Policy) -> None:
    """Give up instances that have not joined the cluster in time, and count each once."""
    for instance in state.instances.values():
        late = instance.status is InstanceStatus.BOOTING and now - instance.launched_at >= policy.register_patience_s
        if late and instance.owned and not instance.cordon:
            instance.cordon = NEVER_JOINED
            state.changed_instances.add(instance.id)
            unjoined_instances.count(state, instance.pool, now, policy)


def note_interruption(state: State, instance: Instance, at: float, policy: Policy) -> None:
    """EC2 reclaimed an instance: count it, and mark the pool as unsettled for a while. Many at once cause one unsettled
    period, and each counts for the rate."""
    if not (instance.purchase.may_be_taken_back and instance.owned):
        return
    state.interruptions += 1
    pool = state.pools.get(instance.pool)
    if pool is None:
        return
    weight = _weight(pool, at, policy)
    pool.interruptions += weight
    if at >= pool.unsettled_until:
        pool.unsettled_until = at + _next_pause_s(pool, at, policy)
    state.changed_pools = True


def note_end(state: State, instance: Instance, at: float, policy: Policy) -> None:
    """An instance that could be taken back has ended: count its remaining hours."""
    pool = state.pools.get(instance.pool)
    if pool is None or not (instance.purchase.may_be_taken_back and instance.owned):
        return
    weight = _weight(pool, at, policy)
    pool.instance_hours += weight * _hours_since(instance, pool.rate_at, at)
    state.changed_pools = True


def note_memory(state: State, instance: Instance) -> None:
    """The memory that instances of the type really register: offers and orders use it from now on."""
    pool = state.pools.get(instance.pool)
    if pool is not None and pool.registered_memory_mib != instance.total.memory_mib:
        pool.registered_memory_mib = instance.total.memory_mib
        state.changed_pools = True


def note_abilities(state: State, instance: Instance) -> None:
    """An instance has just joined, with or without the runner and the sharing of its GPUs: `market/offers.py` assumes
    the same as for the last instances with the same AMI in the same cell."""
    readings.note_runner(state, instance)
    _note(state, instance, "without_runner_at", instance.attributes.get(RUNNER_ATTRIBUTE) == str(RUNNER_PROTOCOL))
    kind = load_catalogue().get(instance.instance_type)
    if kind is not None and kind.shared_gpu_mib:
        _note(state, instance, "without_sharing_at", GPU_SHARING_ATTRIBUTE in instance.attributes)


def _note(state: State, instance: Instance, lacks: str, has: bool) -> None:
    """lacks: the field of a pool."""
    if has:
        image = image_of(instance.instance_type)
        for pool in state.pools.values():
            if getattr(pool, lacks) and pool.cell == instance.cell and image_of(pool.instance_type) == image:
                setattr(pool, lacks, 0.0)
                state.changed_pools = True
        return
    own = state.pools.get(instance.pool)
    if own is not None and instance.owned and instance.attributes:
        setattr(own, lacks, instance.registered_at)
        state.changed_pools = True


def count_hours(state: State, now: float, policy: Policy) -> None:
    """Add the hours of live instances that may be taken back to their pools' counts, at most once a sweep's period."""
    living: dict[str, list[Instance]] = {}
    for instance in state.instances.values():
        if instance.owned and instance.alive and instance.purchase.may_be_taken_back:
            living.setdefault(instance.pool, []).append(instance)
    for key, instances in living.items():
        pool = state.pools.get(key)
        if pool is None or now - pool.rate_at < policy.sweep_s:
            continue
        hours = sum(_hours_since(instance, pool.rate_at, now) for instance in instances)
        kept = 0.5 ** ((now - pool.rate_at) / policy.rate_half_life_s) if pool.rate_at else 0.0
        pool.interruptions, pool.instance_hours = pool.interruptions * kept, pool.instance_hours * kept + hours
        pool.rate_at = now
        state.changed_pools = True


def _hours_since(instance: Instance, since: float, until: float) -> float:
    return max(0.0, until - max(instance.launched_at, since)) / 3600


def _weight(pool: Pool, at: float, policy: Policy) -> float:
    """The weight of an event at `at` in counts that are decayed only to `rate_at`."""
    halvings = (at - pool.rate_at) / policy.rate_half_life_s
    if halvings > _FORGOTTEN:
        pool.interruptions = pool.instance_hours = 0.0
        pool.rate_at, halvings = at, 0.0
    return float(2.0**halvings)
