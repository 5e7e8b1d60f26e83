"""Set-backs: how long an action pauses after a failure, and when it is given up."""

from __future__ import annotations

from argosy.model.policy import Policy
from argosy.model.setbacks import HOLDS_S, MAX_REASON, Act, Setback, Subject
from argosy.model.state import State

MAX_PAUSE_S = 60.0


def set_back(state: State, about: Subject, reason: str, now: float, passing: bool = False) -> Setback:
    """`about` failed: it is tried again after a growing pause. A tick may try hundreds of one kind: failures during the
    pause start no further round. `passing`: the fault is unrelated to `about`."""
    setback = state.setbacks.setdefault(about, Setback())
    setback.reason = reason[:MAX_REASON]
    if now >= setback.not_before:
        setback.count += 1
        setback.refusals += not passing
        setback.since = setback.since or now
        if passing or now - setback.not_before > HOLDS_S:  # with no try for this long, a new count starts
            setback.refused_since = 0.0
        if not passing:
            setback.refused_since = setback.refused_since or now
        setback.not_before = now + min(MAX_PAUSE_S, float(2 ** min(setback.count, 10)) / 2)
    return setback


def carried_out(state: State, what: Act, name: str) -> None:
    """The action succeeded: earlier failures no longer count."""
    state.setbacks.pop(Subject(what, name), None)


def end_pause(state: State, about: Subject, now: float) -> None:
    """What a passing fault waited for has come: it may be tried again at once."""
    setback = state.setbacks.get(about)
    if setback and not setback.refusals:
        setback.not_before = min(setback.not_before, now)


def is_hopeless(setback: Setback, now: float, policy: Policy) -> bool:
    """Whether this many rounds in a row were refused, or it was tried that often for a long time, whatever the answers:
    time in which the controller did not run does not count."""
    return setback.refusals >= policy.max_setbacks or has_outlasted(setback, now, policy)


def has_outlasted(setback: Setback, now: float, policy: Policy) -> bool:
    """Whether it was tried repeatedly for longer than an outage lasts."""
    return setback.count >= policy.max_setbacks and now - setback.since >= policy.outage_patience_s


def is_refused_for_long(setback: Setback, now: float, policy: Policy) -> bool:
    """Whether AWS has only refused, for long enough to be final."""
    return bool(setback.refused_since) and now - setback.refused_since >= policy.refusal_patience_s
