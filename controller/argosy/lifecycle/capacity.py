"""How do facts about instances and fleets change what we know we have?"""

from __future__ import annotations

from argosy.catalogue.lookup import load_catalogue
from argosy.lifecycle import pools, registrations, strangers
from argosy.lifecycle.attempts import disprove
from argosy.lifecycle.health import note_agent
from argosy.lifecycle.losing import go_on_losing
from argosy.lifecycle.marks import carried_out, may_settle_more
from argosy.model.attempts import AttemptStatus
from argosy.model.events import ContainerInstanceSeen, HostSeen, HostStateChanged, Observed
from argosy.model.instances import Instance, InstanceStatus, Purchase
from argosy.model.policy import Policy
from argosy.model.resources import Resources
from argosy.model.setbacks import What
from argosy.model.state import State

GONE_STATES = frozenset({"terminated", "stopped"})
LACKS_GPUS = "registered "
LEAVING_STATES = frozenset({"shutting-down", "stopping"})


def see_container_instance(state: State, seen: ContainerInstanceSeen, now: float, policy: Policy) -> None:
    if not seen.instance_id:
        return
    instance = state.instances.get(seen.instance_id)
    if instance is None:
        if seen.status != "ACTIVE":
            return
        instance = _meet(state, seen)
    starts_over = bool(instance.arn) and seen.arn != instance.arn
    if starts_over and not registrations.replaces(instance, seen):
        return
    if not instance.alive or (seen.version < instance.version and not starts_over):
        return
    instance.arn, instance.version = seen.arn, seen.version
    instance.arn_since = seen.registered_at or (now if starts_over else instance.arn_since)
    instance.unlisted_since = 0.0
    note_agent(instance, seen.agent_connected, now)
    _take_resources(instance, seen)
    if seen.memory_mib and instance.owned:
        pools.note_memory(state, instance)
    if instance.status in (InstanceStatus.BOOTING, InstanceStatus.ACTIVE, InstanceStatus.DRAINING):
        drains = seen.status != "ACTIVE"
        instance.status = InstanceStatus.DRAINING if drains else InstanceStatus.ACTIVE
        instance.draining_since = (instance.draining_since or now) if drains else 0.0
    if not instance.registered_at:
        pools.note_registered(state, instance)
        instance.registered_at = instance.idle_since = seen.registered_at or now
    strangers.note_remaining(state, instance, seen.remaining, now, policy)
    state.changed_instances.add(instance.id)


def _meet(state: State, seen: ContainerInstanceSeen) -> Instance:
    """An instance that ECS knows before EC2 told us: not ours until a sweep shows it with our tag."""
    kind = seen.attributes.get("ecs.instance-type", "")
    zone = seen.attributes.get("ecs.availability-zone", "")
    instance = Instance(seen.instance_id, seen.cell, kind, zone, launched_at=seen.registered_at)
    state.instances[instance.id] = instance
    state.observed_at = 0.0  # look at EC2 soon
    return instance


def _take_resources(instance: Instance, seen: ContainerInstanceSeen) -> None:
    if seen.cpu_units:
        instance.total = Resources(seen.cpu_units, seen.memory_mib, len(seen.gpu_ids))
        instance.gpu_ids = seen.gpu_ids
    if seen.attributes:
        instance.attributes = seen.attributes
    kind = load_catalogue().get(instance.instance_type)
    missing = kind.gpus - instance.total.gpus if kind else 0
    # The agent registers with zero GPUs, rather than fail, when its GPU information is missing (aws.md 7.3).
    if missing > 0:
        instance.cordon = f"{LACKS_GPUS}{instance.total.gpus} of {instance.total.gpus + missing} GPUs"
    elif instance.cordon.startswith(LACKS_GPUS):
        instance.cordon = ""


def see_host(state: State, seen: HostSeen, now: float, policy: Policy) -> None:
    """One of our own EC2 instances: the listing is filtered by our tag."""
    instance = state.instances.get(seen.instance_id)
    if instance is None:
        if seen.state in GONE_STATES | LEAVING_STATES:
            return
        instance = Instance(seen.instance_id, seen.cell, seen.instance_type, seen.zone)
        state.instances[instance.id] = instance
        state.changed_instances.add(instance.id)
    if not instance.owned:
        instance.owned, instance.purchase = True, Purchase(seen.purchase)
        instance.instance_type, instance.zone, instance.cell = seen.instance_type, seen.zone, seen.cell
        instance.launched_at = seen.launched_at or instance.launched_at or now
        _price(state, instance)
        pools.note_delivery(state, instance, now)
        state.changed_instances.add(instance.id)
    if seen.fleet_id and instance.fleet_id != seen.fleet_id:
        instance.fleet_id = seen.fleet_id
        state.changed_instances.add(instance.id)
    _follow(state, instance, seen.state, now, policy)


