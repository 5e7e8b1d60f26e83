"""How do the attempts and payers of an instance that is gone hear of it, when one commit cannot hold them all?

Each run concerned costs two documents (its record and a chunk of its tasks), and one instance may run tasks of a
hundred runs. `Instance.losing` is stored, so that whoever loads the state in between goes on.
"""

from __future__ import annotations

from argosy.lifecycle import ledger
from argosy.lifecycle.attempts import disprove, lose
from argosy.lifecycle.marks import may_settle_more
from argosy.model.attempts import AttemptStatus
from argosy.model.instances import Instance
from argosy.model.policy import Policy
from argosy.model.state import State

OVER = (AttemptStatus.LAUNCHED, AttemptStatus.RUNNING, AttemptStatus.INTENT)  # what is in doubt is resolved first


def go_on(state: State, policy: Policy) -> None:
    """With every instance that was lost in an earlier tick and has not been done with."""
    for instance in state.instances.values():
        if instance.losing:
            go_on_losing(state, instance, policy)


def go_on_losing(state: State, instance: Instance, policy: Policy) -> None:
    """Attempts first, since what they did decides who pays what; then the payers, the last of whom takes the rest."""
    for row in state.attempts.on_instance(instance.id):
        if state.attempts["status"][row] not in OVER:
            continue
        if not may_settle_more(state, policy):
            return
        _end(state, instance, row, policy)
    while len(instance.work) > 1:
        if not may_settle_more(state, policy):
            return
        ledger.charge_next(state, instance)
    if may_settle_more(state, policy):
        ledger.close_instance(state, instance)
        instance.losing = False
        state.changed_instances.add(instance.id)


def _end(state: State, instance: Instance, row: int, policy: Policy) -> None:
    at = instance.stopped_at
    if state.attempts["status"][row] != AttemptStatus.INTENT:
        lose(state, row, f"Host EC2 (instance {instance.id}) terminated.", at, policy)
    elif (key := state.key_of(row)) is not None:
        disprove(state, key, at, f"instance {instance.id} went before the task was sent")
