"""Is all money in exactly one ledger, and does every run keep to its limits?

I7: the controller's ledgers are near the bill. I12: the cost of instances is in exactly one ledger, with their disks
and addresses (decision 16); no run pays for time before its submission; a run keeps to its budget and to its hourly cap
(decision 12).
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from argosy.engine.report import TickReport
from argosy.model.costs import Costs
from argosy.model.instances import LEAST_BILLED_S, pool_key
from tests.harness.simulation.audit.facts import Checker, Commit, TrialFacts, TrialResults
from tests.harness.simulation.world.deployed_fleets import IPV4_USD_PER_S, fleet_is_ours, volume_usd

JSON = dict[str, Any]

STOPPING_S = 300.0  # from the decision to stop a run until its last instance is gone, without the gaps between ticks
ROUNDING_USD = 1e-6
UNSEEN_S = 900.0  # share of each instance's life that the controller may not have seen
SEEN_LATE_S = 60.0  # the same without faults


def _owed_usd(instance: JSON) -> float:
    """What an ended instance has cost, and is not charged yet: its payers may be too many for one commit."""
    if not instance.get("losing"):
        return 0.0
    charged_s = float(instance["charged_s"])
    billed_s = max(LEAST_BILLED_S, charged_s, float(instance["stopped_at"]) - float(instance["launched_at"]))
    return (billed_s - charged_s) * float(instance["price_usd_per_hour"]) / 3600


@dataclass(slots=True)
class _SpendingRate:
    """The rate at which a run may have spent money unseen."""

    usd_per_hour: float = 0.0
    longest_gap_s: float = 0.0
    """Between two ticks while it was open."""


@dataclass(slots=True)
class _StoredInstance:
    """An instance as it is stored. Epoch seconds."""

    launched_at: float
    paid_until: float

    def seconds_since(self, at: float) -> float:
        return max(0.0, self.paid_until - max(at, self.launched_at))


class MoneyChecker(Checker):
    """The ledgers after each commit, and the budgets and the bill at rest."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._longest_gap_s = 0.0
        self._ticked_at = facts.world.now
        self._pace: defaultdict[str, _SpendingRate] = defaultdict(_SpendingRate)  # by run
        self._committed_at = 0.0
        self._most_usd: dict[str, float] = {}  # by run, the largest budget that it ever had
        self._lives: defaultdict[str, dict[str, _StoredInstance]] = defaultdict(dict)  # by market, then by id
        self._checked_usd: dict[str, float] = {}  # by run, what it had paid at the previous check

    def committed(self, commit: Commit) -> None:
        stored, now = self.facts.stored, self.facts.world.now
        self._longest_gap_s = max(self._longest_gap_s, now - (self._committed_at or now))
        self._committed_at = now
        ledgers = [costs for record in stored.records.values() for costs in record.costs.values()]
        ledgers.append(Costs(*stored.root.get("unattributed", ())))
        alive = [each for each in stored.instances.values() if each["status"] != "GONE"]
        self._note_rates(commit, alive)
        alive_usd = sum(each.get("charged_s", 0.0) * each["price_usd_per_hour"] / 3600 for each in alive)
        paid = stored.root.get("spent_usd", 0.0) + alive_usd - sum(map(_owed_usd, stored.instances.values()))
        charged = sum(costs.total for costs in ledgers)
        if any(value < -1e-9 for costs in ledgers for value in costs.to_list()):
            self.facts.violated("I12", "a ledger has a negative entry")
        elif abs(charged - paid) > 1e-6 + 1e-9 * paid and not self.facts.ledger_is_lost:
            sentence = f"{charged:.6f} USD are in the ledgers, {paid:.6f} USD were charged for instances"
            self.facts.violated("I12", sentence)
        else:
            self._check_newcomers()

    def ticked(self, report: TickReport, version: int | None) -> None:
        now = self.facts.world.now
        for record in self.facts.stored.records.values():
            if not record.has_ended:
                gap_s = now - max(self._ticked_at, record.submitted_at)
                self._pace[record.id].longest_gap_s = max(self._pace[record.id].longest_gap_s, gap_s)
        self._ticked_at = now

    def at_rest(self, rest: TrialResults) -> None:
        if not self.facts.torn_down:
            self._check_books(rest)
            self._check_budgets()
            self._check_lines()

    def _check_newcomers(self) -> None:
        """A run pays for no more of a market's time than was paid for its instances since the run's submission."""
        self._remember_lives()
        slack_s = SEEN_LATE_S if self.facts.nothing_goes_wrong else UNSEEN_S + self._longest_gap_s
        for record in self.facts.stored.records.values():
            if record.cost_usd == self._checked_usd.get(record.id):
                continue
            self._checked_usd[record.id] = record.cost_usd
            for market, costs in record.costs.items():
                lives = self._lives[market].values()
                most_s = sum(each.seconds_since(record.submitted_at) + slack_s for each in lives)
                if lives and costs.instance_seconds > most_s:
                    paid = f"{costs.instance_seconds:.0f} s of {market} are in the ledger"
                    self.facts.violated("I12", f"{paid}, at most {most_s:.0f} s since it was submitted", record.id)

    def _remember_lives(self) -> None:
        for name, each in self.facts.stored.instances.items():
            until = each["stopped_at"] if each["status"] == "GONE" else self.facts.world.now
            paid_until = max(until, each["launched_at"] + max(LEAST_BILLED_S, each["charged_s"]))
            where = pool_key(each["cell"], each["instance_type"], each["zone"], each.get("reservation", ""))
            market = f"{where}|{each['purchase']}"
            self._lives[market][name] = _StoredInstance(each["launched_at"], paid_until)

    def _check_books(self, rest: TrialResults) -> None:
        """The ledgers may differ from the bill only by costs that the controller could not see."""
        world = self.facts.world
        billed, booked = rest.bill.usd(), float(self.facts.stored.root["spent_usd"])
        fleets = [each for each in self.facts.regions.fleets() if fleet_is_ours(each)]
        types = {pool.instance_type for fleet in fleets for pool in fleet.pools}
        highest_usd = max(world.catalogue[name].on_demand_usd_per_hour for name in types)
        slack = len(rest.bill.ended) * (UNSEEN_S + rest.unattended_s) / 3600 * highest_usd + 0.3 * billed
        if abs(billed - booked) > slack:
            self.facts.violated("I7", f"{booked:.2f} USD are booked, {billed:.2f} USD are billed")

    def _note_rates(self, commit: Commit, alive: list[JSON]) -> None:
        """The hourly cost of the instances of each run with caps: those where it works or has worked, or that were
        bought for
        it. When it begins to work on an instance, the ones that it works on keep to its hourly cap.
        """
        works = defaultdict(set)
        for live in self.facts.stored.live.values():
            works[live.key.run_id].add(live.instance)
        begins = {intent.key.run_id for intent in commit.intents}
        for record in self.facts.stored.records.values():
            budget = math.inf if record.budget_usd is None else record.budget_usd
            self._most_usd[record.id] = max(self._most_usd.get(record.id, 0.0), budget)
            cap = record.max_hourly_usd
            if record.has_ended or (cap is None and record.budget_usd is None):
                continue
            held = [each for each in alive if each["id"] in works[record.id]]
            paid = [each for each in alive if each in held or record.number in (*each["work"], each["bought_for"])]
            pace, hourly = self._pace[record.id], sum(each["price_usd_per_hour"] for each in held)
            pace.usd_per_hour = max(pace.usd_per_hour, sum(each["price_usd_per_hour"] for each in paid))
            if cap is not None and record.id in begins and hourly > cap + ROUNDING_USD:
                sentence = f"instances of {hourly:.4f} USD an hour work for it, {cap} USD an hour are allowed"
                self.facts.violated("I12", sentence, record.id)

    def _check_budgets(self) -> None:
        """A run may exceed its budget by the cost of its instances until a tick sees that it is used up, until another
        one sees the stopped tasks, and while they stop. Attempts that may finish do."""
        for record in self.facts.stored.records.values():
            job, pace = self.facts.jobs[record.id], self._pace[record.id]
            budget = self._most_usd.get(record.id, math.inf)
            if math.isinf(budget):
                continue
            finishes = job.spec["capacity"].get("onCap") == "finish"
            over_s = 2 * pace.longest_gap_s + STOPPING_S + (job.longest_attempt_s if finishes else 0.0)
            if record.cost_usd > budget + over_s / 3600 * pace.usd_per_hour:
                spent = f"{record.cost_usd:.4f} USD were spent of a budget of {budget} USD"
                sentence = f"{spent}, at {pace.usd_per_hour:.4f} USD an hour and {over_s:.0f} s until it could stop"
                self.facts.violated("I12", sentence, record.id)

    def _check_lines(self) -> None:
        """Every second of an instance in a ledger is charged with its volume and its address, at the list price."""
        for record in self.facts.stored.records.values():
            for market, costs in record.costs.items():
                region, name, *_ = market.partition("|")[0].split("/")
                kind = self.facts.world.catalogue[name]
                due = volume_usd(region, kind, costs.instance_seconds), IPV4_USD_PER_S * costs.instance_seconds
                booked = costs.disks, costs.addresses
                if not all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9) for a, b in zip(due, booked, strict=True)):
                    sentence = f"{booked} USD are booked for volumes and addresses in {market}, {due} USD are due"
                    self.facts.violated("I12", sentence, record.id)
