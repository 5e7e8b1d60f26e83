"""What may runs with caps still start and buy?

No launch may bring spent + reserved + wind-down cost over the budget. Reserved is what live attempts are still expected
to cost, plus the instances that boot for the run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from argosy.market.cover import MONEY, tasks_per_instance
from argosy.market.daemons import daemons_of
from argosy.market.fallback import purchases
from argosy.market.limits import ROUNDING
from argosy.market.offers import cost_of, offers_of
from argosy.market.order import Shortfall
from argosy.model.actions import CapRun, HaltRun, Launch
from argosy.model.costs import NO_RUN
from argosy.model.instances import Instance, InstanceStatus, Purchase
from argosy.model.moment import Moment
from argosy.model.money.ledger import usd_not_charged
from argosy.model.money.reserve import Holdings, Reserves, new_holding, to_be_displaced_usd, to_come_usd
from argosy.model.policy import Policy
from argosy.model.pools import Offer
from argosy.model.purchases import with_reserved
from argosy.model.resources import NOTHING, Resources
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.wording import dollars
from argosy.placement.demand import Batch
from argosy.scheduler.buying.orders import MarketView
from argosy.scheduler.buying.uncapped_runs import UncappedRuns
from argosy.scheduler.buying.whole_limits import out_of_patience
from argosy.scheduler.placing.places import Places
from argosy.scheduler.placing.run_places import RunPlaces
from argosy.scheduler.turns.asks import Bound

SHORT_OF_BUDGET = "held back by its budget of {cap}: the rest is reserved for what already runs or boots"
AT_HOURLY_CAP = "held back by capacity.maxHourlyCost of {cap}: what already runs or boots costs that much"
BELOW_HOURLY_CAP = (
    "capacity.maxHourlyCost of {cap} allows no instance that could take its tasks: the cheapest costs {least} an hour"
)
NEVER_AFFORDABLE = "{below}. It has waited {minutes:.0f} minutes for a lower price"
TOO_LITTLE_LEFT = (
    "the rest of its budget of {cap} ({left}) does not pay for another attempt: starting the cheapest instance and"
    " working there for {seconds:.0f} s, the expected time of an attempt, costs {least}"
)
_ABOUT_MONEY = tuple(each.partition("{")[0] for each in (SHORT_OF_BUDGET, AT_HOURLY_CAP, BELOW_HOURLY_CAP))


def is_about_money(sentence: str) -> bool:
    """Whether money is the reason why a run's tasks wait."""
    return sentence.startswith(_ABOUT_MONEY)


@dataclass(slots=True)
class RunBudget:
    """The money that one run with caps has now. Each commitment reduces it."""

    run: Run
    expected_s: float  # of one attempt
    spent_usd: float
    reserved_usd: float
    wind_down_usd: float  # what its instances cost from a stop until they are gone
    usd_per_hour: float  # whole instances, because their other users may leave at any time
    held: Holdings  # instances with live attempts of the run
    paid: set[str]  # ids of all instances that are in usd_per_hour

    @property
    def left_usd(self) -> float:
        """Money neither spent nor reserved; infinite without a budget."""
        budget = self.run.terms.budget_usd
        return math.inf if budget is None else budget - self.spent_usd - self.reserved_usd - self.wind_down_usd

    @property
    def left_per_hour(self) -> float:
        """USD an hour left under the hourly cap; infinite without a cap."""
        cap = self.run.terms.max_hourly_usd
        return math.inf if cap is None else cap - self.usd_per_hour

    @property
    def is_used_up(self) -> bool:
        """Whether the rest of the budget only covers the wind-down."""
        budget = self.run.terms.budget_usd
        return budget is not None and self.spent_usd + self.wind_down_usd >= budget

    def lacks(self, usd: float) -> bool:
        """Whether the rest does not cover this cost. An infinite cost means no current price, so the run waits."""
        return self.left_usd < usd < math.inf

    def copy(self) -> RunBudget:
        """A copy that can be charged without a change to this one."""
        return replace(self, held=self.held.copy(), paid={*self.paid})


