"""Do kept rows give the same answers as rows made from the state?

A tick keeps results of earlier ticks to save time, which must change no answer. Otherwise tasks would be placed on
instances that have gone, or not at all, until the next process begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from argosy.engine.tick import Engine
from argosy.model.moment import Moment
from argosy.model.pools import as_registered
from argosy.model.runs import Run
from argosy.placement.demand import Batch
from argosy.placement.place import place
from argosy.placement.strategy import own_functions
from argosy.placement.supply import Codes, Supply
from argosy.scheduler.supply.roster import PlacementRows, Roster
from argosy.scheduler.turns.asks import asks_of

COLUMNS = ("free", "total", "healthy", "running_tasks", "tasks_left", "price_usd_per_hour")


def drifted(engine: Engine, places: bool = True) -> list[str]:
    """A sentence for each difference between what the engine has kept and its state.

    places: whether tasks are placed on both, which takes more time than all the rest.
    """
    state = engine.state
    if state is None:
        return []
    catalogue = as_registered(engine.catalogue, state.pools.values())
    return list(differences(engine.roster, Moment(state, catalogue, engine.now(), engine.policy), places))


def differences(roster: Roster, moment: Moment, places: bool = True) -> Iterator[str]:
    """Between the kept rows and the present state."""
    kept, fresh = roster.at(moment), Roster().at(moment)
    if (kept.supply.ids, kept.ready, kept.owed) != (fresh.supply.ids, fresh.ready, fresh.owed):
        yield f"kept: {kept.ready} of {kept.supply.ids} are ready, it should be {fresh.ready} of {fresh.supply.ids}"
        return
    for mine, theirs in zip(kept.supply.rows, fresh.supply.rows, strict=True):
        if mine != theirs:
            yield f"kept: {mine}, it should be {theirs}"
    yield from (f"kept: other {name} than there are" for name in _different_columns(kept.supply, fresh.supply))
    if not places:
        return
    batches = [replace(ask.batch, count=10) for ask in asks_of(moment, _runs_with_known_strategies(moment))]
    if not batches:
        return
    for part, remade in _parts(kept, fresh):
        if _placed(batches, part) != _placed(batches, remade):
            yield "kept: tasks go to other instances than on rows made from the state"


def _parts(kept: PlacementRows, fresh: PlacementRows) -> list[tuple[Supply, Supply]]:
    """Pairs on which placement may differ: a part without rows takes no task, and one with all of them is the whole."""
    pairs = ((kept.here, fresh.here), (kept.coming, fresh.coming))
    return [(kept.supply, fresh.supply), *(pair for pair in pairs if 0 < len(pair[0]) < len(kept.supply))]


def _different_columns(mine: Supply, theirs: Supply) -> Iterator[str]:
    """The numbers, counts of groups and attributes that differ."""
    for name in COLUMNS:
        if not np.array_equal(getattr(mine, name), getattr(theirs, name)):
            yield name
    if mine.group_names != theirs.group_names:
        yield "groups"
    for name in theirs.group_names:
        if not np.array_equal(mine.of_group(name), theirs.of_group(name)):
            yield f"tasks of {name}"
    for name in {name for row in theirs.rows for name in row.attributes}:
        if _texts(mine.attribute(name)) != _texts(theirs.attribute(name)):
            yield f"values of {name}"


def _texts(codes: Codes) -> list[str]:
    return [(*codes.values, "")[code] for code in codes.codes.tolist()]


def _runs_with_known_strategies(moment: Moment) -> list[Run]:
    return [run for run in moment.state.runs.values() if run.ready and not own_functions(run.terms.strategy)]


def _placed(batches: Sequence[Batch], supply: Supply) -> list[list[int]]:
    plan = place(batches, supply)
    return [column.tolist() for column in (plan.batch, plan.row, plan.count)]
