"""Does AWS refuse what a batch waits for, and in which words?

A refusal is a set-back (`model/setbacks.py`): it holds from the first failure until the call succeeds. Example: EC2
refuses to raise the target of c5.xlarge in us-east-1a. The next tick orders in us-east-1b instead, which EC2 may refuse
as well: until it has accepted that order, the sentence is about the first refusal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import replace

from argosy.market.cover import tasks_per_instance
from argosy.market.daemons import daemons_of
from argosy.market.offers import offers_of
from argosy.model.instances import Purchase
from argosy.model.moment import Moment
from argosy.model.pools import Offer, Pool
from argosy.model.runs import Run
from argosy.model.setbacks import LASTING, Act, Setback, Subject
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.model.wording import time_of_day
from argosy.placement.demand import Batch

REFUSED = "AWS gives it no instance"


def offers_for(moment: Moment, batch: Batch, now: float) -> list[Offer]:
    """Offers that could take one task of it. now: infinity includes the pools that cool off."""
    state = moment.state
    offers = offers_of(state.pools.values(), moment.catalogue, now, moment.policy, daemons=daemons_of(state))
    fits = tasks_per_instance(replace(batch, count=1), offers).tolist()
    return [offer for offer, tasks in zip(offers, fits, strict=True) if tasks]


def why_refused(moment: Moment, batch: Batch, *, coming: bool = False, limited: bool = False) -> str:
    """The refusal that holds the batch back; "" if none does. coming: whether instances for it are on their way.
    limited: whether one of the run's own limits is reached. If either is true, or maxInstances is reached, a refusal
    counts only if AWS refuses every pool that has capacity."""
    state, now = moment.state, moment.now
    offers = offers_for(moment, batch, math.inf)
    pools = [state.pools[key] for key in sorted({offer.pool for offer in offers})]
    spot = {offer.pool for offer in offers if offer.purchase is Purchase.SPOT}
    coming_or_full = coming or moment.instances_left() <= 0
    refusals = [(p, _refusal_of(p, moment, spot, ordered=coming_or_full or p.cools_off(now))) for p in pools]
    others = any(not refusal and not pool.cools_off(now) for pool, refusal in refusals)
    if others and (coming or limited or moment.instances_left() <= 0):
        return ""
    told = [_sentence(pool, refusal, now) for pool, refusal in refusals if refusal]
    return told[0] if told else ""


def waits_for_answer(moment: Moment, run: Run, is_sent: bool) -> bool:
    """Whether its reason is a refused call that is repeated. is_sent: whether this tick sends tasks of it."""
    counts = run.tasks.counts()
    subjects = [Subject(Act.VERIFY, run.id)] if counts[TaskStatus.VERIFYING] else []
    if is_sent or counts[TaskStatus.STARTING]:
        subjects += [Subject(Act.LAUNCH, run.id), Subject(Act.SEND, run.id)]
    setbacks = moment.state.setbacks
    return any(subject in setbacks and setbacks[subject].holds(moment.now) for subject in subjects)


def _refusal_of(pool: Pool, moment: Moment, spot: Set[str], *, ordered: bool) -> Setback | None:
    """AWS's refusal to take the pool's order or, if one is `ordered`, to list its instances; None = no refusal. spot:
    pools in which the batch may use spot, so that it does not wait for an on-demand order."""
    setbacks = moment.state.setbacks
    subjects = [Subject(Act.TARGET, pool.key)] + [Subject(Act.ORDER, pool.key)] * (pool.key not in spot)
    if ordered or cannot_prove(moment.state, pool.cell, moment.now):
        subjects += [Subject(Act.LIST, f"{what} {pool.cell}") for what in ("hosts", "container instances")]
    found = [setbacks[subject] for subject in subjects if subject in setbacks]
    return next((setback for setback in found if setback.holds(moment.now)), None)


def cannot_prove(state: State, cell: str, now: float) -> bool:
    """Whether EC2 refuses, for good, to list a cell's instances. Only that listing proves an instance ours, so what is
    bought there could get no work and could not be ended."""
    setback = state.setbacks.get(Subject(Act.LIST, f"hosts {cell}"))
    return setback is not None and setback.refusals > 0 and setback.holds(now)


def _sentence(pool: Pool, refusal: Setback, now: float) -> str:
    until = " until this is fixed" if pool.needs_mending else ""
    again = f"; tried again at {time_of_day(refusal.not_before)}" if refusal.not_before > now else ""
    return f"{REFUSED}{until}: {pool.instance_type} in {pool.zone}: {refusal.reason}{again}"


def is_refused(state: State, run: Run) -> bool:
    """Whether the scheduler or a fact has recorded a refusal as its reason."""
    if not run.waiting:
        return False
    return run.waiting.startswith(REFUSED) or any(Subject(what, run.id) in state.setbacks for what in LASTING)


def unlisted(moment: Moment) -> str:
    """Why no fleet is known; "" if each cell was listed."""
    state = moment.state
    broken: Sequence[str] = [
        setback.reason
        for subject, setback in sorted(state.setbacks.items())
        if subject.what is Act.LIST and subject.id.startswith("fleets ") and setback.holds(moment.now)
    ]
    if broken:
        return f"{REFUSED}: {'; '.join(broken)}"
    return "" if state.observed_at or state.pools else "the fleets of this deployment are not listed yet"
