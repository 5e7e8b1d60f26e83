"""How is the whole state read from the store, all of one version?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TypeVar

from argosy.model import documents
from argosy.model.damage import FAULTS
from argosy.model.documents import Stored
from argosy.model.events import RunNotResumed, RunResumed
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run, sort_key
from argosy.model.state import State
from argosy.model.suspensions import reason_of
from argosy.ports import Key, StaleState, Store
from argosy.spec.stored import current

T = TypeVar("T")


def load(store: Store) -> State:
    """The state as it was last committed; what of it cannot be read is named in its `losses`.

    Raises StaleState when a controller commits meanwhile (try again), NewerFormat, OlderFormat, UnreadableState.
    """
    return stored(store).state()


def stored(store: Store) -> Stored:
    """What is stored now. Raises StaleState, NewerFormat, OlderFormat, UnreadableState."""
    version = store.version()
    items = store.read_partition(documents.STATE)
    runs = _runs(store, documents.active_runs(items))
    if version != store.version():
        raise StaleState("the state changed while it was read")
    return Stored(version, items, runs)


def record_of(store: Store, run_id: str) -> RunRecord:
    """As it is stored. Raises one of `damage.FAULTS` when it cannot be read, or is not there."""
    body = store.read((documents.RUNS, sort_key(run_id)))
    if body is None:
        raise KeyError(run_id)
    return _read(lambda: documents.record_from(body))


def _runs(store: Store, run_ids: Sequence[str]) -> dict[str, tuple[bytes, dict[str, bytes]]]:
    """The records and partitions of the runs that have a record: in batches, for there may be a thousand of them. A
    record that cannot be read says nothing of what there is in its partition."""
    records = records_of(store, run_ids)
    wanted: list[Key] = []
    for body in records.values():
        with suppress(Exception):  # FAULTS, or a fault of our own at this record: it stops nobody else
            wanted += documents.partition_keys(documents.record_from(body))
    partitions: dict[str, dict[str, bytes]] = {documents.run_partition(run_id): {} for run_id in records}
    for (partition, name), body in store.read_many(wanted).items():
        partitions[partition][name] = current(name, body)
    return {run_id: (body, partitions[documents.run_partition(run_id)]) for run_id, body in records.items()}


def records_of(store: Store, run_ids: Iterable[str]) -> dict[str, bytes]:
    """By run id, for those that there are."""
    keys = {run_id: (documents.RUNS, sort_key(run_id)) for run_id in run_ids}
    found = store.read_many(keys.values())
    return {run_id: found[key] for run_id, key in keys.items() if key in found}


def load_run(store: Store, run_id: str, ended: bool = True) -> Run | None:
    """A run that is not among the open ones, as it is stored; None when there is none. Raises one of `damage.FAULTS`
    when it cannot be read. ended: whether one that counts as ended is wanted as well."""
    body = store.read((documents.RUNS, sort_key(run_id)))
    record = None if body is None else _read(lambda: documents.record_from(body))
    if record is None or (record.has_ended and not ended):
        return None
    found = store.read_partition(documents.run_partition(run_id))
    partition = {name: current(name, body) for name, body in found.items()}
    return _read(lambda: documents.run_from(record, partition))


def tried_again(store: Store, run_id: str) -> RunResumed | RunNotResumed:
    """What is known of a suspended run whose pause is over."""
    try:
        run = load_run(store, run_id, ended=False)
    except FAULTS as fault:
        return RunNotResumed(run_id, reason_of(fault))
    return RunNotResumed(run_id, "") if run is None else RunResumed(run_id, run)


def _read(read: Callable[[], T]) -> T:
    """Raises one of `damage.FAULTS`, for faults of our own as well: they are about this run alone."""
    try:
        return read()
    except FAULTS:
        raise
    except Exception as fault:
        raise ValueError(f"{type(fault).__name__}: {fault}") from fault