def run_budgets(moment: Moment) -> dict[str, RunBudget]:
    """By run id, the budgets of open runs with caps that may still start something."""
    state, now = moment.state, moment.now
    capped = [run for run in state.runs.values() if run.terms.has_caps and not (run.done or run.halted)]
    if not capped:
        return {}
    needs = state.needs_by_number()
    pending = usd_not_charged(state, needs, now, frozenset(run.number for run in capped))
    reserves = Reserves(state, needs, now)
    return {run.id: _run_budget(moment, run, pending.get(run.number, 0.0), reserves) for run in capped}


def _run_budget(moment: Moment, run: Run, not_charged_usd: float, reserves: Reserves) -> RunBudget:
    policy = moment.policy
    expected_s = run.expected_seconds(policy.attempt_s)
    if not run.ended:  # an attempt that has already run for longer proves the expectation wrong
        expected_s = max(expected_s, reserves.longest_so_far(run.number))
    held, idle = reserves.held(run.number, expected_s), reserves.idle.get(run.number, ())
    idle_per_hour = sum(instance.price_usd_per_hour for instance in idle)
    to_come = sum(to_come_usd(instance, policy.boot_s, expected_s, moment.now) for instance in idle)
    whole_per_hour, own_per_hour, reserved_usd = held.sums()
    return RunBudget(
        run=run,
        expected_s=expected_s,
        spent_usd=run.cost_usd + not_charged_usd,
        reserved_usd=to_come + reserved_usd + to_be_displaced_usd(moment.state, run, moment.now),
        wind_down_usd=(idle_per_hour + own_per_hour) * policy.wind_down_s / 3600,
        usd_per_hour=idle_per_hour + whole_per_hour,
        held=held,
        paid={*held, *(instance.id for instance in idle)},
    )


def cheapest_offer(moment: Moment, batch: Batch) -> Offer | None:
    """The cheapest offer that could ever take a task of the batch, even if its pool is cooling off; None if there is
    none."""
    everything = offers_of(
        moment.state.pools.values(), moment.catalogue, math.inf, moment.policy, daemons=daemons_of(moment.state)
    )
    fits = tasks_per_instance(replace(batch, count=1), everything).tolist()
    return next((offer for offer, tasks in zip(everything, fits, strict=True) if tasks), None)


def paid_seconds(policy: Policy, attempt_s: float) -> float:
    """Seconds that an instance bought for one such attempt is paid for."""
    return policy.boot_s + attempt_s + policy.wind_down_s


def used_up(budgets: Mapping[str, RunBudget]) -> Iterator[CapRun]:
    """Runs whose budget is used up. budgets: by run id."""
    for budget in budgets.values():
        if budget.is_used_up and not budget.run.complete:
            yield CapRun(budget.run.id, f"its budget of {dollars(budget.run.terms.budget_usd)} is used up")


def idle_at_cost(state: State, wanted: Iterable[str]) -> Iterator[str]:
    """Ids of instances that do not linger: they run and await no task, and only runs with caps pay for them.

    While a run that was stopped at its cap is open, this includes instances that no run has used yet: they may come
    from its last order.
    """
    capped = {run.number for run in state.runs.values() if run.terms.has_caps and not run.done}
    if not capped:
        return
    late_arrivals = any(run.capped_at for run in state.runs.values())
    spared, busy = {*wanted}, state.working_instances()
    for instance in state.instances.values():
        if instance.alive and instance.id not in spared and instance.id.encode() not in busy:
            payers = {*instance.work} - state.daemons or {instance.bought_for} - {NO_RUN}
            if payers <= capped and (payers or late_arrivals):
                yield instance.id


ForSale = Collection[tuple[Resources, float]]
"""Resources, and USD an hour."""


