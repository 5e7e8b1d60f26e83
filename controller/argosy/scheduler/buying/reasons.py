"""Reasons why a run's tasks wait, as the user reads them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from argosy.catalogue.lookup import image_of
from argosy.market.cover import hypothetical, tasks_per_instance
from argosy.market.daemons import daemons_of
from argosy.market.offers import lacking_until, offers_of, rejected
from argosy.model.instances import Purchase
from argosy.model.moment import Moment
from argosy.model.pools import Offer
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.model.wording import time_of_day
from argosy.placement.demand import Batch
from argosy.placement.explain import Explanation, explain
from argosy.placement.supply import Supply
from argosy.scheduler.buying.refusals import unlisted, why_refused
from argosy.scheduler.placing.places import group_is_running
from argosy.scheduler.turns.caps import is_at_cap

# What instances of an AMI may lack, and where to read more.
RUNNER = "the runner, which the user's program needs"
MPS = "NVIDIA's MPS, which shares GPUs"
_REMEDIES = {
    RUNNER: "docs/guides/operations.md, The runner",
    MPS: "`make roll` takes a newer AMI: docs/guides/operations.md, New AMIs",
}
BACKS_OFF = "waits before a retry after: "
HELD_BY = "held back by "
DEPLOYMENT = "maxInstances of the deployment"
HELD_BACK = f"{HELD_BY}a limit on instances: maxInstances of the run or of the deployment"


def why_all_back_off(run: Run, now: float) -> str:
    """The reason of the last end, when all remaining tasks wait to be tried again; otherwise empty."""
    tasks, counts = run.tasks, run.tasks.counts()
    if counts[TaskStatus.STARTING] + counts[TaskStatus.RUNNING] or not counts[TaskStatus.PENDING]:
        return ""
    pending = np.flatnonzero(tasks["status"] == TaskStatus.PENDING.value)
    last = pending[tasks["not_before"][pending].argmax()]
    reason = run.reasons[int(tasks["reason"][last])]
    return "" if not reason or (tasks["not_before"][pending] <= now).any() else f"{BACKS_OFF}{reason}"


def market_answer(batch: Batch, offers: Sequence[Offer]) -> Explanation:
    """The empty instances that could take one task of the batch, one per offer, and why the others could not."""
    rows = [hypothetical(offer, number) for number, offer in enumerate(offers)]
    return explain(replace(batch, count=1), Supply.of(rows))


def why_nothing_is_bought(moment: Moment, batch: Batch, limit: str = "") -> str:
    """The first of these that is true: AWS refuses its orders, no instance could ever hold it, a limit is reached, or
    all suitable pools are short or too expensive. limit: the one that held the order back, if known."""
    state = moment.state
    if state.setbacks and (sentence := why_refused(moment, batch, limited=limit not in ("", DEPLOYMENT))):
        return sentence
    everything = offers_of(
        state.pools.values(), moment.catalogue, math.inf, moment.policy.without_price_caps(), daemons=daemons_of(state)
    )
    if not everything:
        return _closed_cells(moment, batch) or _why_no_offers(moment)
    if sentence := _company(state, batch, everything):
        return sentence
    if not market_answer(batch, everything).fits:
        return _closed_cells(moment, batch) or market_answer(batch, everything).sentence()
    offers = offers_of(state.pools.values(), moment.catalogue, moment.now, moment.policy, daemons=daemons_of(state))
    if market_answer(batch, offers).fits:
        if is_at_cap(limit):
            return limit
        return f"{HELD_BY}{limit}" if limit else HELD_BACK
    fits = tasks_per_instance(replace(batch, count=1), everything).tolist()
    return _out_of_reach(moment, [offer for offer, tasks in zip(everything, fits, strict=True) if tasks])


def _why_no_offers(moment: Moment) -> str:
    """The first reason of the pools; they may exist without any offer."""
    pools = [pool for pool in moment.state.pools.values() if pool.fleet_id and not pool.closed]
    why = rejected(pools, moment.catalogue, math.inf, moment.policy.without_price_caps())
    if why:
        return f"nothing can be bought: {why[0][0]}: {why[0][1]}"
    return unlisted(moment) or "this deployment has no fleets yet"


def _out_of_reach(moment: Moment, able: Sequence[Offer]) -> str:
    """Why the suitable pools make no offer now: cool-offs, which end by themselves; price caps, which do not; or
    last instances that joined without what the run needs."""
    state, now = moment.state, moment.now
    without_runner = lacking_until(state.pools.values(), now, moment.policy, "without_runner_at")
    without_sharing = lacking_until(state.pools.values(), now, moment.policy, "without_sharing_at")
    short: list[tuple[float, str]] = []
    broken: list[tuple[float, str]] = []
    expensive: list[str] = []
    bare: list[tuple[float, str]] = []
    for purchase in Purchase:
        pools = [state.pools[offer.pool] for offer in able if offer.purchase is purchase]
        refused = dict(rejected(pools, moment.catalogue, now, moment.policy, purchase))
        for pool in pools:
            until = pool.short_until if purchase is Purchase.SPOT else pool.on_demand_short_until
            if until > now:
                why = f"{pool.instance_type} in {pool.zone}: {pool.short_reason}"
                (broken if pool.needs_mending else short).append((until, why))
            elif pool.key in refused:
                expensive.append(f"{pool.instance_type} in {pool.zone} ({purchase}): {refused[pool.key]}")
            else:
                ami = pool.cell, image_of(pool.instance_type)
                is_unshared = ami in without_sharing and ami not in without_runner
                bare.append((without_sharing[ami], MPS) if is_unshared else (without_runner.get(ami, now), RUNNER))
    return _in_one_sentence(short, broken, expensive, bare, moment.policy.gpus_unshared)


def _in_one_sentence(
    short: list[tuple[float, str]],
    broken: list[tuple[float, str]],
    expensive: list[str],
    bare: list[tuple[float, str]],
    unshared: str,
) -> str:
    """short: offers that cool off for lack of capacity, until when and why. broken: those that only an operator can
    restore. `expensive`: those above a price cap, and by how much. bare: for offers whose last instances joined without
    something, what was missing and when they are tried again. unshared: why this machine's GPUs are not shared, if
    so."""
    also = f"; {len(expensive)} offers are above the price caps" if expensive else ""
    if bare and not broken and not short:
        again_at, what = min(bare)
        if what == MPS and unshared:
            return f"tasks cannot share the GPUs of this machine: {unshared}; tried again at {time_of_day(again_at)}"
        sentence = f"instances joined without {what}, so no more are bought for it; tried again at"
        return f"{sentence} {time_of_day(again_at)} ({_REMEDIES[what]}){also}"
    also += f"; {len(bare)} offers are for instances that join without {min(bare)[1].partition(',')[0]}" if bare else ""
    if broken:
        until, why = min(broken)
        first = f"no pool that could hold it can launch until this is fixed: {why}; tried again at {time_of_day(until)}"
        if not short:
            return first + also
        also = f"; {len(broken)} offers return only when this is fixed ({why}){also}"
    if short:
        until, why = min(short)
        return f"the pools that could hold it are short of capacity; tried again at {time_of_day(until)} ({why}){also}"
    return (
        f"the price caps of this deployment leave nothing that could hold it, e.g. {expensive[0]}" if expensive else ""
    )


def _closed_cells(moment: Moment, batch: Batch) -> str:
    """Which closed cells could hold it if they were open, and why they are closed; "" if none could."""
    reasons = {pool.cell: pool.closed for pool in moment.state.pools.values() if pool.closed}
    opened = [replace(pool, closed="") for pool in moment.state.pools.values() if pool.closed]
    offers = offers_of(opened, moment.catalogue, math.inf, daemons=daemons_of(moment.state))
    fits = tasks_per_instance(replace(batch, count=1), offers).tolist()
    able = sorted({offer.cell for offer, tasks in zip(offers, fits, strict=True) if tasks})
    told = "; ".join(f"{cell} ({reasons[cell]})" for cell in able)
    return f"only closed cells could hold it: {told}" if able else ""


def _company(state: State, batch: Batch, everything: Sequence[Offer]) -> str:
    """Why affinity rules out a purchase for the batch: only instances that run the right tasks satisfy it, and a new
    instance runs none. "" if affinity is not the reason."""
    groups = [group for group in batch.affinity if group != batch.group]
    if not batch.affinity or not market_answer(replace(batch, affinity=()), everything).fits:
        return ""
    if groups:
        return f"runs only next to tasks of {' and '.join(groups)} (affinity): no instance that runs them has room now"
    if batch.group in batch.affinity and group_is_running(state, batch.group):
        return f"runs only on the instance of its group {batch.group} (affinity), which has no room now"
    return ""
