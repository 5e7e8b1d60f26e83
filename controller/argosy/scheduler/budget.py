"""What has a run with caps spent, what has it reserved, and is its budget used up?

Nothing is started that would take spent + reserved + what it costs to stop over the budget. Reserved is what live
attempts are still expected to cost, and the instances that boot for the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from argosy.model.actions import CapRun
from argosy.model.costs import NOBODY
from argosy.model.ledger import not_charged
from argosy.model.policy import Policy
from argosy.model.reserve import Holding, holdings, kept_idle, longest_so_far, to_come_usd
from argosy.model.runs import Run
from argosy.model.state import State


@dataclass(slots=True)
class Purse:
    """The money of one run with caps, as of now. Whoever commits some of it takes it out."""

    run: Run
    expected_s: float  # of one attempt
    spent_usd: float
    reserved_usd: float
    wind_down_usd: float  # what its instances cost until everything is stopped
    usd_per_hour: float  # whole instances: their other users may leave at any time
    held: dict[str, Holding]  # instances with live attempts of the run
    paid: set[str]  # ids of all instances that are in usd_per_hour

    @property
    def left_usd(self) -> float:
        """What is neither spent nor spoken for; infinite without a budget."""
        budget = self.run.terms.budget_usd
        return math.inf if budget is None else budget - self.spent_usd - self.reserved_usd - self.wind_down_usd

    @property
    def left_per_hour(self) -> float:
        cap = self.run.terms.max_hourly_usd
        return math.inf if cap is None else cap - self.usd_per_hour

    def afresh(self) -> Purse:
        """A copy, of which money can be taken."""
        return replace(self, held={name: replace(each) for name, each in self.held.items()}, paid={*self.paid})

    @property
    def is_used_up(self) -> bool:
        """No more can be spent than what stopping costs."""
        budget = self.run.terms.budget_usd
        return budget is not None and self.spent_usd + self.wind_down_usd >= budget


def has_caps(run: Run) -> bool:
    return run.terms.budget_usd is not None or run.terms.max_hourly_usd is not None


def expected_seconds(run: Run, policy: Policy) -> float:
    """How long an attempt of the run is expected to take; where nobody knows, the policy's guess."""
    return run.expected_seconds(policy.attempt_s)


def purses(state: State, now: float, policy: Policy) -> dict[str, Purse]:
    """By run id, of the open runs with caps that may still start something."""
    capped = [run for run in state.runs.values() if has_caps(run) and not (run.done or run.halted)]
    if not capped:
        return {}
    needs = {run.number: run.needs for run in state.runs.values()}
    pending = not_charged(state, needs, now, frozenset(run.number for run in capped))
    found = {}
    for run in capped:
        not_yet = sum(costs.total for costs in pending.get(run.number, {}).values())
        expected_s = expected_seconds(run, policy)
        if not run.ended:  # whoever expected less is wrong
            expected_s = max(expected_s, longest_so_far(state, run.number, now))
        held = holdings(state, needs, run.number, expected_s, now)
        found[run.id] = _purse(state, run, run.cost_usd + not_yet, held, expected_s, now, policy)
    return found


def _purse(
    state: State, run: Run, spent_usd: float, held: dict[str, Holding], expected_s: float, now: float, policy: Policy
) -> Purse:
    idle = list(kept_idle(state, run.number))
    idle_per_hour = sum(instance.price_usd_per_hour for instance in idle)
    to_come = sum(to_come_usd(instance, policy.boot_s, expected_s, now) for instance in idle)
    own_per_hour = idle_per_hour + sum(each.usd_per_hour for each in held.values())
    return Purse(
        run=run,
        expected_s=expected_s,
        spent_usd=spent_usd,
        reserved_usd=to_come + sum(each.reserved_usd for each in held.values()),
        wind_down_usd=own_per_hour * policy.wind_down_s / 3600,
        usd_per_hour=idle_per_hour + sum(each.instance.price_usd_per_hour for each in held.values()),
        held=held,
        paid={*held, *(instance.id for instance in idle)},
    )


def used_up(purses_by_run: Mapping[str, Purse]) -> Iterator[CapRun]:
    """Runs whose budget is at its end."""
    for purse in purses_by_run.values():
        if purse.is_used_up and not purse.run.complete:
            yield CapRun(purse.run.id, f"its budget of {dollars(purse.run.terms.budget_usd)} is used up")


def idle_at_cost(state: State, wanted: Iterable[str]) -> Iterator[str]:
    """Instances on which nothing runs or is about to and that only runs with caps pay for: they do not linger. While a
    run that was stopped at its cap is open that goes for instances that nobody has ever used, too: they may be the
    last that were ordered for it."""
    capped = {run.number for run in state.runs.values() if has_caps(run) and not run.done}
    if not capped:
        return
    late_arrivals = any(run.capped_at for run in state.runs.values())
    spared, busy = {*wanted}, state.attempts.runs_on_instance
    for instance in state.instances.values():
        if instance.alive and instance.id not in spared and instance.id.encode() not in busy:
            payers = {*instance.work} or {instance.bought_for} - {NOBODY}
            if payers <= capped and (payers or late_arrivals):
                yield instance.id


def dollars(usd: float | None) -> str:
    """`$5.00`, `$0.50`, `$0.0123`: no more digits than say something."""
    if not usd or usd >= 1 or round(usd, 2) == usd:
        return f"${usd or 0.0:,.2f}"
    return f"${usd:.4f}" if usd >= 0.001 else f"${usd:.2g}"
