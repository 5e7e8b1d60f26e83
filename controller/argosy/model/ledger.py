"""What has been spent on instances that are alive, and is in no run's ledger yet?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

import numpy as np

from argosy.model.costs import NOBODY, Costs, costs_of, market_of, split
from argosy.model.instances import Instance
from argosy.model.resources import Resources
from argosy.model.runs import Run
from argosy.model.state import State


def running_work(state: State, needs: Mapping[int, Resources], at: float) -> dict[str, dict[int, float]]:
    """Share-seconds of the attempts at work, by instance and Run.number. needs: of a task of each open run."""
    table = state.attempts
    rows = table.placed()
    rows = rows[table["started_at"][rows] > 0]
    if not rows.size:
        return {}
    names, place = np.unique(table["instance"][rows], return_inverse=True)
    numbers, run = np.unique(table["run"][rows], return_inverse=True)
    seconds = np.bincount(
        place * len(numbers) + run,
        weights=np.maximum(0.0, at - table["started_at"][rows]),
        minlength=len(names) * len(numbers),
    ).reshape(len(names), len(numbers))
    found: dict[str, dict[int, float]] = {}
    for row, column in zip(*(axis.tolist() for axis in seconds.nonzero()), strict=True):
        instance, number = state.instances.get(names[row].decode()), int(numbers[column])
        if instance is not None and number in needs:
            share = needs[number].share_of(instance.total)
            found.setdefault(instance.id, {})[number] = share * float(seconds[row, column])
    return found


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
    """What instances that are alive have cost by now and is not in any ledger yet: by Run.number (NOBODY among them),
    then by market. Only of `runs`, when they are given."""
    running = running_work(state, needs, at)
    found: defaultdict[int, dict[str, Costs]] = defaultdict(dict)
    for instance in state.instances.values():
        mine = running.get(instance.id)
        if not instance.owes or (runs is not None and not _concerns(instance, mine, runs)):
            continue
        for number, spent in split(instance, at, mine).items():
            payer = number if number in needs else NOBODY
            if runs is None or payer in runs:
                found[payer].setdefault(market_of(instance), Costs()).add(costs_of(spent, instance))
    return dict(found)


def cost_so_far(state: State, run: Run, at: float) -> float:
    """USD: what was charged to the run, and its part of what instances that are alive have cost by now."""
    pending = not_charged(state, state.needs_by_number(), at, {run.number}).get(run.number, {})
    return run.cost_usd + sum(costs.total for costs in pending.values())


def _concerns(instance: Instance, running: Mapping[int, float] | None, runs: Collection[int]) -> bool:
    payers = (*instance.work, *(running or ()), instance.bought_for)
    return any(number in runs for number in payers)
