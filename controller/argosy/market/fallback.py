"""When does a run of purchase spot-then-on-demand leave spot and return to it?

It leaves for four reasons: its deadline leaves too little slack (`deadline`), tasks have waited too long while spot is
short, too much work was repeated, and single tasks were lost too often (`scheduler.turns.asks`). Whether spot is
available shows only in an order. So a run on on-demand tries spot again after a pause, which doubles each time that
spot is short again, unless it has to stay on on-demand.
"""

from __future__ import annotations

import math
from dataclasses import replace

from argosy.market.offers import tasks_in
from argosy.market.on_demand import is_ever_available
from argosy.market.progress import Progress, progress_of, stance_of
from argosy.model.costs import Work
from argosy.model.instances import Purchase
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.purchases import PurchaseChoice, PurchaseStance
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.model.wording import dollars, duration, hour_and_minute

MAX_PAUSES = 4.0  # times Policy.try_spot_s
FORGIVEN_S = 3600.0  # after this time on spot, an earlier shortage no longer counts


def purchases(run: Run, moment: Moment) -> frozenset[Purchase]:
    """The purchase options of the run now."""
    if not run.terms.purchase.mixes:
        return frozenset({Purchase(run.terms.purchase)})
    stance = steered(run, moment).stance
    return frozenset({Purchase.SPOT if stance is PurchaseStance.SPOT else Purchase.ON_DEMAND})


def steered(run: Run, moment: Moment, is_short: bool | None = None) -> PurchaseChoice:
    """The run's choice from now on. is_short: whether its tasks wait while spot is short; None = unchanged, also
    after they have just been given another chance."""
    now, policy = moment.now, moment.policy
    before = _noted(run, now, is_short)
    if not run.terms.purchase.mixes or not run.tasks.counts()[TaskStatus.PENDING]:
        return before
    progress = progress_of(run, moment)
    stance = _stance(run, moment, progress, before)
    if stance is not PurchaseStance.SPOT and not is_ever_available(run, moment.state, policy):
        stance = PurchaseStance.SPOT  # the run ends late instead of never
    if stance is before.stance:
        return before
    if stance is PurchaseStance.SPOT:
        back = f"back to spot since {hour_and_minute(now)}"
        return replace(before, stance=stance, since=now, reason=back, short_since=0.0)
    if _is_costly(run, moment.state):
        usd = dollars(_redone_usd(run, moment.state))
        reason = f"on-demand since {hour_and_minute(now)}, to the end: interruptions have repeated work worth {usd}"
        return replace(before, stance=stance, since=now, reason=reason, short_since=0.0)
    fresh = before.stance is PurchaseStance.SPOT and now - before.since > FORGIVEN_S
    falls = 1 if fresh else before.falls + (before.stance is PurchaseStance.SPOT)
    pause_s = policy.try_spot_s * min(MAX_PAUSES, 2.0 ** (falls - 1))
    return replace(
        before,
        stance=stance,
        since=now,
        reason=_reason(stance, progress, before, now),
        try_spot_at=now + pause_s,
        falls=falls,
        short_since=0.0,
    )


def _noted(run: Run, now: float, is_short: bool | None) -> PurchaseChoice:
    """The run's choice, updated for time and market."""
    before = run.steering
    late = run.deadline_at is not None and now > run.deadline_at and not run.complete
    short_since = before.short_since
    if is_short is not None:
        short_since = (short_since or now) if is_short and before.stance is PurchaseStance.SPOT else 0.0
    return replace(before, late=before.late or late, short_since=short_since)


def _stance(run: Run, moment: Moment, progress: Progress | None, before: PurchaseChoice) -> PurchaseStance:
    if _is_costly(run, moment.state):
        return PurchaseStance.FIRM
    now = moment.now
    if before.stance is PurchaseStance.SPOT:
        spot_for_s = 0.0 if before.short_since else math.inf
    else:
        spot_for_s = (
            math.inf if now >= before.try_spot_at and _is_worth_a_try(run, moment.state, now, moment.policy) else 0.0
        )
    # Late on on-demand too, for lack of room there: spot has more room, as long as it is available.
    overdue = progress is not None and progress.narrow and progress.slack_s < 0 and spot_for_s > 0
    by_deadline = stance_of(progress, before.stance, spot_for_s) if progress and not overdue else PurchaseStance.SPOT
    if by_deadline is not PurchaseStance.SPOT:
        return by_deadline
    if before.stance is PurchaseStance.SPOT:
        return PurchaseStance.ON_DEMAND if _has_waited(run, before, now, moment.policy) else PurchaseStance.SPOT
    return PurchaseStance.SPOT if progress or spot_for_s else PurchaseStance.ON_DEMAND


def _redone_usd(run: Run, state: State) -> float:
    """Of attempts that have ended."""
    here = (each for each in state.instances.values() if each.owes and run.number in each.work)
    owed = sum(each.work[run.number][Work.REDONE] * each.price_usd_per_hour / 3600 for each in here)
    return owed + sum(each.redone for each in run.costs.values())


def _is_costly(run: Run, state: State) -> bool:
    limit = run.terms.fallback_redone_usd
    return limit is not None and _redone_usd(run, state) >= limit


def _is_worth_a_try(run: Run, state: State, now: float, policy: Policy) -> bool:
    """Whether some pool that could hold the run is not cooling off from a shortage."""
    return any(pool.short_until <= now and tasks_in(pool, run, policy) for pool in state.pools.values())


def _has_waited(run: Run, before: PurchaseChoice, now: float, policy: Policy) -> bool:
    """Whether its tasks have waited long enough for spot. After a first shortage, the next try ends sooner."""
    patience_s = run.terms.fallback_wait_s
    if before.falls and patience_s < math.inf:
        patience_s = min(patience_s, policy.order_patience_s)
    return bool(before.short_since) and now - before.short_since >= patience_s


def _reason(stance: PurchaseStance, progress: Progress | None, before: PurchaseChoice, now: float) -> str:
    since = f"on-demand since {hour_and_minute(now)}"
    if progress is None or progress.slack_s >= max(progress.reserve_s, progress.margin_s):
        waited_s = now - before.short_since if before.short_since else 0.0
        return f"{since}: tasks had waited {duration(waited_s)} for spot" if waited_s else f"{since}: spot is short"
    if progress.slack_s < 0:
        late = f"even so, the deadline will be missed by about {duration(-progress.slack_s)}"
        return f"{since}, to the end: {late}"
    slack = f"{duration(progress.slack_s)} of slack left"
    if stance is PurchaseStance.FIRM:
        return f"{since}, to the end: {slack}, too little to recover from a spot interruption"
    return f"{since}: {slack}, and spot is short"
