"""The whole state, read from the store at one version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TypeVar

from argosy.model.damage import FAULTS
from argosy.model.events import RunNotResumed, RunResumed
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run, sort_key
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.stored.documents import StoredItems
from argosy.model.suspensions import reason_of
from argosy.ports import Key, StaleState, Store
from argosy.spec.earlier_versions import current

T = TypeVar("T")


def load(store: Store) -> State:
    """The last committed state. `losses` names the unreadable documents.

    Raises StaleState when another controller commits in the meantime (try again), NewerFormat, OlderFormat,
    UnreadableState.
    """
    return stored(store).state()


def stored(store: Store) -> StoredItems:
    """The stored state. Raises StaleState, NewerFormat, OlderFormat, UnreadableState."""
    version = store.version()
    items = store.read_partition(documents.STATE)
    runs = _runs(store, documents.active_runs(items))
    if version != store.version():
        raise StaleState("the state changed while it was read")
    return StoredItems(version, items, runs)


def record_of(store: Store, run_id: str) -> RunRecord:
    """The stored record of a run. Raises one of `damage.FAULTS` when it is missing or cannot be read."""
    body = store.read((documents.RUNS, sort_key(run_id)))
    if body is None:
        raise KeyError(run_id)
    return _read(lambda: documents.record_from(body))


def _runs(store: Store, run_ids: Sequence[str]) -> dict[str, tuple[bytes, dict[str, bytes]]]:
    """The records and partitions of the runs that have a record, read in batches, for there may be a thousand of them.
    A record that cannot be read says nothing about its partition."""
    records = records_of(store, run_ids)
    wanted: list[Key] = []
    for body in records.values():
        with suppress(Exception):  # FAULTS, or Argosy's own fault at this record: it stops no other run
            wanted += documents.partition_keys(documents.record_from(body))
    partitions: dict[str, dict[str, bytes]] = {documents.run_partition(run_id): {} for run_id in records}
    for (partition, name), body in store.read_many(wanted).items():
        partitions[partition][name] = current(name, body)
    return {run_id: (body, partitions[documents.run_partition(run_id)]) for run_id, body in records.items()}


def records_of(store: Store, run_ids: Iterable[str]) -> dict[str, bytes]:
    """Records by run id, for those that exist."""
    keys = {run_id: (documents.RUNS, sort_key(run_id)) for run_id in run_ids}
    found = store.read_many(keys.values())
    return {run_id: found[key] for run_id, key in keys.items() if key in found}


def load_run(store: Store, run_id: str, ended: bool = True) -> Run | None:
    """A closed run as it is stored; None when there is none. Raises one of `damage.FAULTS` when it cannot be read.
    ended: whether to return runs that count as ended as well."""
    body = store.read((documents.RUNS, sort_key(run_id)))
    record = None if body is None else _read(lambda: documents.record_from(body))
    if record is None or (record.has_ended and not ended):
        return None
    found = store.read_partition(documents.run_partition(run_id))
    partition = {name: current(name, body) for name, body in found.items()}
    return _read(lambda: documents.run_from(record, partition))


def tried_again(store: Store, run_id: str) -> RunResumed | RunNotResumed:
    """The stored record of a suspended run whose pause is over."""
    try:
        run = load_run(store, run_id, ended=False)
    except FAULTS as fault:
        return RunNotResumed(run_id, reason_of(fault))
    return RunNotResumed(run_id, "") if run is None else RunResumed(run_id, run)


def _read(read: Callable[[], T]) -> T:
    """Raises one of `damage.FAULTS`, for Argosy's own faults as well: they concern this run alone."""
    try:
        return read()
    except FAULTS:
        raise
    except Exception as fault:
        raise ValueError(f"{type(fault).__name__}: {fault}") from fault
