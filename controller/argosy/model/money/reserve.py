"""What are a run's live attempts still expected to cost?

An instance is paid for until its last attempt ends, so the run's longest attempt there counts. The run's part is its
share of the use by all live attempts there.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from argosy.model.attempts import AttemptStatus, since_checkpoint_s
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.money.occupancy import AttemptShares, FloatArray, IntArray, sums
from argosy.model.resources import Resources
from argosy.model.runs import Run
from argosy.model.state import State

LEAST_LEFT = 0.1  # of the expected duration, for an attempt that has already taken longer


@dataclass(slots=True)
class Holding:
    """An instance on which a run has live attempts."""

    instance: Instance
    share: float  # of the instance, by the run's attempts
    share_of_all: float  # by all attempts
    longest_s: float  # until the last of the run's attempts is expected to end

    @property
    def usd_per_hour(self) -> float:
        """The run's part of the price."""
        return self.instance.price_usd_per_hour * self.share / self.share_of_all if self.share_of_all else 0.0

    @property
    def reserved_usd(self) -> float:
        return self.usd_per_hour * self.longest_s / 3600

    def more(self, share: float, seconds: float) -> float:
        """Add one attempt; returns the increase of the reserve."""
        before = self.reserved_usd
        self.share += share
        self.share_of_all += share
        self.longest_s = max(self.longest_s, seconds)
        return self.reserved_usd - before


class Holdings:
    """The instances on which a run has live attempts, as columns. An instance's row can be replaced by itself."""

    def __init__(
        self, instances: Sequence[Instance], share: FloatArray, share_of_all: FloatArray, longest_s: FloatArray
    ):
        """(h,) each, as in `Holding`."""
        self.instances, self.share_of_all = instances, share_of_all
        self._share, self._longest_s = share, longest_s
        self._place = {instance.id: place for place, instance in enumerate(instances)}
        self._replaced: dict[str, Holding] = {}

    def __contains__(self, instance_id: str) -> bool:
        return instance_id in self._place or instance_id in self._replaced

    def __len__(self) -> int:
        return len(self._place.keys() | self._replaced.keys())

    def __iter__(self) -> Iterator[str]:
        """Ids of the instances."""
        yield from self._place
        yield from (name for name in self._replaced if name not in self._place)

    def of(self, instance_id: str) -> Holding | None:
        """A copy of the holding."""
        if (found := self._replaced.get(instance_id)) is not None:
            return replace(found)
        place = self._place.get(instance_id)
        if place is None:
            return None
        columns = (float(column[place]) for column in (self._share, self.share_of_all, self._longest_s))
        return Holding(self.instances[place], *columns)

    def put(self, holding: Holding) -> None:
        """Replace the holding of that instance, or add it. The sums stay as they were."""
        self._replaced[holding.instance.id] = holding

    def copy(self) -> Holdings:
        """A copy that can be changed independently."""
        found = copy.copy(self)
        found._replaced = {name: replace(holding) for name, holding in self._replaced.items()}
        return found

    def sums(self) -> tuple[float, float, float]:
        """USD an hour of the instances; the run's part of it; the reserve, USD. Without replacements."""
        price = np.array([instance.price_usd_per_hour for instance in self.instances], dtype=np.float64)
        part = np.divide(self._share, self.share_of_all, out=np.zeros_like(price), where=self.share_of_all > 0)
        return float(price.sum()), float((price * part).sum()), float((price * part * self._longest_s).sum() / 3600)


class Reserves:
    """The use of all runs now, and the idle instances that they pay for."""

    def __init__(self, state: State, needs: Mapping[int, Resources], now: float) -> None:
        """needs: of a task of each open run, by Run.number."""
        self._instances = [instance for instance in state.instances.values() if instance.alive]
        self._shares = AttemptShares.of(state, needs, self._instances)
        self._share_of_all = self._shares.summed(len(self._instances))
        started_at = state.attempts["started_at"][self._shares.row]
        self._taken_s = np.where(started_at > 0, now - started_at, 0.0)
        self._started = started_at > 0
        runs = self._shares.run
        self._order = np.argsort(runs, kind="stable")
        self._sorted = runs[self._order]
        self.idle = _kept_idle(state)

    def held(self, number: int, expected_s: float) -> Holdings:
        """Holdings of one run, in which an attempt is expected to take this many seconds."""
        rows = self._rows(number)
        of, left_s = self._shares.place[rows], np.maximum(expected_s - self._taken_s[rows], LEAST_LEFT * expected_s)
        longest_s = np.full(len(self._instances), -np.inf)
        np.maximum.at(longest_s, of, left_s)
        place = np.flatnonzero(longest_s > -np.inf)
        share = sums(of, self._shares.share[rows], len(self._instances))
        instances = [self._instances[each] for each in place.tolist()]
        return Holdings(instances, share[place], self._share_of_all[place], longest_s[place])

    def longest_so_far(self, number: int) -> float:
        """Age of the run's oldest live attempt in seconds; 0 without any."""
        rows = self._rows(number)
        return float(self._taken_s[rows[self._started[rows]]].max(initial=0.0))

    def _rows(self, number: int) -> IntArray:
        first, last = np.searchsorted(self._sorted, [number, number + 1])
        return self._order[first:last]


def new_holding(state: State, needs: Mapping[int, Resources], instance: Instance, number: int) -> Holding:
    """The run's attempts there, without remaining time for any of them yet."""
    here: Mapping[int, int] = state.attempts.runs_on_instance.get(instance.id.encode()) or {}
    shares = {each: count * needs[each].share_of(instance.size) for each, count in here.items() if each in needs}
    return Holding(instance, shares.get(number, 0.0), sum(shares.values()), 0.0)


def _kept_idle(state: State) -> Mapping[int, Sequence[Instance]]:
    """By Run.number, the instances without a live attempt that it pays for: it worked there, or they were bought for
    it."""
    found: defaultdict[int, list[Instance]] = defaultdict(list)
    busy = state.working_instances()
    for instance in state.instances.values():
        if instance.alive and instance.id.encode() not in busy:
            for number in instance.work or (instance.bought_for,):
                found[number].append(instance)
    return dict(found)


def to_come_usd(instance: Instance, boot_s: float, expected_s: float, now: float) -> float:
    """The cost of a booting instance until the end of its first attempt."""
    if instance.status is not InstanceStatus.BOOTING:
        return 0.0
    left_s = max(0.0, boot_s - (now - instance.launched_at)) + expected_s
    return instance.price_usd_per_hour * left_s / 3600


def to_be_displaced_usd(state: State, run: Run, at: float) -> float:
    """The value of the work of attempts that are being stopped for the run: it pays once they have ended."""
    table = state.attempts
    usd = 0.0
    for row in np.flatnonzero(
        (table["for_run"] == run.number) & (table["status"] != AttemptStatus.FREE.value)
    ).tolist():
        its, instance = state.run_by_number(int(table["run"][row])), state.instance_of(row)
        started_at = float(table["started_at"][row])
        if its is not None and instance is not None and started_at:
            share = its.needs.share_of(instance.size)
            lost_s = float(since_checkpoint_s(max(0.0, at - started_at), its.terms.checkpoint_s))
            usd += lost_s * share * instance.price_usd_per_hour / 3600
    return usd
