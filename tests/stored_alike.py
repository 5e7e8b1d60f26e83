"""Would a controller that starts now have the same state as the running one? Otherwise a crash loses the difference.

Every change by a fact or an action has to be marked, or it is not stored: with a spot warning in memory only, the next
process places work on an instance with seconds to live.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from argosy.engine.loading import load, records_of
from argosy.model.attempts import AttemptTable
from argosy.model.damage import Damage, tried
from argosy.model.instances import Instance
from argosy.model.pools import Pool
from argosy.model.run_record import RunRecord
from argosy.model.run_terms import spec_and_terms
from argosy.model.runs import sort_key
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.tasks import TaskTable
from argosy.ports import Key, Store
from argosy.spec.earlier_versions import current

# By the first word of a document's key in the partition `STATE`: the member of `State` that such documents fill.
PARTS = {"POOLS": "pools", "INSTANCES": "instances", "ATTEMPTS": "attempts", "ENVIRONMENT": "environments"}


class _StoredRun(NamedTuple):
    documents: Mapping[Key, bytes]
    record: RunRecord
    tasks: TaskTable


class StoredState:
    """The state that a controller would load, for a check after each commit.

    A commit changes few documents, so only what differs from the last reading is decoded. Where one document of a part
    has changed, the whole part is decoded: all instances, all attempts, or the record and the tasks of one run.
    """

    def __init__(self) -> None:
        self._documents: dict[str, dict[str, bytes]] = {}
        self._last = State()
        self._runs: dict[str, _StoredRun] = {}

    def forgotten(self, state: State, store: Store) -> list[str]:
        """The differences between the state in memory, which has just been committed, and the stored one."""
        items = store.read_partition(documents.STATE)
        root = documents.decode(items[documents.ROOT]) if documents.ROOT in items else {}
        suspended = root.get("suspended", {}).keys()
        stored = self._without_runs(items, records_of(store, suspended))
        runs = {run_id: RunRecord.of(run) for run_id, run in state.runs.items()}
        found = [self._run(runs[run_id], store) for run_id in root.get("runs", ()) if run_id in runs.keys() - suspended]
        self._runs = {each.record.id: each for each in found if each is not None}
        return [*_differences(state, stored), *_of_runs(state, runs, self._runs)]

    def _without_runs(self, items: Mapping[str, bytes], suspended: Mapping[str, bytes]) -> State:
        """suspended: the records of suspended runs."""
        parts: dict[str, dict[str, bytes]] = {part: {} for part in (documents.ROOT, *PARTS)}
        for key, body in items.items():
            parts.setdefault(key.split("#")[0], {})[key] = body
        same = [part for part in PARTS if parts[part] == self._documents.get(part)]
        changed = {
            key: body for part in (documents.ROOT, *PARTS) if part not in same for key, body in parts[part].items()
        }
        found = documents.restore(0, changed, {name: (body, {}) for name, body in suspended.items()})
        for part in same:
            setattr(found, PARTS[part], getattr(self._last, PARTS[part]))
        self._documents, self._last = parts, found
        return found

    def _run(self, record: RunRecord, store: Store) -> _StoredRun | None:
        """The run as it is stored; None where it cannot be read. record: of the run in memory."""
        key = documents.RUNS, sort_key(record.id)
        found = store.read_many([key, *documents.partition_keys(record)])
        before = self._runs.get(record.id)
        if before is not None and before.documents == found:
            return before
        if key not in found:
            return None
        run = tried(record.id, lambda: _run_of(found, key, before.documents if before else {}))
        return None if isinstance(run, Damage) else run


def _run_of(found: Mapping[Key, bytes], key: Key, before: Mapping[Key, bytes]) -> _StoredRun:
    """key: of the record. before: the last reading. Raises one of `damage.FAULTS`."""
    record = documents.record_from(found[key])
    spec = documents.run_partition(record.id), documents.SPEC
    if spec not in found or found[spec] != before.get(spec):
        spec_and_terms(documents.decode(current(spec[1], found[spec])))
    tasks = TaskTable(record.task_count, record.halted)
    for _, name in found:
        if name.startswith("TASKS#"):
            tasks.unpack(int(name.split("#")[1]), found[_, name])
    return _StoredRun(found, record, tasks)


def forgotten(state: State, store: Store) -> list[str]:
    """The differences between the state in memory, which has just been committed, and a load of the whole state."""
    stored = load(store)
    runs = {run_id: RunRecord.of(run) for run_id, run in state.runs.items()}
    others = {run_id: _StoredRun({}, RunRecord.of(run), run.tasks) for run_id, run in stored.runs.items()}
    return [*_differences(state, stored), *_of_runs(state, runs, others)]


def _differences(state: State, stored: State) -> Iterator[str]:
    """Of everything but the open runs."""
    yield from _records(state.instances, stored.instances, Instance)
    yield from _records(state.pools, stored.pools, Pool)
    if state.announced != stored.announced:
        yield f"announced: {state.announced} in memory, {stored.announced} stored"
    for run_id in state.suspended.keys() ^ stored.suspended.keys():
        yield f"run {run_id}: suspended"
    for name in state.environments.keys() | stored.environments.keys():
        if _as_json(state, name) != _as_json(stored, name):
            yield f"environment {name}"
    if not _same_attempts(state, stored):
        mine, theirs = _attempts(state, state.attempts), _attempts(state, stored.attempts)
        for key in mine.keys() | theirs.keys():
            if mine.get(key) != theirs.get(key):
                yield f"attempt {key}: {mine.get(key)} in memory, {theirs.get(key)} stored"


def _of_runs(state: State, records: Mapping[str, RunRecord], stored: Mapping[str, _StoredRun]) -> Iterator[str]:
    """records: of the runs in memory."""
    for run_id, run in state.runs.items():
        if run_id not in stored:
            yield f"run {run_id}: not stored"
            continue
        _, record, tasks = stored[run_id]
        if records[run_id] != record:
            mine, theirs = records[run_id].to_json(), record.to_json()
            yield from (f"run {run_id}.{name}" for name in mine if mine[name] != theirs.get(name))
        for name in run.tasks.columns:
            if not np.array_equal(run.tasks[name], tasks[name]):
                yield f"run {run_id}: tasks.{name}"


def _as_json(state: State, name: str) -> dict[str, Any] | None:
    env = state.environments.get(name)
    return None if env is None else env.to_json()


def _same_attempts(state: State, stored: State) -> bool:
    """Whether all live attempts are in the same rows with the same columns, without a dictionary for each."""
    mine, theirs = state.attempts, stored.attempts
    rows = mine.live()
    return np.array_equal(rows, theirs.live()) and all(
        np.array_equal(mine[name][rows], theirs[name][rows]) for name in mine.columns
    )


def _attempts(state: State, table: AttemptTable) -> dict[Any, dict[str, Any]]:
    """By key, or by row where no run is known any more, the columns of every live attempt. state: has the runs."""
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
