"""Which registration of an instance counts, and what of one that ECS no longer lists?

An agent that has lost its data registers anew: another ARN, and versions from 1. And a registration can end while the
message of it is lost: ECS then refuses every launch there, and only what its listings do not show tells why.
"""

from __future__ import annotations

from argosy.lifecycle.health import note_agent
from argosy.model.arns import cluster_of
from argosy.model.events import ContainerInstanceSeen, Observed
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.policy import Policy
from argosy.model.state import State

REGISTERED = (InstanceStatus.ACTIVE, InstanceStatus.DRAINING)


def replaces(instance: Instance, seen: ContainerInstanceSeen) -> bool:
    """Whether another ARN than the one we know is the instance's registration now. The one it gave up may stay listed
    beside the new one, without an agent: the younger counts."""
    if cluster_of(seen.arn) != cluster_of(instance.arn):
        return seen.listed  # nobody moves between clusters: a message came first that named another one
    since = instance.arn_since or instance.registered_at
    return seen.registered_at > since or (seen.listed and seen.registered_at in (0.0, since))


def miss(state: State, sweep: Observed, policy: Policy) -> None:
    """Registered instances that complete listings of ECS do not show, for the quiet time and in two looks: nothing is
    placed there, and unless they show again they are let go like any whose agent is silent."""
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
            note_agent(instance, False, instance.unlisted_since)
        else:
            continue
        state.changed_instances.add(instance.id)
