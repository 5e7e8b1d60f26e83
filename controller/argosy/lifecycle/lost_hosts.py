"""How is an ended instance settled?

Each run that had attempts on a lost instance costs two documents (its record and a chunk of its tasks), and one
instance may run tasks of a hundred runs. So it may take several ticks. `Instance.losing` is stored, and a controller
that loads the state in between continues.
"""

from __future__ import annotations

from argosy.lifecycle import charges, pools, suspended_tasks
from argosy.lifecycle.attempts import disprove, lose
from argosy.lifecycle.setbacks import carried_out
from argosy.model.attempts import AttemptStatus
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.policy import Policy
from argosy.model.setbacks import Act
from argosy.model.state import State

# Attempts that end with their instance; those in doubt are resolved first.
ENDS_WITH_HOST = (AttemptStatus.LAUNCHED, AttemptStatus.RUNNING, AttemptStatus.INTENT)


def lose_instance(state: State, instance: Instance, at: float, policy: Policy) -> None:
    """EC2 confirms that it has ended: only now are its attempts lost (reliability.md row 20), as many as this commit
    has room for."""
    if not instance.interrupted_at and instance.status is not InstanceStatus.RELEASING:
        pools.note_interruption(state, instance, at, policy)  # the warning was lost, or there was none
    pools.note_end(state, instance, at, policy)
    instance.status, instance.stopped_at, instance.agent_connected = InstanceStatus.GONE, at, False
    hours = instance.hours(at)
    state.spent_usd += hours * instance.price_usd_per_hour
    state.spent_on_demand_usd += hours * instance.on_demand_usd_per_hour
    instance.losing = True
    carried_out(state, Act.TERMINATE, instance.id)
    state.changed_instances.add(instance.id)
    settle(state, instance, policy)


def settle(state: State, instance: Instance, policy: Policy) -> None:
    """Attempts first, since their work decides who pays; then the payers, the last of whom pays the rest."""
    for row in state.attempts.on_instance(instance.id):
        if state.attempts["status"][row] not in ENDS_WITH_HOST:
            continue
        if not state.may_settle_more(policy):
            return
        _end_attempt_on(state, instance, row, policy)
    while len(instance.work) > 1:
        if not state.may_settle_more(policy):
            return
        charges.charge_next(state, instance)
    if state.may_settle_more(policy):
        charges.close_instance(state, instance)
        instance.losing = False
        state.changed_instances.add(instance.id)


def _end_attempt_on(state: State, instance: Instance, row: int, policy: Policy) -> None:
    at = instance.stopped_at
    if state.attempts["status"][row] == AttemptStatus.INTENT.value:
        if (key := state.key_of(row)) is not None:
            disprove(state, key, at, f"instance {instance.id} was gone before the task was sent")
    elif int(state.attempts["run"][row]) in state.suspended_numbers():
        suspended_tasks.lose(state, row, at)
    else:
        lose(state, row, f"Host EC2 (instance {instance.id}) terminated.", at, policy)
