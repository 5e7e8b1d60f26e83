"""Small changes that several facts share, each of which also marks the documents it touches."""

from __future__ import annotations

from typing import Any

from argosy.model.instances import InstanceStatus, Purchase
from argosy.model.policy import Policy
from argosy.model.resources import Resources
from argosy.model.runs import Run
from argosy.model.setbacks import MAX_REASON, Setback, Subject, What
from argosy.model.state import State

MAX_PAUSE_S = 60.0


def set_task(state: State, run: Run, index: int, **values: Any) -> None:
    run.tasks.set(index, **values)
    state.changed_runs.add(run.id)


def end_attempt(state: State, row: int, now: float) -> None:
    """Free the row; an instance that has no other attempt is idle from now on, however this one ended."""
    instance = state.instance_of(row)
    state.attempts.remove(row)
    if instance is not None and instance.alive and not state.attempts.on_instance(instance.id):
        instance.idle_since = now
        state.changed_instances.add(instance.id)


def note_orders(state: State, now: float) -> None:
    """Since when each pool has owed us instances: patience is measured from there, and ends when all have come."""
    owed = state.owed()
    for pool in state.pools.values():
        owes = owed[pool.key, Purchase.SPOT] + owed[pool.key, Purchase.ON_DEMAND] > 0
        since = (pool.ordered_since or now) if owes else 0.0
        if since != pool.ordered_since:
            pool.ordered_since = since
            state.changed_pools = True


def set_back(state: State, about: Subject, reason: str, now: float, passing: bool = False) -> Setback:
    """`about` could not be carried out: it is tried again after a pause that grows. A tick may try hundreds of one
    kind: what fails while the pause lasts starts no further round. `passing`: the fault says nothing about `about`."""
    setback = state.setbacks.setdefault(about, Setback())
    setback.reason = reason[:MAX_REASON]
    if now >= setback.not_before:
        setback.count += 1
        setback.refusals += not passing
        setback.since = setback.since or now
        setback.not_before = now + min(MAX_PAUSE_S, float(2 ** min(setback.count, 10)) / 2)
    return setback


def carried_out(state: State, what: What, name: str) -> None:
    """It worked: earlier failures do not count any more."""
    state.setbacks.pop(Subject(what, name), None)


def is_hopeless(setback: Setback, now: float, policy: Policy) -> bool:
    """Refused in so many rounds in a row; or tried in as many for so long, whatever the answers were: a controller that
    slept has not tried."""
    outlasted = setback.count >= policy.max_setbacks and now - setback.since >= policy.outage_patience_s
    return setback.refusals >= policy.max_setbacks or outlasted


def measure(state: State) -> None:
    """Remember the highest allocated share of the active instances."""
    used_by_instance = state.used_by_instance()
    total = used = Resources()
    for instance in state.instances.values():
        if instance.status is InstanceStatus.ACTIVE:
            total = total.plus(instance.total)
            used = used.plus(used_by_instance.get(instance.id, (Resources(), 0))[0])
    shares = [mine / all_ if all_ else 0.0 for mine, all_ in zip(used, total, strict=True)]
    state.peak_cpu = max(state.peak_cpu, shares[0])
    state.peak_memory = max(state.peak_memory, shares[1])
    state.peak_gpus = max(state.peak_gpus, shares[2])


def may_settle_more(state: State, policy: Policy) -> bool:
    """Whether this commit holds the end of one more attempt, or one more payer: one fact may bring hundreds of them."""
    few = state.dirty_documents < policy.max_settling_documents
    return few and state.dirty_bytes < policy.full_commit_bytes
