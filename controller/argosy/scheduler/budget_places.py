"""Which of the places that were found can runs with caps afford, how much more may be bought, what are users told?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from argosy.market.buy import Order
from argosy.market.cover import MONEY, tasks_per_instance
from argosy.market.fallback import purchases
from argosy.market.offers import offers_of, price_of
from argosy.model.actions import CapRun, Claim, Launch
from argosy.model.instance_types import InstanceType
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.policy import Policy
from argosy.model.pools import Offer
from argosy.model.reserve import holding_of, to_come_usd
from argosy.model.state import State
from argosy.scheduler.budget import Purse, dollars, idle_at_cost
from argosy.scheduler.budget_demand import most_tasks
from argosy.scheduler.places import Places

SHORT_OF_BUDGET = "held back by its budget of {cap}: what is left is reserved for what runs or boots already"
AT_HOURLY_CAP = "held back by capacity.maxHourlyCost of {cap}: as much as that allows runs already or is on its way"
BELOW_HOURLY_CAP = (
    "capacity.maxHourlyCost of {cap} allows no instance that could take its tasks: the cheapest costs {least} an hour"
)
TOO_LITTLE_LEFT = (
    "what is left of its budget of {cap} ({left}) does not pay for another attempt: starting the cheapest instance and"
    " working there for {seconds:.0f} s, as is expected of an attempt, costs {least}"
)
_ABOUT_MONEY = tuple(each.partition("{")[0] for each in (SHORT_OF_BUDGET, AT_HOURLY_CAP, BELOW_HOURLY_CAP))
_HAIR = 1e-9


def is_about_money(sentence: str) -> bool:
    """Whether that is why a run's tasks wait."""
    return sentence.startswith(_ABOUT_MONEY)


