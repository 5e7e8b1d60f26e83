"""Which limit is smaller than what one task needs?

The problem: within a limit no run overtakes another (`sharing`), so a run that could never start would wait forever and
keep every later run of its limit waiting too.

The idea: compare a task with the limits as they are when nothing is used. A task needs its vCPUs and GPUs of the cap of
its queue. Of the limits on money, instances and vCPU quotas it needs the least that any one instance takes that could
hold it, because instances are bought whole. A run above a limit buys nothing, so it holds no run back; it ends after
`Policy.unaffordable_patience_s` without work. The api refuses it at submission by the same rule.

Example: the cap of queue c is 0.05 USD an hour, and the cheapest instance that could hold a task costs 0.08. The queue
can never buy that instance: "a task needs an instance of $0.08 an hour, the cap of queue c is $0.05".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from argosy.market.cover import alike, tasks_per_instance
from argosy.market.daemons import daemons_of
from argosy.market.limits import ROUNDING, quota_name, quota_of, vcpus_of
from argosy.market.offers import offers_of
from argosy.model.actions import HaltRun
from argosy.model.instances import Purchase
from argosy.model.moment import Moment
from argosy.model.pools import Offer
from argosy.model.resources import CPU_UNITS_PER_VCPU, NOTHING, said_vcpus
from argosy.model.runs import Run
from argosy.model.sharers import queue_of_run
from argosy.model.shares.sharing import Sharing
from argosy.model.wording import dollars
from argosy.placement.demand import Batch
from argosy.scheduler.buying.reasons import market_answer
from argosy.scheduler.placing.gang_places import CAPPED
from argosy.scheduler.placing.run_places import RunPlaces
from argosy.scheduler.turns.asks import batch_of
from argosy.scheduler.turns.caps import NEEDS_MORE, quotas_of

LESS_KEPT = "{} less the guarantees that are not lent"


@dataclass(frozen=True)
class WholeLimits:
    """Of one moment. Equal tasks share one look at the offers."""

    moment: Moment
    _known: dict[Batch, list[Offer]] = field(default_factory=dict)

    def exceeded(self, run: Run) -> str:
        """The limit that one of its tasks exceeds, with both numbers; "" = none, or its needs are not known yet."""
        if run.is_daemon or run.needs == NOTHING:
            return ""
        if run.terms.gang is not None and self._sharing.limits_queues:
            return CAPPED
        cap = self._sharing.queues()[queue := self._queue(run)].cap
        if run.needs.cpu_units > cap.vcpus * CPU_UNITS_PER_VCPU:
            return NEEDS_MORE.format(said_vcpus(run.needs.cpu_units), f"the cap of queue {queue}", f"{cap.vcpus:g}")
        if run.needs.gpus > cap.gpus:
            return NEEDS_MORE.format(
                f"{run.needs.gpus} GPU{'s' if run.needs.gpus > 1 else ''}", f"the cap of queue {queue}", f"{cap.gpus:g}"
            )
        batch = self._batch(run)
        if batch not in self._known:
            fits = tasks_per_instance(batch, self._offers).tolist()
            self._known[batch] = [offer for offer, tasks in zip(self._offers, fits, strict=True) if tasks]
        offers = self._known[batch]
        return self._of_purchases(queue, offers, run.gang_size) if offers else self._of_size(run, batch)

    @property
    def _sharing(self) -> Sharing:
        return self.moment.state.sharing

    def _queue(self, run: Run) -> str:
        return queue_of_run(run, self._sharing.queues())

    @cached_property
    def _offers(self) -> list[Offer]:
        """All, even while they cool off."""
        state, catalogue, policy = self.moment.state, self.moment.catalogue, self.moment.policy
        return offers_of(state.pools.values(), catalogue, math.inf, policy, daemons=daemons_of(state))

    def _batch(self, run: Run) -> Batch:
        """One task, on any purchase option that the run allows."""
        terms = run.terms
        allowed = frozenset(each for each in Purchase if terms.on_demand_base or terms.purchase.allows(each))
        return alike(batch_of(self.moment, run, math.inf, {}, allowed))

    def _of_purchases(self, queue: str, offers: list[Offer], size: int) -> str:
        """The limit that every instance large enough for a task exceeds, or those of a gang of that size."""
        quotas = quotas_of(self.moment.policy)
        within = [each for each in offers if size * vcpus_of(each) <= quotas.get(quota_of(each), math.inf)]
        if not within:
            least = min(offers, key=vcpus_of)
            need, key = f"an instance of {vcpus_of(least)} vCPUs", quota_of(least)
            need = need if size == 1 else f"{size} instances of {vcpus_of(least)} vCPUs"
            return NEEDS_MORE.format(need, quota_name(key, {}), f"{quotas[key]}")
        usd = min(each.price_usd_per_hour for each in within)
        for name, instances, dollars_an_hour in self._of_queue(queue):
            if instances < size:
                need = "one whole instance" if size == 1 else f"{size} whole instances"
                return NEEDS_MORE.format(need, name, f"{instances:g} instances")
            if dollars_an_hour * (1 + ROUNDING) < size * usd:
                need = f"an instance of {dollars(usd)} an hour" if size == 1 else f"{dollars(size * usd)} an hour"
                return NEEDS_MORE.format(need, name, dollars(dollars_an_hour))
        return ""

    def _of_queue(self, queue: str) -> Iterator[tuple[str, float, float]]:
        """Name, instances and USD an hour of each limit of its purchases when nothing is used."""
        queues, most = self._sharing.queues(), float(self.moment.policy.max_instances)
        yield f"the cap of queue {queue}", queues[queue].cap.instances, queues[queue].cap.usd_per_hour
        kept = [each.guarantee for name, each in queues.items() if name != queue and not each.lend and each.guarantee]
        instances, usd = (
            sum(each.amount for each in kept if each.unit == unit) for unit in ("instances", "usdPerHour")
        )
        yield LESS_KEPT.format("maxInstances") if instances else "maxInstances", most - instances, math.inf
        yield (
            LESS_KEPT.format("limits.usdPerHour") if usd else "limits.usdPerHour",
            math.inf,
            self._sharing.usd_per_hour - usd,
        )

    def _of_size(self, run: Run, batch: Batch) -> str:
        """Why no instance type is large enough, or has room for a task beside daemons, if that is why there is no
        offer."""
        pools, instances = self.moment.state.pools.values(), self.moment.state.instances.values()
        kinds = [self.moment.catalogue.get(pool.instance_type) for pool in pools if pool.closed or not pool.fleet_id]
        sizes = [each.resources for each in self._offers if each.most_tasks != 0]
        sizes += [each.resources for each in kinds if each is not None]
        if not self._offers or any(map(run.needs.fits_in, [*sizes, *(each.size for each in instances if each.alive)])):
            return ""
        return market_answer(batch, self._offers).sentence()


NEVER_FITS = "{below}. It has waited {minutes:.0f} minutes for that to change"


class OversizedRun(NamedTuple):
    """A run whose tasks exceed a whole limit."""

    run_id: str
    sentence: str  # "" = it ends
    is_idle: bool  # whether it has no work, so that its patience counts
    end: HaltRun | None


def out_of_reach(moment: Moment, runs: Iterable[RunPlaces]) -> list[OversizedRun]:
    """Of runs that nothing is bought for, those that never fit a limit. A service continues to wait, because it has no
    end."""
    limits, found = WholeLimits(moment), []
    for its in runs:
        if sentence := limits.exceeded(its.run):
            is_idle = not (its.coming or len(moment.state.attempts.of_run(its.run.number)) or its.run.terms.service)
            end = out_of_patience(moment, its.run, NEVER_FITS, sentence) if is_idle else None
            found.append(OversizedRun(its.run.id, "" if end else sentence, is_idle, end))
    return found


def out_of_patience(moment: Moment, run: Run, told: str, below: str) -> HaltRun | None:
    """The end of a run that has waited too long for a price or a limit to change: otherwise the controller would never
    rest. told: its reason, with places for `below` and the minutes."""
    waited_s = moment.now - (run.unaffordable_since or moment.now)
    if waited_s < moment.policy.unaffordable_patience_s:
        return None
    return HaltRun(run.id, told.format(below=below, minutes=waited_s / 60))