def for_sale(state: State, offers: Sequence[Offer], buys: Collection[Purchase]) -> ForSale:
    """The current offers and the instances already here. buys: the allowed purchase options."""
    here = {(i.size, i.price_usd_per_hour) for i in state.instances.values() if i.purchase in buys and i.placeable}
    return here | {(offer.whole, offer.price_usd_per_hour) for offer in offers if offer.purchase in buys}


def most_tasks(moment: Moment, budget: RunBudget, sold: ForSale) -> int:
    """How many more tasks a run may request: those that fit on instances it pays for anyway, plus those that the rest
    of its money pays for at the lowest price here.

    Requesting more would take places and purchases from runs that can pay for them. The number is never too low; it is
    too high when the run's constraints allow only expensive instances. sold: for the run now.
    """
    needs = budget.run.needs
    prices = [price * needs.share_of(size) for size, price in sold if needs.fits_in(size)]
    least = min((price for price in prices if price > 0), default=0.0)
    if not least:
        return budget.run.task_count  # with no current price it waits for capacity, not for money
    hourly = budget.left_per_hour / least
    by_budget = budget.left_usd * 3600 / (least * budget.expected_s)
    most = max(0.0, min(hourly, by_budget))
    return budget.run.task_count if math.isinf(most) else _places_left(moment, budget) + int(most + ROUNDING)


def _places_left(moment: Moment, budget: RunBudget) -> int:
    """How many more tasks of the run fit on the instances that it pays for."""
    held, instances = budget.held, moment.state.instances
    idle = [instances[name] for name in budget.paid if name not in held]
    kinds = [(instance.instance_type, instance.size) for instance in (*held.instances, *idle)]
    share_of = {kind: _share_of(moment, budget.run.needs, *kind) for kind in set(kinds)}
    share = np.array([share_of[kind] for kind in kinds])
    unused = np.concatenate([1 - held.share_of_all, np.ones(len(idle))])[share > 0]
    return int(np.maximum(0.0, unused / share[share > 0] + ROUNDING).astype(np.int64).sum())


def _share_of(moment: Moment, needs: Resources, type_name: str, total: Resources) -> float:
    """The size of an instance, from the catalogue if it has not registered."""
    kind = moment.catalogue.get(type_name)
    return needs.share_of(kind.resources if total == NOTHING and kind else total)


