"""Orders and listings that AWS refuses: they become set-backs, and nothing counts as ordered.

Example: EC2 refuses to raise the target of a pool from 1 to 4. Its target is 1 again, other pools are bought from, and
the order is tried again after 1, 2, 4, ... 60 seconds.
"""

from __future__ import annotations

from argosy.lifecycle.setbacks import carried_out, set_back
from argosy.model.events import LaunchInDoubt, Observed, PoolShort
from argosy.model.instances import Purchase
from argosy.model.policy import Policy
from argosy.model.pools import Pool
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State

REFUSED_S = 30.0  # that the pool is avoided at least, so that the next ticks order from other pools


def refuse_order(state: State, event: PoolShort, now: float, policy: Policy) -> None:
    """EC2 refused to set the pool's target, so the target falls back to what is there. The pool is avoided, for both
    purchase options, until the call is sent again: to repeat it costs nothing, so that is soon."""
    pool = state.pools[event.pool]
    setback = set_back(state, Subject(Act.TARGET, pool.key), event.reason, now)
    owed = state.owed()
    pool.spot_target -= owed[pool.key, Purchase.SPOT]
    pool.on_demand_target -= owed[pool.key, pool.ordered_as]
    state.changed_pools = True
    until = max(setback.not_before, now + REFUSED_S)
    if min(pool.short_until, pool.on_demand_short_until) < until:
        pool.short_until = pool.on_demand_short_until = until
        pool.short_reason, pool.needs_mending = setback.reason, event.lasting


def end_refusal(state: State, pool: Pool) -> None:
    """EC2 has accepted a target of it."""
    refused = state.setbacks.pop(Subject(Act.TARGET, pool.key), None)
    if refused and refused.reason == pool.short_reason:
        pool.short_until = pool.on_demand_short_until = 0.0
        pool.needs_mending = False


def in_words(about: Subject, reason: str) -> str:
    """Why a run waits. What was looked up or closed is in the reason already."""
    calls = {Act.SEND: "RunTask does not get through: ", Act.LAUNCH: "no task can be started: "}
    return f"{calls.get(about.what, '')}{reason}"


def note_doubt(state: State, event: LaunchInDoubt, now: float) -> None:
    """RunTask was not answered, or not in a way that tells whether a task was started."""
    run, about = state.runs[event.key.run_id], Subject(Act.SEND, event.key.run_id)
    known = state.setbacks.get(about) or state.setbacks.get(Subject(Act.LAUNCH, run.id))
    if known and not event.is_answer:
        set_back(state, about, known.reason, now, passing=True)
        return
    set_back(state, about, event.reason, now, passing=True)
    run.waiting = in_words(about, event.reason)
    state.changed_runs.add(run.id)


def end_launch_refusals(state: State, run_id: str) -> None:
    """ECS has accepted a launch of the run."""
    carried_out(state, Act.LAUNCH, run_id)
    carried_out(state, Act.SEND, run_id)


def note_listings(state: State, sweep: Observed, now: float) -> None:
    """A sweep lists everything, so what AWS does not refuse now is no longer refused."""
    refused = {fault.about: fault for fault in sweep.broken_off if fault.about}
    for subject in [each for each in state.setbacks if each.what is Act.LIST and each not in refused]:
        carried_out(state, *subject)
    for about, fault in refused.items():
        set_back(state, about, fault.reason, now, fault.passing)
