"""Why does a run wait? Whether its next task fits on the cluster or on instances that could be bought, and why not.

It reads the same batches, rows and offers as the scheduler, so that the answer is the real reason and not a guess.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from argosy.api.cluster.gpu_devices import shared_devices
from argosy.api.cluster.headroom import headroom_view
from argosy.api.waiting.line_position import line_position, not_in_line, position_view, why_not_in_line
from argosy.market.cover import tasks_per_instance
from argosy.market.daemons import daemons_of
from argosy.market.fallback import purchases
from argosy.market.offers import assumed_rates, offers_of, rate_source
from argosy.market.progress import progress_of
from argosy.model.instances import Purchase
from argosy.model.moment import Moment
from argosy.model.pools import Offer, as_registered
from argosy.model.run_record import RunRecord
from argosy.model.runs import CANCELLING, Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.model.wording import time_of_day
from argosy.placement.demand import Batch
from argosy.placement.explain import Explanation, explain
from argosy.scheduler.buying.budget import is_about_money
from argosy.scheduler.buying.orders import MarketView
from argosy.scheduler.buying.reasons import HELD_BY, market_answer, why_nothing_is_bought
from argosy.scheduler.buying.refusals import is_refused
from argosy.scheduler.placing.places import assign
from argosy.scheduler.supply.roster import Roster
from argosy.scheduler.turns.asks import base_of, batch_of, lacking, on_demand, shunned_by, tasks_of_base
from argosy.scheduler.turns.caps import is_at_cap

SHARED_SHOWN = 10  # instances with GPUs that tasks share


@dataclass(frozen=True, slots=True)
class _Answers:
    """Where a run's next task could go."""

    here: Explanation  # by the instances that are active
    soon: Explanation  # by those on their way
    market: Explanation  # by an empty instance of every offer
    batch: Batch  # that task
    refused: str  # what AWS refuses that it waits for; "" = nothing
    buying: str  # why nothing is bought for it, in a sentence

    @property
    def never(self) -> bool:
        """Whether nothing of this deployment could take it, even when empty."""
        return self.here.never and self.soon.never and self.market.never


def explain_run(moment: Moment, run: Run, index: int | None = None, switched_off: str | None = None) -> dict[str, Any]:
    """The reply of ExplainRun. index: a task whose own state is included. switched_off: why the deployment
    launches nothing, if so. `standing`: the place in line of a run that waits for its turn.

    verdict: "done" (nothing waits), "off" (the kill switch), "placed" (it fits now and starts with the next tick),
    "waiting" (for instances that are full or on their way), "capped" (by maxConcurrentTasks or its money), "behind"
    (earlier runs take the room), "never" (nothing in this deployment could take it, even when empty).
    """
    moment = replace(moment, catalogue=as_registered(moment.catalogue, moment.state.pools.values()))
    answers, last_order = _answers(moment, run), moment.state.last_order
    pending = int(run.tasks.counts()[TaskStatus.PENDING])
    verdict = "off" if pending and switched_off is not None else _verdict(moment, run, answers)
    sentence = _sentence(verdict, run, answers)
    if verdict == "off":
        sentence = f"launching is switched off for the whole deployment: {switched_off}"
    return {
        "runId": run.id,
        "status": CANCELLING if run.cancelled and not run.done else run.status.value,
        "pending": pending,
        "verdict": verdict,
        "sentence": sentence,
        "cluster": answers.here.to_json(),
        "coming": answers.soon.to_json(),
        "market": answers.market.to_json(),
        "purchase": purchase_now(run, moment),
        "nextPrice": _next_price(moment, run) if pending else None,
        "assumedRates": _assumed_rates(moment, run) if pending else None,
        "lastOrder": last_order.to_json() if last_order.at else None,
        "standing": _standing(moment, run, answers, verdict),
        "task": None if index is None else _task(run, index, moment.now),
        "consoles": _consoles(moment) if pending else [],
        "impaired": _impaired(moment, run),
        "sharedGpus": _shared_gpus(moment.state) if pending and run.needs.gpu_share_mib else [],
        "headroom": headroom_view(moment),
    }


def next_pool(moment: Moment, run: Run) -> dict[str, Any] | None:
    """Where an instance for one more of its tasks would be bought now, at prices that include what is known of
    interruptions; None = nowhere."""
    offer = _next_offer(moment, run)
    if offer is None:
        return None
    return {"instanceType": offer.instance_type, "availabilityZone": offer.zone, "purchase": offer.purchase.value}


