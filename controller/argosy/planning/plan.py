"""The reply of PlanRun: the forecast of a run that has not been submitted, and changes that would improve it."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from typing import Any

from argosy.catalogue.lookup import is_listed
from argosy.market.daemons import daemons_of
from argosy.market.limits import BatchLimits, OrderLimits
from argosy.market.offers import assumed_rates, offers_of, rejected
from argosy.market.order import Backlog, buy
from argosy.model.instances import Purchase
from argosy.model.policy import Policy
from argosy.model.pools import Offer
from argosy.model.purchases import PurchaseMode
from argosy.model.state import State
from argosy.model.wording import dollars
from argosy.planning.forecast import PULL_BYTES_PER_S, Forecast, at_risk_s
from argosy.planning.question import PlanQuestion
from argosy.planning.relaxations import relaxations
from argosy.scheduler.buying.reasons import market_answer
from argosy.scheduler.buying.trial_instances import unproven
from argosy.scheduler.placing.spare_room import spare_batches
from argosy.scheduler.turns.asks import batch_of, shunned_by


def plan_run(question: PlanQuestion) -> dict[str, Any]:
    """The reply of PlanRun. Money in US dollars, unrounded; null means that nothing can be bought."""
    moment, first = question.moment, question.moment.policy.first_order
    policy = replace(_measured(moment.policy, moment.state), first_order=0)  # it would hide what the rest buys
    question = replace(question, moment=replace(moment, policy=policy))
    found = question.forecast(question.terms)
    is_short = not found.possible
    if is_short:
        found = question.forecast(question.terms, offers_at=math.inf)
    headroom_usd = _headroom_usd_per_hour(question)
    return {
        "name": question.terms.name,
        "tasks": found.tasks,
        "possible": found.possible,
        "placesHere": found.here,
        "places": found.places,
        "instances": [
            {
                "pool": each.offer.pool,
                "cell": each.offer.cell,
                "zone": each.offer.zone,
                "instanceType": each.offer.instance_type,
                "purchase": each.offer.purchase.value,
                "count": each.instances,
                "tasksAtATime": each.places,
                "priceUsdPerHour": each.offer.price_usd_per_hour,
            }
            for each in found.bought
        ],
        "costUsd": _range(found, "cost_usd"),
        "seconds": _range(found, "seconds"),
        "instanceHours": _finite(found.expected.instance_hours),
        "taskSeconds": {
            "low": question.seconds.low,
            "expected": question.seconds.expected,
            "high": question.seconds.high,
        },
        "onDemand": _on_demand(question),
        "headroomUsdPerHour": headroom_usd,
        "image": _image(question),
        "startUp": _start_up(question, found),
        "rejected": _rejected_pools(question),
        "relaxations": relaxations(question, found),
        "assumptions": [
            *_assumptions(question, found),
            *_of_first_order(question, found, first),
            *_of_headroom(headroom_usd),
        ],
        "warnings": _warnings(question, found, is_short),
    }


def _measured(policy: Policy, state: State) -> Policy:
    """The policy with the boot seconds that known instances took on average."""
    known = [i.registered_at - i.launched_at for i in state.instances.values() if i.registered_at > i.launched_at > 0]
    return replace(policy, boot_s=sum(known) / len(known)) if known else policy


def _range(found: Forecast, name: str) -> dict[str, float | None]:
    return {each: _finite(getattr(getattr(found, each), name)) for each in ("low", "expected", "high")}


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _image(question: PlanQuestion) -> dict[str, float] | None:
    """The size of the run's image, and how long a new instance pulls it; None if ECR does not tell."""
    size = question.image_bytes
    return {"bytes": size, "pullSeconds": question.pull_s} if size else None


def _start_up(question: PlanQuestion, found: Forecast) -> dict[str, float | None]:
    """Seconds from the launch of a new instance to a task that runs there, in their parts, and the cost of boots and
    pulls on all instances to buy. pullSeconds: None = not known, and not counted."""
    policy, pull_s = question.moment.policy, question.pull_s or None
    usd_per_hour = sum(each.instances * each.offer.price_usd_per_hour for each in found.bought)
    return {
        "bootSeconds": policy.boot_s,
        "pullSeconds": pull_s,
        "startSeconds": policy.start_s,
        "usd": usd_per_hour * (policy.boot_s + (pull_s or 0.0)) / 3600,
    }