@dataclass(slots=True)
class CappedRuns(UncappedRuns):
    """The runs of one tick in which some have caps: what they can pay for, and why their tasks wait."""

    budgets: Mapping[str, RunBudget] = field(default_factory=dict)  # by run id; each commitment reduces these
    most: dict[str, int] = field(default_factory=dict)  # by run id, the number of tasks that it can pay for
    refused: set[str] = field(default_factory=set)  # ids of runs that could not afford a launch

    @classmethod
    def of(cls, moment: Moment, budgets: Mapping[str, RunBudget], ended: Collection[str]) -> CappedRuns:
        """With copies of the budgets."""
        return cls(moment, ended, budgets={run_id: budget.copy() for run_id, budget in budgets.items()})

    def at_most(self, market: MarketView, unpaid: Mapping[str, int] | None = None) -> dict[str, Bound]:
        sold: dict[frozenset[Purchase], ForSale] = {}
        for run_id, budget in self.budgets.items():
            buys = frozenset(also for each in purchases(budget.run, self.moment) for also in with_reserved(each))
            if buys not in sold:
                sold[buys] = for_sale(self.moment.state, market.offers, buys)
            self.most[run_id] = most_tasks(self.moment, budget, sold[buys])
        self.most |= unpaid or {}
        bounds = {run_id: self._bound(budget) for run_id, budget in self.budgets.items()}
        return bounds | dict.fromkeys(self.ended, Bound(0))

    def _bound(self, budget: RunBudget) -> Bound:
        """The amounts that `_pay` uses for the first attempt on an idle instance."""
        by_budget = budget.left_usd * 3600 / (budget.expected_s + self.moment.policy.wind_down_s)
        return Bound(self.most[budget.run.id], min(budget.left_per_hour, by_budget), budget.paid)

    def unpaid(self, places: Places) -> dict[str, int]:
        if not self.refused or places.share is None or places.share.caps is None:
            return {}
        started = Counter(launch.key.run_id for launch in places.launches)
        return {run_id: started[run_id] for run_id in self.refused}

    def allowed(self, places: Places) -> Places:
        """Removes launches that a run cannot afford, and the instances that only those needed."""
        kept, dropped = self._afforded(places.launches) if self.budgets else (places.launches, ())
        wanted = places.wanted - self._for_nothing(places, kept, dropped)
        return replace(
            places,
            runs=tuple(replace(each, usd_room=self._usd_room(places, each)) for each in places.runs),
            launches=tuple(kept),
            wanted=wanted,
            no_linger=frozenset(idle_at_cost(self.moment.state, wanted)),
        )

    def exhausted(self, runs: Iterable[tuple[RunPlaces, Shortfall]], places: Places) -> list[CapRun | HaltRun]:
        waiting = [*runs]
        found = UncappedRuns.exhausted(self, waiting, places)
        for its, shortfall in waiting:
            budget = None if its.run.id in self.sentences else self.budgets.get(its.run.id)
            if budget is not None and self._is_short(budget, shortfall.reason):
                is_busy = self._is_busy(places, its, bought=shortfall.tasks < its.left_over.count)
                sentence, end = self._sentence(budget, self._least_price(its.batch), is_busy)
                self.sentences[its.run.id] = "" if end else sentence
                found += [end] if end else []
        return [action for action in found if action.run_id not in self.ended]

    def can_start(self, run_id: str, instance_id: str) -> bool:
        budget, instance = self.budgets.get(run_id), self.moment.state.instances[instance_id]
        if budget is None or instance_id in budget.paid:
            return True
        usd = to_come_usd(instance, self.moment.policy.boot_s, budget.expected_s, self.moment.now)
        if usd > budget.left_usd or instance.price_usd_per_hour > budget.left_per_hour + ROUNDING:
            return False
        budget.paid.add(instance_id)
        budget.reserved_usd += usd
        budget.usd_per_hour += instance.price_usd_per_hour
        return True

    def can_lose(self, run_id: str, usd: float) -> bool:
        budget = self.budgets.get(run_id)
        return budget is None or budget.left_usd >= usd

    def lose(self, run_id: str, usd: float) -> None:
        if run_id in self.budgets:
            self.budgets[run_id].reserved_usd += usd

    def _is_short(self, budget: RunBudget, held_back: str) -> bool:
        """Whether money keeps startable tasks of the run waiting."""
        waiting = budget.run.tasks.startable_count(self.moment.now)
        few = waiting > self.most.get(budget.run.id, waiting)
        return few or budget.run.id in self.refused or held_back.startswith(MONEY)

    def _sentence(self, budget: RunBudget, least: float, busy: bool) -> tuple[str, CapRun | HaltRun | None]:
        """Why its tasks wait, and its end if it ends for that reason. least: USD an hour of the cheapest instance."""
        run_id = budget.run.id
        cap, hourly = budget.run.terms.budget_usd, budget.run.terms.max_hourly_usd
        attempt_usd = least * self._seconds(budget) / 3600
        if not busy and budget.lacks(attempt_usd):
            said = {"cap": dollars(cap), "left": dollars(max(0.0, budget.left_usd)), "least": dollars(attempt_usd)}
            sentence = TOO_LITTLE_LEFT.format(**said, seconds=budget.expected_s)
            return sentence, CapRun(run_id, sentence)
        if hourly is not None and hourly < least < math.inf:
            sentence = BELOW_HOURLY_CAP.format(cap=dollars(hourly), least=dollars(least))
            if busy:
                return sentence, None
            self.unaffordable.add(run_id)
            return sentence, out_of_patience(self.moment, budget.run, NEVER_AFFORDABLE, sentence)
        if hourly is not None and budget.left_per_hour < budget.left_usd * 3600 / self._seconds(budget):
            return AT_HOURLY_CAP.format(cap=dollars(hourly)), None
        return SHORT_OF_BUDGET.format(cap=dollars(cap)), None

    def _afforded(self, launches: Sequence[Launch]) -> tuple[list[Launch], list[Launch]]:
        kept: list[Launch] = []
        dropped: list[Launch] = []
        for launch in launches:
            budget = self.budgets.get(launch.key.run_id)
            fine = budget is None or self._pay(budget, self.moment.state.instances[launch.instance_id])
            (kept if fine else dropped).append(launch)
        self.refused |= {launch.key.run_id for launch in dropped}
        return kept, dropped

    def _pay(self, budget: RunBudget, instance: Instance) -> bool:
        """Commit the money for one more attempt there, if there is enough."""
        is_new, state = instance.id not in budget.paid, self.moment.state
        holding = budget.held.of(instance.id) or new_holding(
            state, state.needs_by_number(), instance, budget.run.number
        )
        more = holding.more(budget.run.needs.share_of(instance.size), budget.expected_s)
        stopping = holding.usd_per_hour * self.moment.policy.wind_down_s / 3600 if is_new else 0.0
        price = instance.price_usd_per_hour if is_new else 0.0
        if more + stopping > budget.left_usd or price > budget.left_per_hour + ROUNDING:
            return False
        budget.held.put(holding)
        budget.paid.add(instance.id)
        budget.reserved_usd += more
        budget.wind_down_usd += stopping
        budget.usd_per_hour += price
        return True

    def _for_nothing(self, places: Places, kept: Sequence[Launch], dropped: Sequence[Launch]) -> frozenset[str]:
        """Instances that only the dropped launches needed."""
        others = [its.instances for its in places.runs if its.run.id not in self.refused]
        return frozenset(each.instance_id for each in dropped).difference((each.instance_id for each in kept), *others)

    def _usd_room(self, places: Places, its: RunPlaces) -> float:
        """How many more USD an hour may be bought for the run: within the hourly cap, and so that the rest of the
        budget pays for each new instance to boot, work for one attempt and stop. Incoming instances count as bought."""
        budget = self.budgets.get(its.run.id)
        if budget is None:
            return math.inf
        coming = self._coming_price(places, its.instances - budget.paid)
        by_budget = budget.left_usd * 3600 / self._seconds(budget)
        return max(0.0, min(budget.left_per_hour, by_budget) - coming)

    def _seconds(self, budget: RunBudget) -> float:
        return paid_seconds(self.moment.policy, budget.expected_s)

    def _coming_price(self, places: Places, names: Collection[str]) -> float:
        """USD an hour of incoming instances; 0 for those already here or forgotten."""
        state, now, usd_per_hour = self.moment.state, self.moment.now, 0.0
        owed = Counter(map(places.owed.get, names))
        for (key, purchase), count in ((which, count) for which, count in owed.items() if which is not None):
            kind = self.moment.catalogue[state.pools[key].instance_type]
            usd_per_hour += count * cost_of(state.pools[key], kind, purchase, now, self.moment.policy)
        here = (state.instances[name] for name in names if name not in places.owed and self._boots(name))
        return usd_per_hour + sum(instance.price_usd_per_hour for instance in here)

    def _boots(self, name: str) -> bool:
        instance = self.moment.state.instances.get(name)
        return instance is not None and instance.status is InstanceStatus.BOOTING

    def _least_price(self, batch: Batch) -> float:
        """USD an hour of the cheapest instance that could ever take a task of the batch; infinite if there is none."""
        offer = cheapest_offer(self.moment, batch)
        return offer.price_usd_per_hour if offer else math.inf

    def _is_busy(self, places: Places, its: RunPlaces, bought: bool) -> bool:
        """Whether present activity may still let the run's tasks start."""
        budget = self.budgets[its.run.id]
        coming = any(name in places.owed or self._boots(name) for name in its.instances | budget.paid)
        return len(budget.held) > 0 or coming or bought
