"""Is an instance fit for work? What the ends of attempts and the silence of agents say about it.

A black hole fails tasks fast and so attracts every task there is: after a few failures at once, in a row, nothing more
is placed there. But what fails everywhere is the program's fault and no instance's.
"""

from __future__ import annotations

from argosy.lifecycle.ending import Account
from argosy.model.attempts import StopCause
from argosy.model.instances import Instance
from argosy.model.policy import Policy
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus


def note_end(
    state: State, run: Run, instance: Instance, account: Account, cause: StopCause, seconds: float, policy: Policy
) -> None:
    """An attempt ended on the instance, `seconds` after it started (0 = it never did)."""
    at_once = cause is StopCause.NONE and account in (Account.USER, Account.START) and seconds < policy.quick_failure_s
    if not (at_once or cause is StopCause.STUCK):
        if instance.strikes and (account is Account.SUCCESS or seconds >= policy.quick_failure_s):
            instance.strikes = 0
            state.changed_instances.add(instance.id)
        return
    instance.strikes += 1
    state.changed_instances.add(instance.id)
    if instance.strikes >= policy.max_strikes and not instance.cordon and _is_its_own_fault(state, run, instance):
        instance.cordon = f"{instance.strikes} attempts in a row failed at once or never started"


def _is_its_own_fault(state: State, run: Run, instance: Instance) -> bool:
    """Elsewhere the run's tasks fare better, as far as is known: one has succeeded, no other instance that is there
    fails them, or one is left that could take them and has not been tried. Strikes on instances that are gone, or that
    never had a task of this run, say nothing about its program."""
    if run.tasks.counts()[TaskStatus.SUCCEEDED]:
        return True
    others = [other for other in state.instances.values() if other.alive and other is not instance]
    if not any(other.strikes and other.id in run.instances for other in others):
        return True
    return any(other.placeable and not other.strikes and other.id not in run.instances for other in others)


def note_agent(instance: Instance, connected: bool, now: float) -> None:
    """The agent was seen connected, or not."""
    instance.agent_connected = connected
    if connected:
        instance.disconnected_at = 0.0
    elif not instance.disconnected_at:
        instance.disconnected_at = now