def _price(state: State, instance: Instance) -> None:
    """The price at which it was bought; spot prices hardly move within an instance's life: 58 % of 18,059
    pools did not move once in 3.5 days of late 2022, the 90th percentile of the moves was 4 %."""
    kind = load_catalogue(instance.cell).get(instance.instance_type)
    pool = state.pools.get(instance.pool)
    instance.on_demand_usd_per_hour = kind.on_demand_usd_per_hour if kind else 0.0
    spot = pool.spot_usd_per_hour if pool else 0.0
    if not spot and kind:
        spot = kind.typical_spot_usd_per_hour
    bought_as_spot = instance.purchase is Purchase.SPOT
    instance.price_usd_per_hour = spot if bought_as_spot else instance.on_demand_usd_per_hour


def change_host_state(state: State, event: HostStateChanged, now: float, policy: Policy) -> None:
    """EC2 tells of every instance of the account: those that we do not know are not ours, or the sweep will say."""
    instance = state.instances.get(event.instance_id)
    if instance is not None:
        _follow(state, instance, event.state, event.at or now, policy)


def _follow(state: State, instance: Instance, host_state: str, at: float, policy: Policy) -> None:
    if not instance.alive:
        return
    if host_state in GONE_STATES | LEAVING_STATES:
        carried_out(state, What.TERMINATE, instance.id)
    if host_state in GONE_STATES:
        lose_instance(state, instance, at, policy)
    elif host_state in LEAVING_STATES and instance.status is not InstanceStatus.RELEASING:
        warn(state, instance, at, at, policy)


def warn(state: State, instance: Instance, at: float, now: float, policy: Policy) -> None:
    """The instance is about to go: what was intended for it and never sent is placed anew."""
    if not instance.alive or instance.interrupted_at:
        return
    instance.interrupted_at = at
    pools.note_interruption(state, instance, at, policy)
    state.changed_instances.add(instance.id)
    for row in state.attempts.on_instance(instance.id):
        if not may_settle_more(state, policy):
            return  # the others are stopped like what runs there
        if state.attempts["status"][row] == AttemptStatus.INTENT and (key := state.key_of(row)) is not None:
            disprove(state, key, now, f"instance {instance.id} was warned before the task was sent")


def lose_instance(state: State, instance: Instance, at: float, policy: Policy) -> None:
    """EC2 confirms that it is gone: only now are its attempts lost (reliability.md row 20), as many as this
    commit has room for."""
    if not instance.interrupted_at and instance.status is not InstanceStatus.RELEASING:
        pools.note_interruption(state, instance, at, policy)  # the warning was lost, or there was none
    pools.note_end(state, instance, at, policy)
    instance.status, instance.stopped_at, instance.agent_connected = InstanceStatus.GONE, at, False
    hours = instance.hours(at)
    state.spent_usd += hours * instance.price_usd_per_hour
    state.spent_on_demand_usd += hours * instance.on_demand_usd_per_hour
    instance.losing = True
    carried_out(state, What.TERMINATE, instance.id)
    state.changed_instances.add(instance.id)
    go_on_losing(state, instance, policy)


def miss_hosts(state: State, sweep: Observed, policy: Policy) -> None:
    """Instances that complete listings do not show are gone once the quiet time is over; young ones may be late."""
    if not sweep.hosts_complete:
        return
    shown = {host.instance_id for host in sweep.hosts}
    for instance in list(state.instances.values()):
        if instance.alive and instance.id not in shown:
            _miss(state, instance, sweep.at, policy)
        elif instance.absent_since and instance.alive:
            instance.absent_since = 0.0
            state.changed_instances.add(instance.id)
        elif not instance.alive and sweep.at - instance.stopped_at > policy.forget_instance_s:
            _forget(state, instance, policy)


def _miss(state: State, instance: Instance, at: float, policy: Policy) -> None:
    if at - max(instance.launched_at, instance.registered_at) < policy.absence_s:
        return
    if not instance.absent_since:
        instance.absent_since = at
        state.changed_instances.add(instance.id)
    elif at - instance.absent_since >= policy.absence_s:
        lose_instance(state, instance, instance.absent_since, policy)  # nobody pays for the time of doubt


def _forget(state: State, instance: Instance, policy: Policy) -> None:
    """Kept while an open run may still name it in its manifest; of the very many that a run of weeks has used up only
    as many as one stored record can name. The manifest then says which instance it was, and not of which type."""
    for run in state.runs.values():
        if len(run.instances) > policy.max_named_instances and instance.id in run.instances:
            run.instances.discard(instance.id)
            state.changed_runs.add(run.id)
    named = any(instance.id in run.instances for run in state.runs.values())
    if not named and not instance.losing and not state.attempts.on_instance(instance.id):
        del state.instances[instance.id]
        state.changed_instances.add(instance.id)