def _next_offer(moment: Moment, run: Run) -> Offer | None:
    moment = replace(moment, catalogue=as_registered(moment.catalogue, moment.state.pools.values()))
    batch = replace(batch_of(moment, run, math.inf, shunned_by(moment.state), purchases(run, moment)), count=1)
    offers = MarketView(moment, {}).offers
    able = [pair for pair in zip(offers, tasks_per_instance(batch, offers).tolist(), strict=True) if pair[1]]
    if not able:
        return None
    return min(able, key=lambda pair: pair[0].effective / pair[1])[0]


def _next_price(moment: Moment, run: Run) -> dict[str, Any] | None:
    """What the next spot instance for one of its tasks costs, what Argosy counts it at, and what moved that price."""
    offer = _next_offer(moment, run)
    if offer is None or offer.purchase is not Purchase.SPOT:
        return None
    return {
        "instanceType": offer.instance_type,
        "availabilityZone": offer.zone,
        "usdPerHour": offer.price_usd_per_hour,
        "countedUsdPerHour": offer.effective,
        "interruptionsPerHour": offer.interruption_rate,
        "interruptionsFrom": rate_source(moment.state.pools[offer.pool], moment.now, moment.policy),
    }


def _assumed_rates(moment: Moment, run: Run) -> str | None:
    """About the types that could run it and of which no interruptions are known."""
    batch = replace(batch_of(moment, run, math.inf, {}), count=1)
    able = [each for each in _offers(moment, run) if market_answer(batch, [each]).fits]
    return assumed_rates(able, moment.state.pools, moment.now, moment.policy) or None


def _consoles(moment: Moment) -> list[dict[str, Any]]:
    """What the last instances that never joined the cluster wrote to their consoles, the newest first."""
    told = [each for each in moment.state.instances.values() if each.console]
    told.sort(key=lambda each: -each.launched_at)
    return [{"instanceId": each.id, "instanceType": each.instance_type, "console": each.console} for each in told[:2]]


def _impaired(moment: Moment, run: Run) -> list[dict[str, Any]]:
    """The live instances with attempts of the run that AWS calls impaired, or whose agents are not connected."""
    table, found = moment.state.attempts, list[dict[str, Any]]()
    for name in sorted(run.instances):
        each = moment.state.instances.get(name)
        since = (each.impaired_since or each.disconnected_at) if each is not None and each.alive else 0.0
        if each is None or not since:
            continue
        because = each.cordon if each.impaired else f"its agent is not connected since {time_of_day(since)}"
        tasks = int((table["run"][table.on_instance(name)] == run.number).sum())
        told = {"instanceId": name, "instanceType": each.instance_type, "because": because, "tasks": tasks}
        found.append({**told, "until": since + moment.policy.agent_patience_s})
    return found


def _shared_gpus(state: State) -> list[dict[str, Any]]:
    """The GPUs of instances on which tasks share one, for as many instances as a person reads."""
    found = shared_devices(state, state.needs_by_number())
    kinds = {name: state.instances[name].instance_type for name in found}
    told = [{"instanceId": name, "instanceType": kinds[name], "gpuDevices": found[name]} for name in sorted(found)]
    return told[:SHARED_SHOWN]


def _standing(moment: Moment, run: Run, answers: _Answers, verdict: str) -> dict[str, Any] | None:
    """Its place in line; None if no run waits for a turn."""
    if verdict not in ("waiting", "behind"):
        return None
    if why := why_not_in_line(run, moment):
        return not_in_line(why)
    return position_view(line_position(moment, run, answers.batch))


def _answers(moment: Moment, run: Run) -> _Answers:
    state = moment.state
    batch = replace(batch_of(moment, run, math.inf, shunned_by(state)), count=1)
    if _is_of_the_base(run, moment):
        batch = on_demand(batch)
    lineup = Roster().at(moment)
    # The scheduler has recorded the limit, and what AWS refuses.
    limit = run.waiting.removeprefix(HELD_BY) if run.waiting.startswith(HELD_BY) or is_at_cap(run.waiting) else ""
    return _Answers(
        here=explain(batch, lineup.here),
        soon=explain(batch, lineup.coming),
        market=market_answer(batch, _offers(moment, run)),
        batch=batch,
        refused=run.waiting if is_refused(state, run) else "",
        buying=why_nothing_is_bought(moment, batch, limit),
    )


def purchase_now(run: Run, moment: Moment) -> dict[str, Any] | None:
    """The purchase option of a run that may change between spot and on-demand, its reason, and the deadline's slack."""
    base = base_of(run, moment)
    if not (run.terms.purchase.mixes or base) and run.deadline_at is None:
        return None
    progress = progress_of(run, moment)
    return {
        "now": " or ".join(sorted(purchases(run, moment))),
        "reason": run.steering.reason or (_of_base(run, moment, base) if base else None),
        "slackSeconds": None if progress is None else round(progress.slack_s),
        "leftSeconds": None if progress is None else round(progress.left_s),
        "late": run.steering.late,
    }


