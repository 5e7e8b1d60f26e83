"""Small changes that several facts share, and the room in a commit. Each marks the documents that it touches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from argosy.model.instances import Instance
from argosy.model.policy import Policy
from argosy.model.runs import MOST_NAMED, Run
from argosy.model.setbacks import MAX_REASON, Setback, Subject, What
from argosy.model.state import State

MAX_PAUSE_S = 60.0
REFUSALS_APART_S = 5 * MAX_PAUSE_S  # after a pause: with no try for this long, the next refusal starts a new count


def set_task(state: State, run: Run, index: int, **values: Any) -> None:
    run.tasks.set(index, **values)
    state.changed_runs.add(run.id)


def note_instance(state: State, run: Run, name: str) -> None:
    """An attempt of the run was started there. When a record names as many instances as it can hold, ended ones make
    room: far fewer can be alive at a time."""
    if name in run.instances:
        return
    if len(run.instances) >= MOST_NAMED:
        run.instances = {each for each in run.instances if (there := state.instances.get(each)) and there.alive}
    run.instances.add(name)
    run.used_instances += 1


def end_attempt(state: State, row: int, now: float) -> None:
    """Free the row, however the attempt ended."""
    instance, has_left = state.instance_of(row), bool(state.attempts["left_at"][row])
    state.attempts.remove(row)
    state.open_ends.failures.pop(row, None)
    if not has_left:
        note_idle(state, instance, now)


def note_idle(state: State, instance: Instance | None, now: float) -> None:
    """An attempt has left the instance, which is idle from now on unless it has another one. Daemons' attempts do not
    count: a daemon that crashes repeatedly would keep an idle instance for ever."""
    if instance is not None and instance.alive and not instance.idle_since and not state.has_work(instance.id):
        instance.idle_since = now
        state.changed_instances.add(instance.id)


@contextmanager
def left_out_if_it_fails(state: State, what: str) -> Iterator[None]:
    """For actions on suspended runs: record any exception and continue the tick without the action."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever it is, the other runs continue
        state.left_out.append((what, error))


def set_back(state: State, about: Subject, reason: str, now: float, passing: bool = False) -> Setback:
    """`about` failed: it is tried again after a growing pause. A tick may try hundreds of one kind: failures during the
    pause start no further round. `passing`: the fault says nothing about `about`."""
    setback = state.setbacks.setdefault(about, Setback())
    setback.reason = reason[:MAX_REASON]
    if now >= setback.not_before:
        setback.count += 1
        setback.refusals += not passing
        setback.since = setback.since or now
        if passing or now - setback.not_before > REFUSALS_APART_S:
            setback.refused_since = 0.0
        if not passing:
            setback.refused_since = setback.refused_since or now
        setback.not_before = now + min(MAX_PAUSE_S, float(2 ** min(setback.count, 10)) / 2)
    return setback


def carried_out(state: State, what: What, name: str) -> None:
    """The action succeeded: earlier failures no longer count."""
    state.setbacks.pop(Subject(what, name), None)


def is_hopeless(setback: Setback, now: float, policy: Policy) -> bool:
    """Whether this many rounds in a row were refused, or it was tried as often for so long, whatever the answers were:
    time in which the controller did not run is no try."""
    return setback.refusals >= policy.max_setbacks or has_outlasted(setback, now, policy)


def has_outlasted(setback: Setback, now: float, policy: Policy) -> bool:
    """Whether it was tried repeatedly for longer than an outage lasts."""
    return setback.count >= policy.max_setbacks and now - setback.since >= policy.outage_patience_s


def is_refused_for_long(setback: Setback, now: float, policy: Policy) -> bool:
    """Whether AWS has only refused, for long enough to be final."""
    return bool(setback.refused_since) and now - setback.refused_since >= policy.refusal_patience_s


def has_room(state: State, policy: Policy, deletions: int = 0) -> bool:
    """Whether this commit has room for more facts, besides the tick's decisions. deletions: items that it removes."""
    few = state.dirty_documents + deletions < policy.max_dirty_documents
    return few and state.dirty_bytes < policy.max_dirty_bytes


def may_settle_more(state: State, policy: Policy) -> bool:
    """Whether this commit has room for the end of one more attempt, or one more payer: one fact may bring hundreds."""
    few = state.dirty_documents < policy.max_settling_documents
    return few and state.dirty_bytes < policy.full_commit_bytes


def has_room_for_series(state: State, policy: Policy, deletions: int) -> bool:
    """Whether this commit has room for one more series of a run. Series come last, and nothing waits for them."""
    few = state.dirty_documents + deletions < policy.full_commit_documents
    return few and state.dirty_bytes < policy.full_commit_bytes
