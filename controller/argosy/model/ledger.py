"""Spending on live instances that is in no run's ledger yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

import numpy as np

from argosy.model.costs import Costs, market_of
from argosy.model.instances import Instance
from argosy.model.owed_time import OwedTime
from argosy.model.resources import Resources
from argosy.model.runs import Run
from argosy.model.shares import AttemptShares, IntArray, sums
from argosy.model.state import State


def running_work(state: State, needs: Mapping[int, Resources], at: float) -> dict[str, dict[int, float]]:
    """Share-seconds of the attempts at work, by instance and Run.number. needs: of a task of each open run."""
    instances = list(state.instances.values())
    place, number, share_s = AttemptShares.of(state, needs, instances).at_work(state, at)
    pairs, pair = np.unique(place << 32 | number, return_inverse=True)
    found: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for each, seconds in zip(pairs.tolist(), sums(pair, share_s, len(pairs)).tolist(), strict=True):
        found[instances[each >> 32].id][each & 0xFFFFFFFF] = seconds
    return dict(found)


def running_on(state: State, instance: Instance, at: float) -> dict[int, float]:
    """The same for one instance."""
    table, found = state.attempts, defaultdict[int, float](float)
    here: Mapping[int, int] = table.runs_on_instance.get(instance.id.encode(), {})
    needs = state.needs_by_number()
    shares = {each: needs[each].share_of(instance.total) for each, count in here.items() if count and each in needs}
    for row in table.on_instance(instance.id):
        number, started_at = int(table["run"][row]), float(table["started_at"][row])
        if number in shares and started_at > 0:
            found[number] += shares[number] * max(0.0, at - started_at)
    return dict(found)


def not_charged(
    state: State, needs: Mapping[int, Resources], at: float, runs: Collection[int] | None = None
) -> dict[int, dict[str, Costs]]:
    """The cost so far of live instances that is in no ledger yet: by Run.number (including that of no run), then by
    market. Only of `runs`, when given."""
    owed = OwedTime.of(state, needs, at, runs)
    markets: dict[str, int] = {}
    market = np.array([markets.setdefault(market_of(each), len(markets)) for each in owed.instances], dtype=np.int64)
    pairs, pair = np.unique(owed.payer << 32 | market[owed.place], return_inverse=True)
    names, found = list(markets), defaultdict[int, dict[str, Costs]](dict)
    for each, *costs in zip(pairs.tolist(), *_costs(owed, pair, len(pairs)), strict=True):
        found[owed.payers[each >> 32]][names[each & 0xFFFFFFFF]] = Costs(*costs)
    return dict(found)


def _costs(owed: OwedTime, group: IntArray, groups: int) -> Iterator[list[float]]:
    """The columns of `Costs`, each summed by group of rows."""
    bought, on_demand, disks, addresses = owed.usd_per_hour() / 3600
    every = owed.seconds.sum(axis=0)
    *usual, displaced = owed.seconds * bought
    for column in (*usual, every * on_demand, every, every * disks, every * addresses, displaced):
        yield sums(group, column, groups).tolist()


def usd_not_charged(state: State, needs: Mapping[int, Resources], at: float, runs: Collection[int]) -> dict[int, float]:
    """The same in USD, by Run.number, for `runs` that are open."""
    owed = OwedTime.of(state, needs, at, runs)
    usd = owed.seconds.sum(axis=0) * owed.usd_per_hour()[0] / 3600
    return dict(zip(owed.payers, sums(owed.payer, usd, len(owed.payers)).tolist(), strict=True))


def cost_so_far(state: State, run: Run, at: float) -> float:
    """USD: what was charged to the run, and its part of the cost so far of live instances."""
    return run.cost_usd + usd_not_charged(state, state.needs_by_number(), at, {run.number}).get(run.number, 0.0)