def _of_base(run: Run, moment: Moment, base: int) -> str:
    there = base - lacking(run, moment, base)
    return f"capacity.onDemandBase: {there} of {base} tasks have a place on on-demand instances"


def _is_of_the_base(run: Run, moment: Moment) -> bool:
    """Whether all waiting tasks are requested on on-demand instances."""
    apart = tasks_of_base(run, moment, math.inf)
    return apart is not None and int(apart.sum()) == int(run.tasks.counts()[TaskStatus.PENDING])


def _offers(moment: Moment, run: Run) -> list[Offer]:
    """All that the run may buy, including offers that are cooling off."""
    everything = offers_of(
        moment.state.pools.values(), moment.catalogue, math.inf, moment.policy.without_price_caps(),
        daemons=daemons_of(moment.state),
    )  # fmt: skip
    either = run.terms.on_demand_base
    return [offer for offer in everything if either or run.terms.purchase.allows(offer.purchase)]


def not_open(record: RunRecord) -> dict[str, Any]:
    """The reply for a run that is not folded in yet, is suspended, or is closed."""
    closed = record.has_ended
    return {
        "runId": record.id,
        "status": record.shown_status,
        "pending": 0 if closed else record.task_count,
        "verdict": "done" if closed else "waiting",
        "sentence": "the run has ended" if closed else record.waiting or "the controller has not picked up the run yet",
        "cluster": None,
        "coming": None,
        "market": None,
        "purchase": None,
        "lastOrder": None,
        "standing": None,
        "task": None,
        "consoles": [],
        "impaired": [],
        "sharedGpus": [],
        "headroom": None,
    }


def _verdict(moment: Moment, run: Run, answers: _Answers) -> str:
    if not run.tasks.counts()[TaskStatus.PENDING]:
        return "done"
    if run.held:
        return "waiting"
    if answers.here.fits:
        return _held_back(moment, run, "placed")
    return "never" if answers.never else _held_back(moment, run, "waiting")


def _held_back(moment: Moment, run: Run, verdict: str) -> str:
    """ "capped" by the run's own limit; "behind" earlier runs, which take the room that its tasks would fit into."""
    state = moment.state
    if run.terms.max_concurrent is not None and len(state.attempts.here_of_run(run.number)) >= run.terms.max_concurrent:
        return "capped"
    if is_about_money(run.waiting) or is_at_cap(run.waiting):
        return "capped"
    if verdict == "placed" and run.ready and len(state.runs) > 1:
        launched = {launch.key.run_id for launch in assign(moment, Roster()).launches}
        return verdict if run.id in launched or not launched else "behind"
    return verdict


def _sentence(verdict: str, run: Run, answers: _Answers) -> str:
    if answers.refused:
        return answers.refused
    if verdict == "done":
        return run.waiting or "no task of this run is waiting for a place"
    if run.held or not run.task_definition:
        return run.waiting or "the run is being prepared"
    if verdict == "placed":
        return "there is room for its next task: it starts with the next tick, or when its back-off ends"
    if verdict == "never":
        return answers.buying
    if verdict == "capped":
        return _cap_in_words(run)
    if verdict == "behind":
        return "there is room for its next task, but tasks of runs ahead of it get it first"
    return "; ".join(_what_it_waits_for(run, answers))


def _what_it_waits_for(run: Run, answers: _Answers) -> list[str]:
    here, coming = answers.here, answers.soon.fits
    on_its_way = "1 instance that could take it is on its way"
    many = f"{coming} instances that could take it are on their way"
    sentences = [on_its_way if coming == 1 else many] if coming else [answers.buying]
    if coming and run.waiting.startswith(HELD_BY):
        sentences.append(f"more are {run.waiting}")
    if here.instances:
        instances = "instance that is" if here.instances == 1 else f"{here.instances} instances that are"
        sentences.append(f"the {instances} here: {here.reasons_in_words()}")
    return sentences


def _cap_in_words(run: Run) -> str:
    """For a limit on money or of its queue, the scheduler's sentence, because it states how much of the limit is
    used."""
    if is_about_money(run.waiting) or is_at_cap(run.waiting):
        return run.waiting
    return f"placement.maxConcurrentTasks is reached: {run.terms.max_concurrent} of its tasks are active"


def _task(run: Run, index: int, now: float) -> dict[str, Any]:
    table = run.tasks
    wait_s = float(table["not_before"][index]) - now
    return {
        "index": index,
        "status": TaskStatus(int(table["status"][index])).name,
        "attempts": int(table["attempts"][index]),
        "reason": run.reasons[int(table["reason"][index])] or None,
        "backOffSeconds": round(wait_s, 1) if wait_s > 0 else None,
    }
