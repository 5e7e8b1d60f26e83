"""Would a controller that starts now have the same state as the running one? Otherwise a crash loses the difference.

Every change by a fact or an action has to be marked, or it is not stored: with a spot warning in memory only, the next
process places work on an instance with seconds to live.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from argosy.engine.loading import load
from argosy.model.instances import Instance
from argosy.model.pools import Pool
from argosy.model.state import State
from argosy.model.stored.run_record import RunRecord
from argosy.ports import Store


def forgotten(state: State, store: Store) -> list[str]:
    """The differences between the state in memory, which has just been committed, and the stored one."""
    stored = load(store)
    found = [*_records(state.instances, stored.instances, Instance), *_records(state.pools, stored.pools, Pool)]
    if state.announced != stored.announced:
        found.append(f"announced: {state.announced} in memory, {stored.announced} stored")
    found += [f"run {run_id}: suspended" for run_id in state.suspended.keys() ^ stored.suspended.keys()]
    found += [
        f"environment {name}"
        for name in state.environments.keys() | stored.environments.keys()
        if _as_json(state, name) != _as_json(stored, name)
    ]
    if not _same_attempts(state, stored):
        mine, theirs = _attempts(state), _attempts(stored)
        found += [
            f"attempt {key}: {mine.get(key)} in memory, {theirs.get(key)} stored"
            for key in mine.keys() | theirs.keys()
            if mine.get(key) != theirs.get(key)
        ]
    for run_id, run in state.runs.items():
        if run_id not in stored.runs:
            found.append(f"run {run_id}: not stored")
            continue
        other = stored.runs[run_id]
        record, stored_record = RunRecord.of(run), RunRecord.of(other)
        if record != stored_record:
            mine, theirs = record.to_json(), stored_record.to_json()
            found += [f"run {run_id}.{name}" for name in mine if mine[name] != theirs.get(name)]
        found += [
            f"run {run_id}: tasks.{name}"
            for name in run.tasks.columns
            if not np.array_equal(run.tasks[name], other.tasks[name])
        ]
    return found


def _as_json(state: State, name: str) -> dict[str, Any] | None:
    env = state.environments.get(name)
    return None if env is None else env.to_json()


def _same_attempts(state: State, stored: State) -> bool:
    """Whether all live attempts are in the same rows with the same columns, without a dictionary for each."""
    if any(run.number != stored.runs[run.id].number for run in state.runs.values() if run.id in stored.runs):
        return False
    mine, theirs = state.attempts, stored.attempts
    rows = mine.live()
    return np.array_equal(rows, theirs.live()) and all(
        np.array_equal(mine[name][rows], theirs[name][rows]) for name in mine.columns
    )


def _attempts(state: State) -> dict[Any, dict[str, Any]]:
    """By key, or by row where no run is known any more, the columns of every live attempt."""
    table = state.attempts
    return {
        (state.key_of(row) or row): {name: table[name][row].item() for name in table.columns}
        for row in table.live().tolist()
    }


def _records(mine: dict[str, Any], theirs: dict[str, Any], kind: type) -> Iterator[str]:
    for key in mine.keys() ^ theirs.keys():
        yield f"{kind.__name__} {key}: only {'in memory' if key in mine else 'stored'}"
    for key in mine.keys() & theirs.keys():
        if mine[key] == theirs[key]:
            continue
        for field in fields(kind):
            here, there = getattr(mine[key], field.name), getattr(theirs[key], field.name)
            if here != there:
                yield f"{kind.__name__} {key}.{field.name}: {here!r} in memory, {there!r} stored"
