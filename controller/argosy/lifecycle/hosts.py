"""How do facts about instances change their records?

Which registration counts: an agent that has lost its data registers again, under another ARN and with versions from 1.
And a registration can end while the message about it is lost. ECS then refuses every launch there, and only its
listings, which no longer show it, say why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from argosy.catalogue.lookup import load_catalogue, overheads_of
from argosy.lifecycle import announcements, health, host_care, lost_hosts, pools
from argosy.lifecycle.announcements import AnnouncementTimes
from argosy.lifecycle.attempts import disprove
from argosy.lifecycle.setbacks import carried_out
from argosy.messages.health import driver_fault
from argosy.model.arns import cluster_of
from argosy.model.attempts import AttemptStatus
from argosy.model.events import (
    ContainerInstanceSeen,
    HostChange,
    HostSeen,
    InterruptionWarned,
    Observed,
    RebalanceAdvised,
)
from argosy.model.host_care import ConsoleRead, HostHealthChanged
from argosy.model.instance_types import GPU_SHARING_ATTRIBUTE
from argosy.model.instances import Instance, InstanceStatus, Purchase
from argosy.model.policy import Policy
from argosy.model.resources import NOTHING, Resources
from argosy.model.setbacks import Act
from argosy.model.state import State

REGISTERED = (InstanceStatus.ACTIVE, InstanceStatus.DRAINING)
GONE_STATES = frozenset({"terminated", "stopped"})
LACKS_GPUS = "registered "
NO_RUNS: Mapping[int, int] = {}
LEAVING_STATES = frozenset({"shutting-down", "stopping"})


def see_container_instance(state: State, seen: ContainerInstanceSeen, now: float, policy: Policy) -> None:
    if not seen.instance_id:
        return
    instance = state.instances.get(seen.instance_id)
    if instance is None:
        if seen.status != "ACTIVE":
            return
        instance = _meet(state, seen, now, policy)
    starts_over = bool(instance.arn) and seen.arn != instance.arn
    if starts_over and not replaces_registration(instance, seen):
        return
    if not instance.alive or (seen.version < instance.version and not starts_over):
        return
    instance.arn, instance.version = seen.arn, seen.version
    instance.arn_since = seen.registered_at or (now if starts_over else instance.arn_since)
    instance.unlisted_since = 0.0
    _note_agent(instance, seen.agent_connected, now)
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
        pools.note_abilities(state, instance)
    health.note_remaining(state, instance, seen, now, policy)
    if seen.impaired is not None:
        host_care.note_health(state, instance, "ecs", seen.impaired, now)
    host_care.note_health(state, instance, "driver", driver_fault(instance.attributes), now)
    state.changed_instances.add(instance.id)


def _meet(state: State, seen: ContainerInstanceSeen, now: float, policy: Policy) -> Instance:
    """An instance that ECS shows before EC2 does: it counts as ours once a sweep shows it with our tag."""
    kind = seen.attributes.get("ecs.instance-type", "")
    zone = seen.attributes.get("ecs.availability-zone", "")
    instance = Instance(seen.instance_id, seen.cell, kind, zone, launched_at=seen.registered_at)
    state.instances[instance.id] = instance
    state.observed_at = 0.0  # query EC2 soon
    if instance.id in state.announced:
        _note(state, instance, announcements.take(state, instance.id)._replace(heard_at=now), policy)
    return instance


def _take_resources(instance: Instance, seen: ContainerInstanceSeen) -> None:
    if seen.cpu_units:
        instance.total = Resources(seen.cpu_units, seen.memory_mib, len(seen.gpu_ids))
        instance.gpu_ids = seen.gpu_ids
    if seen.attributes:
        instance.attributes = seen.attributes
    kind = load_catalogue().get(instance.instance_type)
    if seen.gpu_devices and all(device.total_mib for device in seen.gpu_devices):
        instance.gpu_memory_mib = min(device.total_mib for device in seen.gpu_devices)
    elif GPU_SHARING_ATTRIBUTE in instance.attributes and kind and not instance.gpu_memory_mib:
        instance.gpu_memory_mib = kind.shared_gpu_mib
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
        instance.reservation = seen.reservation
        instance.instance_type, instance.zone, instance.cell = seen.instance_type, seen.zone, seen.cell
        instance.launched_at = seen.launched_at or instance.launched_at or now
        _price(state, instance, policy)
        pools.note_delivery(state, instance, now)
        if instance.interrupted_at:  # from before it was known to be ours
            pools.note_interruption(state, instance, instance.interrupted_at, policy)
        state.changed_instances.add(instance.id)
    if seen.fleet_id and instance.fleet_id != seen.fleet_id:
        instance.fleet_id = seen.fleet_id
        state.changed_instances.add(instance.id)
    if instance.id in state.announced:
        _note(state, instance, announcements.take(state, instance.id)._replace(heard_at=now), policy)
    _note_addresses(state, instance, seen)
    if seen.state == "running" and state.open_ends:
        # It ran when EC2 was queried: that decides which account is charged for attempts that failed there before.
        state.open_ends.ran_at[instance.id] = max(seen.at, state.open_ends.ran_at.get(instance.id, 0.0))
    if seen.impaired is not None and seen.impaired != instance.impaired.get("ec2", ""):
        host_care.note_health(state, instance, "ec2", seen.impaired, now)
    _follow(state, instance, seen.state, now, policy)


def _note_addresses(state: State, instance: Instance, seen: HostSeen) -> None:
    """Note its addresses. An ended instance shows none; the last ones stay."""
    known = instance.private_ip, instance.public_ip
    told = seen.private_ip or known[0], seen.public_ip or known[1]
    if told != known:
        instance.private_ip, instance.public_ip = told
        state.changed_instances.add(instance.id)


def _price(state: State, instance: Instance, policy: Policy) -> None:
    """The price at which it was bought, with its disk and its address. Spot prices hardly move within an instance's
    life: 58 % of 18,059 pools did not move once in 3.5 days of late 2022, the 90th percentile of the moves was 4 %."""
    kind = load_catalogue(instance.cell).get(instance.instance_type)
    pool = state.pools.get(instance.pool)
    on_demand = (pool.listed_usd_per_hour if pool else 0.0) or (kind.on_demand_usd_per_hour if kind else 0.0)
    spot = pool.spot_usd_per_hour if pool else 0.0
    if not spot and kind:
        spot = kind.typical_spot_usd_per_hour
    paid = 0.0 if instance.purchase.is_reserved else on_demand
    bought_at = spot if instance.purchase is Purchase.SPOT else paid
    instance.empty_by = pool.empty_by if pool else 0.0
    more = overheads_of(instance.cell, policy.billed_disk_gib_of(kind) if kind else 0, policy.public_addresses)
    instance.disk_usd_per_hour, instance.address_usd_per_hour = more
    instance.price_usd_per_hour = bought_at + more.usd_per_hour
    instance.on_demand_usd_per_hour = on_demand + more.usd_per_hour


def change_host(state: State, event: HostChange, now: float, policy: Policy) -> None:
    """EC2 reports every instance of the account. Unknown ones are not ours, or the next sweep shows them."""
    instance, at = state.instances.get(event.instance_id), event.at or now
    if isinstance(event, InterruptionWarned):
        hear(state, event.instance_id, AnnouncementTimes(warned_at=at, heard_at=now), policy)
    elif isinstance(event, RebalanceAdvised):
        hear(state, event.instance_id, AnnouncementTimes(advised_at=at, heard_at=now), policy)
    elif instance is None:
        return
    elif isinstance(event, ConsoleRead):
        instance.console = event.text
        state.changed_instances.add(instance.id)
    elif isinstance(event, HostHealthChanged):
        host_care.note_health(state, instance, "ecs", event.impaired, at)
    else:
        _follow(state, instance, event.state, at, policy)


def _follow(state: State, instance: Instance, host_state: str, at: float, policy: Policy) -> None:
    if not instance.alive:
        return
    if host_state in GONE_STATES | LEAVING_STATES:
        carried_out(state, Act.TERMINATE, instance.id)
    if host_state in GONE_STATES:
        lost_hosts.lose_instance(state, instance, at, policy)
    elif host_state in LEAVING_STATES and instance.status is not InstanceStatus.RELEASING:
        warn(state, instance, at, at, policy)


def hear(state: State, instance_id: str, announced: AnnouncementTimes, policy: Policy) -> None:
    """A warning, or the advice to leave. For an unknown instance it is kept until the instance is known."""
    instance = state.instances.get(instance_id)
    if instance is None:
        announcements.keep(state, instance_id, announced)
    else:
        _note(state, instance, announced, policy)


def _note(state: State, instance: Instance, announced: AnnouncementTimes, policy: Policy) -> None:
    if announced.advised_at and instance.alive and not instance.rebalance_at:
        instance.rebalance_at = announced.advised_at
        state.changed_instances.add(instance.id)
    if announced.warned_at:
        warn(state, instance, announced.warned_at, announced.heard_at, policy)


def warn(state: State, instance: Instance, at: float, now: float, policy: Policy) -> None:
    """The instance is about to end: its unsent intents are placed again."""
    if not instance.alive or instance.interrupted_at:
        return
    instance.interrupted_at = at
    pools.note_interruption(state, instance, at, policy)
    state.changed_instances.add(instance.id)
    for row in state.attempts.on_instance(instance.id):
        if not state.may_settle_more(policy):
            return  # the others are stopped like running tasks
        if state.attempts["status"][row] == AttemptStatus.INTENT.value and (key := state.key_of(row)) is not None:
            disprove(state, key, now, f"instance {instance.id} got an interruption warning before the task was sent")


def miss_hosts(state: State, sweep: Observed, policy: Policy) -> None:
    """An instance that complete listings do not show has ended once the quiet time is over; new ones may be listed
    late."""
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
        lost_hosts.lose_instance(state, instance, instance.absent_since, policy)  # no run pays for the time in doubt


def _forget(state: State, instance: Instance, policy: Policy) -> None:
    """Keep ended instances while an open run may name them in its manifest. If a long run used very many, keep as many
    as one stored record can name; the manifest then gives the id of the others and not their type. An instance that
    an attempt names is always kept."""
    for run in state.runs.values():
        if len(run.instances) > policy.max_named_instances and instance.id in run.instances:
            run.instances.discard(instance.id)
            state.changed_runs.add(run.id)
    named = any(instance.id in run.instances for run in state.runs.values())
    named = named or any(instance.id in found.record.instances for found in state.suspended.values())
    named = named or bool((state.attempts["instance"] == instance.id.encode()).any())
    if not named and not instance.losing:
        del state.instances[instance.id]
        state.changed_instances.add(instance.id)


def pass_time(state: State, now: float, policy: Policy) -> None:
    """Continue with every instance that was lost in an earlier tick and is not settled yet; drains end."""
    for instance in state.instances.values():
        if instance.losing:
            lost_hosts.settle(state, instance, policy)
        if instance.drain_until or instance.impaired:
            host_care.pass_time(state, instance, now)
        if instance.empty_by and now >= instance.empty_by:
            warn(state, instance, now, now, policy)


def replaces_registration(instance: Instance, seen: ContainerInstanceSeen) -> bool:
    """Whether an ARN other than the recorded one is the instance's registration now. An abandoned registration may stay
    listed without an agent: the younger one counts."""
    if cluster_of(seen.arn) != cluster_of(instance.arn):
        return seen.listed  # an instance never changes clusters: the first message named another one
    since = instance.arn_since or instance.registered_at
    return seen.registered_at > since or (seen.listed and seen.registered_at in (0.0, since))


def miss_registrations(state: State, sweep: Observed, policy: Policy) -> None:
    """Registered instances that complete listings of ECS do not show, for the quiet time and in two sweeps. Nothing is
    placed there, and unless they reappear they are released like any instance with a silent agent."""
    if not sweep.container_instances_complete:
        return
    shown = {seen.arn for seen in sweep.container_instances}
    for instance in state.instances.values():
        registered = instance.status in REGISTERED and instance.arn
        young = sweep.at - max(instance.registered_at, instance.arn_since) < policy.absence_s
        if not registered or young or instance.arn in shown:
            continue
        if not instance.unlisted_since:
            instance.unlisted_since = sweep.at
        elif instance.agent_connected and sweep.at - instance.unlisted_since >= policy.absence_s:
            _note_agent(instance, False, instance.unlisted_since)
        else:
            continue
        state.changed_instances.add(instance.id)


def _note_agent(instance: Instance, connected: bool, now: float) -> None:
    """Note whether the agent was seen connected."""
    instance.agent_connected = connected
    if connected:
        instance.disconnected_at = 0.0
    elif not instance.disconnected_at:
        instance.disconnected_at = now


def measure(state: State) -> None:
    """Record the highest allocated share of the active instances."""
    cpu, memory, gpus = shares_in_use(state)
    state.peak_cpu = max(state.peak_cpu, cpu)
    state.peak_memory = max(state.peak_memory, memory)
    state.peak_gpus = max(state.peak_gpus, gpus)


def shares_in_use(state: State, needs: Mapping[int, Resources] | None = None) -> tuple[float, float, float]:
    """Attempts' share of the cpu, memory and GPUs of the active instances: 0..1 each. needs: of a task of each run, by
    its number; None = as the state has them."""
    tasks, runs_on = Counter[int](), state.attempts.runs_on_instance
    active = [instance for instance in state.instances.values() if instance.status is InstanceStatus.ACTIVE]
    for instance in active:
        for number, count in runs_on.get(instance.id.encode(), NO_RUNS).items():
            tasks[number] += count
    known, used = state.needs_by_number() if needs is None else needs, Resources()
    for number, count in tasks.items():
        used = used.plus(known.get(number, NOTHING), count)
    total = map(sum, zip(*(instance.size for instance in active), strict=True)) if active else NOTHING
    cpu, memory, gpus, *_ = (mine / all_ if all_ else 0.0 for mine, all_ in zip(used, total, strict=True))
    return cpu, memory, gpus