def _on_demand(question: PlanQuestion) -> dict[str, Any] | None:
    """The same run bought on demand in the home Region alone; None if that cannot run it."""
    state = question.moment.state
    terms = replace(question.terms, purchase=PurchaseMode.ON_DEMAND, cells=(question.home,))
    daemons = {run_id: run for run_id, run in state.runs.items() if run.is_daemon}
    empty = replace(question.moment, state=replace(state, runs=daemons, instances={}))
    found = replace(question, moment=empty).forecast(terms)
    if not found.possible:
        return None
    return {
        "region": question.home,
        "costUsd": found.expected.cost_usd,
        "seconds": found.expected.seconds,
        "instanceTypes": sorted({each.offer.instance_type for each in found.bought}),
    }


def _headroom_usd_per_hour(question: PlanQuestion) -> float | None:
    """The price of instances for all the room that the settings keep for further tasks while the run is open, if none
    of it were beside tasks; None = they keep none, or it cannot be bought."""
    moment, _ = question.on_copy(question.terms)
    if not (wanted := spare_batches(moment)):
        return None
    policy = moment.policy
    offers = offers_of(moment.state.pools.values(), moment.catalogue, math.inf, policy)
    limits = BatchLimits(policy.max_instances)
    order = buy([Backlog(each, limits) for each in wanted], offers, OrderLimits(policy.max_instances))
    prices = {(each.pool, each.purchase): each.price_usd_per_hour for each in offers}
    return None if order.uncovered else sum(prices[name] * count for name, count in order.instances.items())


def _of_first_order(question: PlanQuestion, found: Forecast, most: int) -> list[str]:
    """That not all of it is ordered at once, where no instance has ever joined. most: as Policy.first_order."""
    moment, _ = question.on_copy(question.terms)
    new = unproven(replace(moment, policy=replace(moment.policy, first_order=most)))
    count = sum(each.instances for each in found.bought if each.offer.pool in new)
    wait_s = moment.policy.boot_s
    said = (
        f"no instance has joined yet, so {most} are ordered first, the rest when one has: {wait_s:,.0f} s, not counted"
    )
    return [said] if count > most else []


def _of_headroom(usd: float | None) -> list[str]:
    said = (
        f"the room kept for further tasks (headroom) is not counted: up to {dollars(usd)} an hour while runs are open"
    )
    return [] if usd is None else [said]


def _assumptions(question: PlanQuestion, found: Forecast) -> list[str]:
    pools, policy = question.moment.state.pools, question.moment.policy
    spot = {each.offer.pool for each in found.bought if each.offer.purchase is Purchase.SPOT}
    unseen = sum(pool not in pools or not pools[pool].spot_usd_per_hour for pool in spot)
    said = [
        f"seconds of a task: {question.seconds.source}",
        "an instance-hour includes its disk and its public address; logs and traffic are not counted"
        if policy.public_addresses
        else "an instance-hour includes its disk; logs, gateways, endpoints and traffic are not counted",
        f"an instance takes {policy.boot_s:,.0f} s to join and a task {policy.start_s:,.0f} s to start",
        "low: quick tasks and boots, low prices, no interruption; high: slow tasks and boots, high prices, twice the "
        "usual interruptions and three spot instances reclaimed at the very end; about nine in ten runs are between",
    ]
    if (image := _image(question)) is not None:
        size, seconds = image["bytes"] / 2**20, image["pullSeconds"]
        source = f"{PULL_BYTES_PER_S >> 20} MiB/s" if question.pulled_s is None else "as earlier runs did"
        said.append(f"a new instance pulls the image of {size:,.0f} MiB in {seconds:,.0f} s ({source})")
    if spot and found.possible:
        said.append(_of_an_interruption(question, found))
    if found.here:
        said.append(f"{found.here:,} places on current instances stay free for it")
    if any(each.offer.purchase.is_reserved for each in found.bought):
        said.append("a Capacity Reservation is paid whether it is used or not: the run pays for disk and address there")
    unknown = sorted({each.offer.cell for each in found.bought if not is_listed(each.offer.cell)})
    if unknown:
        said.append(f"the price of disks in {', '.join(unknown)} is unknown: a high one is assumed")
    if unlisted := assumed_rates((each.offer for each in found.bought), pools, question.moment.now, policy):
        said.append(unlisted)
    if unseen:
        said.append(f"{unseen} of the pools to buy from have no spot price yet: typical prices are used")
    return said