@dataclass(slots=True)
class Till:
    """One tick's spending on behalf of runs with caps."""

    state: State
    catalogue: Mapping[str, InstanceType]
    now: float
    policy: Policy
    purses: Mapping[str, Purse]  # by run id
    most: dict[str, int] = field(default_factory=dict)  # by run id, for how many more tasks it can pay
    sentences: dict[str, str] = field(default_factory=dict)  # by run id, why its tasks wait; "" = it ends
    refused: set[str] = field(default_factory=set)  # ids of runs that could not afford a launch

    def at_most(self, offers: Sequence[Offer]) -> dict[str, int]:
        """By run id, for how many more tasks it can pay."""
        for run_id, purse in self.purses.items():
            buys = purchases(purse.run, self.state, self.now, self.policy)
            self.most[run_id] = most_tasks(self.state, purse, offers, self.catalogue, buys)
        return dict(self.most)

    def allowed(self, places: Places) -> Places:
        """Without the launches that a run cannot afford, and without the instances that were wanted for those alone."""
        kept, dropped = self._afforded(places.launches) if self.purses else (places.launches, ())
        wanted = places.wanted - self._for_nothing(places, kept, dropped)
        return replace(
            places,
            launches=tuple(kept),
            wanted=wanted,
            usd_rooms=tuple(map(self._room, *self._per_run(places))) if self.purses else (),
            at_once=frozenset(idle_at_cost(self.state, wanted)),
        )

    def judged(self, places: Places, order: Order) -> list[CapRun]:
        """Runs that cannot pay for anything any more; why others wait for want of money goes into `sentences`."""
        capped = []
        for number, run in enumerate(places.runs):
            purse = self.purses.get(run.id)
            if purse is not None and self._is_short(purse, order.held_back[number]):
                least = self._least_price(places, number)
                sentence, is_the_end = self._sentence(purse, least, self._is_busy(places, order, number))
                self.sentences[run.id] = "" if is_the_end else sentence
                capped += [CapRun(run.id, sentence)] if is_the_end else []
        return capped

    def _is_short(self, purse: Purse, held_back: str) -> bool:
        """Whether money keeps tasks of the run from starting that could start now."""
        waiting = purse.run.tasks.startable_count(self.now)
        few = waiting > self.most.get(purse.run.id, waiting)
        return few or purse.run.id in self.refused or held_back.startswith(MONEY)

    def _sentence(self, purse: Purse, least: float, busy: bool) -> tuple[str, bool]:
        """And whether it is the run's last."""
        budget, hourly = purse.run.terms.budget_usd, purse.run.terms.max_hourly_usd
        attempt_usd = least * self._seconds(purse) / 3600
        if not busy and budget is not None and purse.left_usd < attempt_usd < math.inf:
            said = {"cap": dollars(budget), "left": dollars(max(0.0, purse.left_usd)), "least": dollars(attempt_usd)}
            return TOO_LITTLE_LEFT.format(**said, seconds=purse.expected_s), True
        if hourly is not None and hourly < least < math.inf:
            return BELOW_HOURLY_CAP.format(cap=dollars(hourly), least=dollars(least)), False
        if hourly is not None and purse.left_per_hour < purse.left_usd * 3600 / self._seconds(purse):
            return AT_HOURLY_CAP.format(cap=dollars(hourly)), False
        return SHORT_OF_BUDGET.format(cap=dollars(budget)), False

    def _afforded(self, launches: Sequence[Launch]) -> tuple[list[Launch], list[Launch]]:
        kept: list[Launch] = []
        dropped: list[Launch] = []
        for launch in launches:
            purse = self.purses.get(launch.key.run_id)
            fine = purse is None or self._pay(purse, self.state.instances[launch.instance_id])
            (kept if fine else dropped).append(launch)
        self.refused |= {launch.key.run_id for launch in dropped}
        return kept, dropped

    def _pay(self, purse: Purse, instance: Instance) -> bool:
        """Commit the money for one more attempt there, if there is enough."""
        is_new = instance.id not in purse.paid
        needs = {run.number: run.needs for run in self.state.runs.values()}
        holding = purse.held.get(instance.id) or holding_of(self.state, needs, instance, purse.run.number)
        before = replace(holding)
        more = holding.more(purse.run.needs.share_of(instance.total), purse.expected_s)
        stopping = holding.usd_per_hour * self.policy.wind_down_s / 3600 if is_new else 0.0
        price = instance.price_usd_per_hour if is_new else 0.0
        if more + stopping > purse.left_usd or price > purse.left_per_hour + _HAIR:
            if instance.id in purse.held:
                purse.held[instance.id] = before
            return False
        purse.held[instance.id] = holding
        purse.paid.add(instance.id)
        purse.reserved_usd += more
        purse.wind_down_usd += stopping
        purse.usd_per_hour += price
        return True

    def _for_nothing(self, places: Places, kept: Sequence[Launch], dropped: Sequence[Launch]) -> frozenset[str]:
        """Instances that were wanted only by launches that are not made."""
        others = [ids for run, ids in zip(places.runs, places.counted_on, strict=True) if run.id not in self.refused]
        return frozenset(each.instance_id for each in dropped).difference((each.instance_id for each in kept), *others)

    def _per_run(self, places: Places) -> tuple[list[Purse | None], list[float]]:
        """The purse of each run, and the price of what is on its way and not in the purse yet."""
        purses = [self.purses.get(run.id) for run in places.runs]
        coming = [
            sum(self._coming_price(places, name) for name in ids - purse.paid) if purse else 0.0
            for purse, ids in zip(purses, places.counted_on, strict=True)
        ]
        return purses, coming

    def _room(self, purse: Purse | None, coming_usd_per_hour: float) -> float:
        """How many USD an hour more may be bought: under the hourly cap, and so that each new instance can boot, work
        for one attempt and be stopped on what is left of the budget. What is on its way counts as bought."""
        if purse is None:
            return math.inf
        by_budget = purse.left_usd * 3600 / self._seconds(purse)
        return max(0.0, min(purse.left_per_hour, by_budget) - coming_usd_per_hour)

    def _seconds(self, purse: Purse) -> float:
        """How long an instance is paid for that is bought for one attempt."""
        return self.policy.boot_s + purse.expected_s + self.policy.wind_down_s

    def _coming_price(self, places: Places, name: str) -> float:
        """USD an hour; 0 for what is here already."""
        if name not in places.owed:
            return self.state.instances[name].price_usd_per_hour if self._boots(name) else 0.0
        key, purchase = places.owed[name]
        pool = self.state.pools[key]
        return price_of(pool, self.catalogue[pool.instance_type], purchase, self.now, self.policy)

    def _boots(self, name: str) -> bool:
        return self.state.instances[name].status is InstanceStatus.BOOTING

    def _least_price(self, places: Places, number: int) -> float:
        """Of what could ever take a task of the run, cooling off or not; infinite when nothing could."""
        everything = offers_of(self.state.pools.values(), self.catalogue, math.inf, self.policy)
        fits = tasks_per_instance(replace(places.batches[number], count=1), everything).tolist()
        prices = [offer.price_usd_per_hour for offer, tasks in zip(everything, fits, strict=True) if tasks]
        return min(prices, default=math.inf)

    def _is_busy(self, places: Places, order: Order, number: int) -> bool:
        """Whether something is going on that may yet let the run's tasks start."""
        purse, ids = self.purses[places.runs[number].id], places.counted_on[number]
        coming = any(name in places.owed or self._boots(name) for name in ids | purse.paid)
        bought = order.uncovered[number] < places.left_over[number].count
        return bool(purse.held) or coming or bought

    def claims(self, places: Places) -> Iterator[Claim]:
        """Instances that nobody has been counting on, each for the first run that does now and can pay for it. What was
        bought for the only run there is, is that run's in any case."""
        free = {each.id for each in self.state.instances.values() if each.alive and each.owned and not each.bought_for}
        for run, ids in zip(places.runs, places.counted_on, strict=True):
            purse = self.purses.get(run.id) if len(places.runs) > 1 else None
            if found := sorted(name for name in free & ids if purse is None or self._can_keep(purse, name)):
                yield Claim(run.id, tuple(found))
                free -= {*found}

    def _can_keep(self, purse: Purse, name: str) -> bool:
        """Take the start of the instance out of the purse, if there is enough in it."""
        instance = self.state.instances[name]
        if name in purse.paid:
            return True
        usd = to_come_usd(instance, self.policy.boot_s, purse.expected_s, self.now)
        if usd > purse.left_usd or instance.price_usd_per_hour > purse.left_per_hour + _HAIR:
            return False
        purse.paid.add(name)
        purse.reserved_usd += usd
        purse.usd_per_hour += instance.price_usd_per_hour
        return True
