"""When does a run of purchase spot-then-on-demand leave spot, when does it come back, and what is its user told?

Three reasons: its deadline's slack (`deadline`), tasks that have waited too long while spot is short, and single tasks
that were lost too often (`scheduler.asks`). Whether spot is to be had shows only when it is ordered: from on-demand it
is tried again after a while, and after twice as long each time that it turns out to be short again.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

from argosy.market.deadline import Job, stance_of
from argosy.market.offers import tasks_in
from argosy.market.on_demand import is_ever_to_be_had
from argosy.market.progress import job_of
from argosy.model.instances import Purchase
from argosy.model.policy import Policy
from argosy.model.purchases import Stance, Steering
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus

MAX_PAUSES = 4.0  # times Policy.try_spot_s
FORGIVEN_S = 3600.0  # on spot for so long: an earlier shortage counts no more


def purchases(run: Run, state: State, now: float, policy: Policy) -> frozenset[Purchase]:
    """What may be bought for the run now."""
    if not run.terms.purchase.mixes:
        return frozenset({Purchase(run.terms.purchase)})
    stance = steered(run, state, now, policy).stance
    return frozenset({Purchase.SPOT if stance is Stance.SPOT else Purchase.ON_DEMAND})


def steered(run: Run, state: State, now: float, policy: Policy, is_short: bool | None = None) -> Steering:
    """What the run is to hold to from now on. `is_short`: whether its tasks wait while spot is short; None = as
    before, also where they have just been given another chance."""
    before = _noted(run, now, is_short)
    if not run.terms.purchase.mixes or not run.tasks.counts()[TaskStatus.PENDING]:
        return before
    job = job_of(run, state, now, policy)
    stance = _stance(run, state, job, before, now, policy)
    if stance is not Stance.SPOT and not is_ever_to_be_had(run, state, policy):
        stance = Stance.SPOT  # better late than never
    if stance is before.stance:
        return before
    if stance is Stance.SPOT:
        return replace(before, stance=stance, since=now, reason=f"back to spot since {_time(now)}", short_since=0.0)
    fresh = before.stance is Stance.SPOT and now - before.since > FORGIVEN_S
    falls = 1 if fresh else before.falls + (before.stance is Stance.SPOT)
    pause_s = policy.try_spot_s * min(MAX_PAUSES, 2.0 ** (falls - 1))
    return replace(
        before,
        stance=stance,
        since=now,
        reason=_reason(stance, job, before, now),
        try_spot_at=now + pause_s,
        falls=falls,
        short_since=0.0,
    )


def _noted(run: Run, now: float, is_short: bool | None) -> Steering:
    """With what time alone, and the market, have changed."""
    before = run.steering
    late = run.deadline_at is not None and now > run.deadline_at and not run.complete
    short_since = before.short_since
    if is_short is not None:
        short_since = (short_since or now) if is_short and before.stance is Stance.SPOT else 0.0
    return replace(before, late=before.late or late, short_since=short_since)


def _stance(run: Run, state: State, job: Job | None, before: Steering, now: float, policy: Policy) -> Stance:
    if before.stance is Stance.SPOT:
        spot_for_s = 0.0 if before.short_since else math.inf
    else:
        spot_for_s = math.inf if now >= before.try_spot_at and _is_worth_a_try(run, state, now) else 0.0
    # Late on on-demand in any case, for want of room there: spot has more of it, as long as there is some.
    overdue = job is not None and job.narrow and job.slack_s < 0 and spot_for_s > 0
    by_deadline = stance_of(job, before.stance, spot_for_s) if job and not overdue else Stance.SPOT
    if by_deadline is not Stance.SPOT:
        return by_deadline
    if before.stance is Stance.SPOT:
        return Stance.ON_DEMAND if _has_waited(run, before, now, policy) else Stance.SPOT
    return Stance.SPOT if job or spot_for_s else Stance.ON_DEMAND


def _is_worth_a_try(run: Run, state: State, now: float) -> bool:
    """Some pool that could hold the run does not cool off from a shortage."""
    return any(pool.short_until <= now and tasks_in(pool, run) for pool in state.pools.values())


def _has_waited(run: Run, before: Steering, now: float, policy: Policy) -> bool:
    """Once spot has been short, a further try is given up sooner."""
    patience_s = run.terms.fallback_wait_s
    if before.falls and patience_s < math.inf:
        patience_s = min(patience_s, policy.order_patience_s)
    return bool(before.short_since) and now - before.short_since >= patience_s


def _reason(stance: Stance, job: Job | None, before: Steering, now: float) -> str:
    since = f"on-demand since {_time(now)}"
    if job is None or job.slack_s >= max(job.reserve_s, job.margin_s):
        waited_s = now - before.short_since if before.short_since else 0.0
        return f"{since}: tasks had waited {minutes(waited_s)} for spot" if waited_s else f"{since}: spot is short"
    if job.slack_s < 0:
        late = f"even so the deadline is missed by about {minutes(-job.slack_s)}"
        return f"{since}, to the end: {late}"
    if stance is Stance.FIRM:
        return f"{since}, to the end: {minutes(job.slack_s)} of slack left, too little to make up for a loss of spot"
    return f"{since}: {minutes(job.slack_s)} of slack left, and spot is short"


def minutes(seconds: float) -> str:
    """`14 min`, `40 s`, `2 h 5 min`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    hours, rest = divmod(round(seconds / 60), 60)
    return f"{hours} h {rest} min" if hours else f"{rest} min"


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%H:%M} UTC"
