"""Where does each gang go: whole to present instances, or whole to present and ordered ones?

Gangs come before other tasks. A gang that starts now takes its room from them, and so does one that fits as a whole on
present and ordered instances: it holds the present ones until the others join. This follows from the instances alone
and is worked out again in each tick, so a gang that no longer fits as a whole holds nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from argosy.gangs.members import members, next_attempt, startable
from argosy.gangs.whole_gangs import whole_gangs
from argosy.market.cover import less
from argosy.model.actions import Launch
from argosy.model.attempts import AttemptKey
from argosy.model.moment import Moment, PoolPurchase
from argosy.model.runs import Run
from argosy.placement.arrays import IntArray
from argosy.placement.demand import Batch
from argosy.placement.feasibility import fitting, room
from argosy.placement.pass_state import PassState
from argosy.placement.supply import Supply
from argosy.placement.task_kinds import TaskKind
from argosy.scheduler.placing.run_places import RunPlaces
from argosy.scheduler.supply.roster import PlacementRows
from argosy.scheduler.turns.asks import Ask
from argosy.scheduler.turns.turns import Turns

ZONE = "ecs.availability-zone"
CAPPED = "gangs do not start while a queue has a cap or a guarantee"


@dataclass(frozen=True, slots=True)
class GangPlaces:
    """Example: a gang of 2 starts on i-1 and i-2, another waits on i-3 for an ordered instance. Then `launches` has the
    two launches of the first, `wanted` is {"i-1", "i-2", "i-3"}, and `lineup` is without the room of all four."""

    lineup: PlacementRows
    runs: tuple[RunPlaces, ...] = ()
    launches: tuple[Launch, ...] = ()
    wanted: frozenset[str] = frozenset()
    owed_used: Counter[PoolPurchase] = field(default_factory=Counter)


def gang_places(turns: Turns) -> GangPlaces:
    """In the order of their turns."""
    moment, lineup = turns.present.moment, turns.present.lineup
    taking = _RoomOfGangs(moment, lineup)
    runs = tuple(taking.place(ask) for ask in turns.gangs)
    owed = Counter(lineup.owed[name] for name in taking.wanted & lineup.owed.keys())
    return GangPlaces(taking.rest(), runs, tuple(taking.launches), frozenset(taking.wanted - lineup.owed.keys()), owed)


class _RoomOfGangs:
    """The room that gangs take of a lineup, one run after the other."""

    def __init__(self, moment: Moment, lineup: PlacementRows) -> None:
        self._moment, self._lineup = moment, lineup
        self._state = PassState(lineup.supply)
        self._taken: list[tuple[Batch, Mapping[int, int]]] = []
        self.launches: list[Launch] = []
        self.wanted: set[str] = set()

    def place(self, ask: Ask) -> RunPlaces:
        moment, run, size, supply = self._moment, ask.run, ask.run.gang_size, self._lineup.supply
        in_use = instances_of(moment, run)
        ready, gangs = startable(run, moment.now), startable(run, moment.now + moment.policy.linger_s)
        most = min(len(gangs), _allowed(moment, ask, len(in_use)))
        free, zone = self._room(ask.batch), zones_by_name(supply)
        may = 0 if moment.state.sharing.limits_queues else most  # nothing counts whole gangs against caps yet
        starts = whole_gangs(np.where(self._is_here(), free, 0), zone, size, min(may, len(ready)))
        self._take(ask.batch, starts)
        free = self._room(ask.batch)
        waits = whole_gangs(free, zone, size, may - len(starts))
        self._take(ask.batch, waits)
        self.launches += self._launches(run, ready, starts)
        used = {supply.row(row).id for row in np.concatenate([starts, waits]).ravel().tolist()}
        self.wanted |= used
        late = int((waits >= self._lineup.ready).any(axis=1).sum())
        return RunPlaces(
            run=run,
            batch=replace(ask.batch, count=most * size),
            left_over=replace(ask.batch, count=(most - len(starts) - len(waits)) * size),
            instances=frozenset(in_use | used),
            coming=late * size,
            ordinary=None,
            by_zone=self._by_zone(self._room(ask.batch)) if most > len(starts) + len(waits) else {},
        )

    def _room(self, batch: Batch) -> IntArray:
        """(m,) how many members each row takes."""
        rules = TaskKind.of(batch, self._lineup.supply, {}).rules
        rows, found = fitting(rules, self._state), np.zeros(len(self._lineup.supply), dtype=np.int64)
        found[rows] = room(rules, self._state, rows)
        return found

    def _is_here(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """(m,) whether tasks may start there now. The private address is part of the rendezvous."""
        known, here = self._moment.state.instances, np.zeros(len(self._lineup.supply), dtype=np.bool_)
        for row in range(self._lineup.ready):
            here[row] = bool(known[self._lineup.supply.row(row).id].private_ip)
        return here

    def _take(self, batch: Batch, gangs: IntArray) -> None:
        rows, counts = np.unique(gangs, return_counts=True)
        if len(rows):
            self._state.take(batch, rows, counts.astype(np.int64))
            self._taken.append((batch, dict(zip(rows.tolist(), counts.tolist(), strict=True))))

    def _launches(self, run: Run, ready: IntArray, starts: IntArray) -> list[Launch]:
        """Waves are counted when they are sent (`launches.in_waves`)."""
        state, found = self._moment.state, list[Launch]()
        for number, rows in zip(ready.tolist(), starts.tolist(), strict=False):
            attempt = next_attempt(run, number)
            for index, row in zip(members(run, number), rows, strict=True):
                instance = state.instances[self._lineup.supply.row(row).id]
                launch = int(run.tasks["launch"][index]) if run.tasks["attempts"][index] + 1 == attempt else 0
                key = AttemptKey(run.id, index, attempt, launch)
                found.append(
                    Launch(key, state.next_wave, state.started_by(state.next_wave), instance.id, instance.cell)
                )
        return found

    def _by_zone(self, free: IntArray) -> dict[str, tuple[str, ...]]:
        supply, found = self._lineup.supply, dict[str, tuple[str, ...]]()
        for row in np.flatnonzero(free > 0).tolist():
            zone = supply.row(row).attributes.get(ZONE, "")
            found[zone] = (*found.get(zone, ()), supply.row(row).id)
        return found

    def rest(self) -> PlacementRows:
        """The lineup without the room that was taken."""
        supply = self._lineup.supply
        if not self._taken:
            return self._lineup
        rows, source = list(supply.rows), np.arange(len(supply), dtype=np.int64)
        for batch, counts in self._taken:
            for row, count in counts.items():
                rows[row], source[row] = less(rows[row], batch, count), -1
        left = supply.rearranged(rows, source)
        same = replace(left, mix=supply.mix, interruption_rate=supply.interruption_rate, finish_at=supply.finish_at)
        return replace(self._lineup, supply=same)


def zones_by_name(supply: Supply) -> IntArray:
    """(m,) the zone of each row as a number, in the order of their names: the codes of kept rows depend on the past."""
    found = supply.attribute(ZONE)
    place = np.argsort(np.argsort(np.array([*found.values, ""])))
    zones: IntArray = place[found.codes].astype(np.int64)
    return zones


def instances_of(moment: Moment, run: Run) -> set[str]:
    """Ids of the instances with live attempts of the run."""
    on = moment.state.attempts.runs_on_instance
    return {name.decode() for name, tasks in on.items() if tasks.get(run.number)}


def _allowed(moment: Moment, ask: Ask, in_use: int) -> int:
    """How many more gangs may start, by the run's own limits."""
    run, size = ask.run, ask.run.gang_size
    if not ask.batch.count:
        return 0
    most = run.task_count
    if run.terms.max_concurrent is not None:
        most = run.terms.max_concurrent - len(moment.state.attempts.here_of_run(run.number))
    if run.terms.max_instances is not None:
        most = min(most, run.terms.max_instances - in_use)
    return max(0, most // size)