def _of_an_interruption(question: PlanQuestion, found: Forecast) -> str:
    """What an interruption of a task costs on average: half of the work that it may repeat."""
    task_s, every_s = question.seconds.expected, question.terms.checkpoint_s
    usd_a_second = found.expected.cost_usd / max(1.0, question.task_count * task_s)

    def lost(seconds: float) -> str:
        return f"{seconds / 2:,.3g} s of a task (${seconds / 2 * usd_a_second:.5f})"

    said = f"an interruption repeats about {lost(at_risk_s(question.terms, task_s))}"
    if not every_s:
        return f"{said}; with checkpoint.everySeconds, half of that interval"
    return f"{said}; without checkpoint.everySeconds it would be {lost(task_s)}" if every_s < task_s else said


def _warnings(question: PlanQuestion, found: Forecast, is_short: bool) -> list[str]:
    """The warnings of a submission, and the effects of shortages and of the run's own limits."""
    if not found.possible:
        return ["nothing in this deployment could run its tasks: see the rejected pools", *question.warnings]
    said = list(question.warnings)
    if is_short:
        said.append("every pool that could run it is short of capacity: the forecast starts when one has some")
    now, (_, run) = question.moment.now, question.on_copy(question.terms)
    budget = run.terms.budget_usd
    if budget is not None and found.high.cost_usd > budget:
        sure = "will" if found.low.cost_usd > budget else "may"
        said.append(f"the run {sure} reach its budget of {dollars(budget)} before its end")
    if run.deadline_at and now + found.high.seconds > run.deadline_at:
        sure = "will" if now + found.low.seconds > run.deadline_at else "may"
        said.append(f"the run {sure} miss its deadline")
    return said


def _rejected_pools(question: PlanQuestion) -> list[dict[str, Any]]:
    """`reason`, `pools` (how many) and `instanceTypes` of every reason for which pools are not bought from: they make
    no offer, or their instances would not take a task even when empty. The reason with most instance types first."""
    moment, run = question.on_copy(question.terms)
    pools, catalogue, now, policy = moment.state.pools.values(), moment.catalogue, moment.now, moment.policy
    batch = batch_of(moment, run, math.inf, shunned_by(moment.state))
    found: defaultdict[str, set[str]] = defaultdict(set)
    kind = Purchase.ON_DEMAND if run.terms.purchase is PurchaseMode.ON_DEMAND else Purchase.SPOT
    for pool, reason in rejected(pools, catalogue, now, policy, kind):
        found[reason].add(pool)
    of_type: dict[tuple[object, ...], list[Offer]] = defaultdict(list)
    for offer in offers_of(pools, catalogue, now, policy, daemons=daemons_of(moment.state)):
        if run.terms.purchase.allows(offer.purchase):
            of_type[offer.attributes].append(offer)
    taken: set[str] = set()
    refused: dict[str, str] = {}
    for alike in of_type.values():
        answer = market_answer(batch, alike[:1])
        for offer in alike:
            if answer.fits:
                taken.add(offer.pool)
            else:
                refused.setdefault(offer.pool, "; ".join(reason.detail for reason in answer.reasons))
    for pool, reason in refused.items():
        if pool not in taken:
            found[reason].add(pool)
    rows = [
        {"reason": reason, "pools": len(pools), "instanceTypes": sorted({pool.split("/")[1] for pool in pools})}
        for reason, pools in found.items()
    ]
    return sorted(rows, key=lambda row: (-len(row["instanceTypes"]), str(row["reason"])))
