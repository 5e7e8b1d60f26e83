"""Spending on live instances that is in no run's ledger yet.

`OwedTime` is `costs.split` for all instances at once, as columns. The functions after it add the columns up, by run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from argosy.model.costs import NO_RUN, Costs, Work, market_of
from argosy.model.instances import LEAST_BILLED_S, Instance
from argosy.model.money.occupancy import AttemptShares, FloatArray, IntArray, sums
from argosy.model.resources import Resources
from argosy.model.runs import Run
from argosy.model.state import State


@dataclass(frozen=True, slots=True, eq=False)
class OwedTime:
    """A row for each part of an instance's time that one payer owes; several rows may have the same instance and
    payer."""

    instances: Sequence[Instance]
    payers: Sequence[int]
    """Run.number, or 0 for no run."""
    place: IntArray
    """(p,) of the instance among `instances`."""
    payer: IntArray
    """(p,) into `payers`."""
    seconds: FloatArray
    """(6, p): useful, boot, idle, redone, failed, displaced, as in `costs.Spent`."""

    @classmethod
    def of(
        cls, state: State, needs: Mapping[int, Resources], at: float, runs: Collection[int] | None = None
    ) -> OwedTime:
        """The amounts owed until `at`. needs: of a task of each open run; time without an open run is owed by no run
        (0). runs: None = all payers."""
        instances = [instance for instance in state.instances.values() if instance.owes]
        place, number, seconds = _split(instances, _works(state, needs, instances, at), at)
        payers = sorted({NO_RUN, *needs} if runs is None else {NO_RUN, *needs}.intersection(runs))
        payer = _codes(np.where(_codes(number, sorted(needs)) >= 0, number, NO_RUN), payers)
        wanted = payer >= 0
        return cls(instances, payers, place[wanted], payer[wanted], seconds[:, wanted])

    def usd_per_hour(self) -> FloatArray:
        """(4, p): prices as bought, on demand, of disks and of addresses."""
        prices = [
            (i.price_usd_per_hour, i.on_demand_usd_per_hour, i.disk_usd_per_hour, i.address_usd_per_hour)
            for i in self.instances
        ]
        return np.array(prices, dtype=np.float64).reshape(-1, 4)[self.place].T


@dataclass(frozen=True, slots=True, eq=False)
class _WorkRows:
    """Work done on instances: share-seconds; several rows may have the same instance and run."""

    place: IntArray
    number: IntArray
    """Run.number."""
    done: FloatArray
    """(4, w): by `costs.Work`."""


def _works(state: State, needs: Mapping[int, Resources], instances: Sequence[Instance], at: float) -> _WorkRows:
    """Work that is over, and work in progress, which counts as useful until more is known."""
    shares = AttemptShares.of(state, needs, instances)
    place, number, share_s = shares.at_work(state, at)
    before = [(where, run, *done) for where, instance in enumerate(instances) for run, done in instance.work.items()]
    over = _columns(before, 2 + len(Work))
    running = np.zeros((len(Work), len(place)))
    running[0] = share_s
    return _WorkRows(
        np.concatenate([over[0].astype(np.int64), place]),
        np.concatenate([over[1].astype(np.int64), number]),
        np.concatenate([over[2:], running], axis=1),
    )


def _split(instances: Sequence[Instance], works: _WorkRows, at: float) -> tuple[IntArray, IntArray, FloatArray]:
    """(place, Run.number, (6, p) seconds) as in `costs.split`."""
    left, boot = _left(instances, at)
    waits = [
        (where, run, *waited) for where, instance in enumerate(instances) for run, waited in instance.waiting.items()
    ]
    waiting = _columns(waits, 4)
    where, noted = waiting[0].astype(np.int64), waiting[2:]
    noted *= np.minimum(1.0, _ratio(np.array([boot, left - boot]), _sums(where, noted, len(left))))[:, where]
    noted_boot, noted_idle = _sums(where, noted, len(left))
    left = np.maximum(0.0, left - noted_boot - noted_idle)
    boot = np.minimum(left, np.maximum(0.0, boot - noted_boot))
    place, number, worked = _shared(instances, works, left, boot)
    plain = np.zeros((6, len(where)))
    plain[1:3] = noted
    return (
        np.concatenate([place, where]),
        np.concatenate([number, waiting[1].astype(np.int64)]),
        np.concatenate([worked, plain], axis=1),
    )


def _left(instances: Sequence[Instance], at: float) -> tuple[FloatArray, FloatArray]:
    """(n,) uncharged seconds, and how many of them are boot."""
    launched, stopped, registered, charged, charged_boot = (
        np.array([getattr(instance, name) for instance in instances], dtype=np.float64)
        for name in ("launched_at", "stopped_at", "registered_at", "charged_s", "charged_boot_s")
    )
    is_launched, end = launched != 0, np.where(stopped != 0, stopped, at)
    billed = np.where(is_launched, np.maximum(np.maximum(LEAST_BILLED_S, charged), end - launched), 0.0)
    booted = np.where(is_launched, np.maximum(0.0, np.where(registered != 0, registered, end) - launched), 0.0)
    left = np.maximum(0.0, billed - charged)
    return left, np.minimum(left, np.maximum(0.0, booted - charged_boot))


def _shared(
    instances: Sequence[Instance], works: _WorkRows, left: FloatArray, boot: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """left, boot: seconds of each instance; boot is part of left. The run that an instance was bought for pays if it
    has no work."""
    mine, place = works.done.sum(axis=0), works.place
    all_done = sums(place, mine, len(left))
    scale = np.minimum(1.0, _ratio(left - boot, all_done))  # dominant shares may add up to more than one instance
    idle = np.maximum(0.0, left - boot - all_done * scale)
    part = _ratio(mine, all_done[place])
    done = works.done * scale[place]
    spent = np.array([done[0], boot[place] * part, idle[place] * part, done[1], done[2], done[3]])
    alone = np.flatnonzero(all_done <= 0)
    nothing = np.zeros(len(alone))
    bought = np.array([nothing, boot[alone], (left - boot)[alone], nothing, nothing, nothing])
    payers = np.array([instances[where].bought_for for where in alone.tolist()], dtype=np.int64)
    return (
        np.concatenate([place, alone]),
        np.concatenate([works.number, payers]),
        np.concatenate([spent, bought], axis=1),
    )


def _columns(rows: Iterable[Sequence[float]], width: int) -> FloatArray:
    return np.array([*rows], dtype=np.float64).reshape(-1, width).T.copy()


def _sums(place: IntArray, columns: FloatArray, instances: int) -> FloatArray:
    """(c, instances) of (c, p)."""
    return np.array([sums(place, column, instances) for column in columns])


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """0 if the whole is 0."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def _codes(numbers: IntArray, known: Sequence[int]) -> IntArray:
    """The position of each in `known`, which is ascending; -1 = not in it."""
    if not known:
        return np.full(len(numbers), -1, dtype=np.int64)
    column = np.array(known, dtype=np.int64)
    which = np.minimum(np.searchsorted(column, numbers), len(known) - 1)
    codes: NDArray[np.int64] = np.where(column[which] == numbers, which, -1)
    return codes


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
    shares = {each: needs[each].share_of(instance.size) for each, count in here.items() if count and each in needs}
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
    """USD: the charges to the run, and its part of the cost so far of live instances."""
    return run.cost_usd + usd_not_charged(state, state.needs_by_number(), at, {run.number}).get(run.number, 0.0)
