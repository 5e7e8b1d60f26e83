"""Present and incoming instances as rows, kept from tick to tick.

A row is made again only when its instance was marked as changed, when an attempt took or left a place there, when the
resources of its tasks changed, or when time affects it. The marks also decide what has to be stored, so a missing mark
shows there as well. A roster that has followed a state for long gives the same answer as a new one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from argosy.market.daemons import daemons_of
from argosy.model.instance_types import InstanceType
from argosy.model.instances import InstanceStatus
from argosy.model.moment import Moment, PoolPurchase
from argosy.model.state import State
from argosy.placement.kept_supply import KeptSupply, Rank
from argosy.placement.supply import InstanceRow, Supply
from argosy.scheduler.supply.rows import (
    ExpectedRows,
    TaskUse,
    may_still_come,
    on_known_gpus,
    pauses,
    row_of,
    uses_by_number,
)

_HERE, _PAUSING, _BOOTING, _OWED = range(4)  # the order of the rows
Rows = dict[str, tuple[Rank, InstanceRow] | None]


@dataclass(frozen=True, slots=True)
class PlacementRows:
    """Rows for placement, in a stable order. Valid until the `Roster` that made it is used again."""

    supply: Supply
    """Instances that may be given work now; then the incoming ones: those that just refused a task, that boot, and
    that fleets owe us."""
    ready: int
    """The number of rows that may be given work now."""
    owed: Mapping[str, PoolPurchase]
    """Which (pool, purchase) owes each owed instance, by id."""

    @property
    def here(self) -> Supply:
        """Those that may be given work now."""
        return self.supply.part(0, self.ready)

    @property
    def coming(self) -> Supply:
        """The incoming ones."""
        return self.supply.part(self.ready, len(self.supply))


class Roster:
    """The cache between two reads of one state. For another state, all rows are made again."""

    def __init__(self) -> None:
        self._kept: _FollowedRows | None = None

    def at(self, moment: Moment) -> PlacementRows:
        """ValueError names an instance whose numbers are impossible."""
        kept, self._kept = self._kept, None  # an update that fails halfway leaves the cache inconsistent
        if kept is None or not kept.can_go_on(moment):
            kept = _FollowedRows(moment)
        kept.follow(moment)
        self._kept = kept
        return PlacementRows(kept.rows.supply, kept.rows.below((_PAUSING,)), kept.owed)


class _FollowedRows:
    """The rows of all instances, and their sources."""

    def __init__(self, moment: Moment) -> None:
        state = moment.state
        self.rows = KeptSupply()
        self.owed: dict[str, PoolPurchase] = {}
        self._owing: Mapping[PoolPurchase, tuple[tuple[InstanceType, float] | None, int]] = {}  # what, and how many
        self._changed, self._used = state.changed_instances.touched, state.attempts.touched_instances
        self._followed: tuple[int, int] | None = None  # read positions in those two; None = no rows yet
        self._now, self._policy = moment.now, moment.policy
        self._daemons = daemons_of(state) if state.daemons else ()
        self._uses: Mapping[int, TaskUse] = {}
        self._timed: set[str] = set()  # instances that depend on the time

    def can_go_on(self, moment: Moment) -> bool:
        """Whether it is the same state, later, under the same policy, and with the same needs of daemons."""
        same = self._changed is moment.state.changed_instances.touched
        same = same and self._used is moment.state.attempts.touched_instances
        same = same and (self._policy is moment.policy or self._policy == moment.policy)
        same = same and self._now <= moment.now
        return same and (not moment.state.daemons or self._daemons == daemons_of(moment.state))

    def follow(self, moment: Moment) -> None:
        """Make all changed rows again."""
        expected, uses = ExpectedRows(moment, self._daemons), uses_by_number(moment.state)
        rows: Rows = {name: self._ranked(name, moment, uses, expected) for name in self._touched(moment.state, uses)}
        rows |= self._orders(moment, expected)
        self.rows.change(rows)
        self._followed = self._changed.count, self._used.count
        self._now, self._uses = moment.now, uses

    def _touched(self, state: State, uses: Mapping[int, TaskUse]) -> Iterable[str]:
        """Ids of the instances whose rows may have changed."""
        if self._followed is None:
            return state.instances
        touched = {name.decode() for name in self._used.since(self._followed[1])}
        touched.update(self._changed.since(self._followed[0]), self._timed)
        if uses != self._uses:
            numbers = uses.keys() | self._uses.keys()
            touched |= _with_tasks_of(state, [each for each in numbers if uses.get(each) != self._uses.get(each)])
        return touched

    def _ranked(
        self, name: str, moment: Moment, uses: Mapping[int, TaskUse], expected: ExpectedRows
    ) -> tuple[Rank, InstanceRow] | None:
        """The instance's group, and its row; None if nothing can be placed on it, now or soon."""
        self._timed.discard(name)
        instance = moment.state.instances.get(name)
        if instance is None:
            return None
        if instance.status is InstanceStatus.BOOTING or instance.paused_until > moment.now:
            self._timed.add(name)
        if may_still_come(instance, moment.now, moment.policy):
            row = expected.of(instance, instance.purchase)
            return ((_BOOTING, name), replace(row, id=name)) if row else None
        is_paused = pauses(instance, moment.now)
        if not instance.placeable or (instance.paused_until > moment.now and not is_paused):
            return None
        runs = moment.state.attempts.runs_on_instance.get(name.encode(), Counter())
        rank = _PAUSING if is_paused else _HERE, instance.registered_at, name
        row = row_of(instance, runs, uses, moment.policy, self._daemons)
        return rank, on_known_gpus(row, moment.state, uses)

    def _orders(self, moment: Moment, expected: ExpectedRows) -> Rows:
        """The owed instances that are new, changed, or no longer owed."""
        pools, catalogue = moment.state.pools, moment.catalogue
        owing: dict[PoolPurchase, tuple[tuple[InstanceType, float] | None, int]] = {
            key: ((kind, pools[key[0]].empty_by), count)
            for key, count in moment.owed.items()
            if (kind := catalogue.get(pools[key[0]].instance_type)) is not None
        }
        rows: Rows = {}
        for key in owing.keys() | self._owing.keys():
            (what, count), (before, had) = owing.get(key, (None, 0)), self._owing.get(key, (None, 0))
            if (what, count) == (before, had):
                continue
            row = expected.of(pools[key[0]], key[1]) if count else None
            for number in range(min(count, had) if what == before else 0, max(count, had)):
                name = f"owed/{key[0]}/{key[1]}/{number}"
                if row is not None and number < count:
                    rows[name], self.owed[name] = ((_OWED, *key, number), replace(row, id=name)), key
                else:
                    rows[name] = None
                    del self.owed[name]
        self._owing = owing
        return rows


def _with_tasks_of(state: State, numbers: Sequence[int]) -> set[str]:
    """Ids of the instances with live attempts of runs, by Run.number."""
    table = state.attempts
    placed = table.placed()
    rows = placed[np.isin(table["run"][placed], numbers)]
    return {name.decode() for name in np.unique(table["instance"][rows]).tolist()}
