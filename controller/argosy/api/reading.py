"""Runs and the cluster in the store, for readers.

A run is found in its record once the controller has folded it in, before that in the inbox. Large parts are read only
on request: a run's tasks by chunk, the cluster without its runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from argosy.engine.loading import records_of
from argosy.model import ended_attempts, inbox
from argosy.model.damage import FAULTS
from argosy.model.history_parts import ROWS_PER_PART
from argosy.model.inbox import CancelRequest, RetryRequest, SubmitRequest
from argosy.model.packing import Unreadable
from argosy.model.resources import Resources
from argosy.model.run_record import RunRecord
from argosy.model.run_terms import RunTerms, spec_and_terms
from argosy.model.runs import RunStatus, sort_key
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.tasks import TaskTable
from argosy.ports import Key, Store
from argosy.spec.earlier_versions import current, request_from

ITEMS_AT_ONCE = 100  # of a history
SUBMITTED = "SUBMITTED"  # partition of pointers; body = the sort key in the inbox
_IN_INBOX = "inbox:"  # of a place in the inbox, where a page starts
_PLACE = re.compile(r"(\d{10})\.\d{6}#", re.ASCII)
_RUN_ID = re.compile(r"[a-z][a-z0-9-]{0,62}-[0-9]{6}-[0-9]{6}-[a-z0-9]{4}", re.ASCII)


def request_pointer(run_id: str) -> Key:
    """The item with the place of a run's request in the inbox, until the request is folded in. It makes the run's id
    unique.

    It has a separate partition, because the api, which writes it, has no right to write the versioned documents.
    """
    return SUBMITTED, run_id


def retry_pointer(run_id: str) -> Key:
    """The item with the present or former place in the inbox of the last request to retry the run. It stays when that
    is folded in, and the next request replaces it."""
    return SUBMITTED, f"{run_id}#retry"


def cancel_pointer(run_id: str) -> Key:
    """The same for the last request to cancel the run."""
    return SUBMITTED, f"{run_id}#cancel"


def run(store: Store, run_id: str) -> RunRecord | None:
    """The run's record, folded in or not; None for one that does not exist."""
    if not _RUN_ID.fullmatch(run_id):
        return None
    # If it is folded in between the first two reads, the third finds it.
    record = _folded(store, run_id) or _in_inbox(store, run_id) or _folded(store, run_id)
    if record is None or not (_may_be_reopened(record) or _may_be_cancelled(record)):
        return record
    [shown] = with_requests(store, [record])
    # A retry that was folded in since the first read is not in the inbox any more, and the record has changed.
    return shown if shown.retry_at or not shown.has_ended else _folded(store, run_id)


def spec_of(store: Store, run_id: str) -> dict[str, Any]:
    """What was submitted, folded in or not. Raises one of `damage.FAULTS` if it is missing or unreadable."""
    return submitted(store, run_id)[0]


def submitted(store: Store, run_id: str) -> tuple[dict[str, Any], RunTerms]:
    """The same, with its terms."""
    key = (documents.run_partition(run_id), documents.SPEC)
    body, request = store.read(key), None
    if body is None:
        request = _request_of(store, run_id)
        body = None if request else store.read(key)  # folded in between the first two reads
    if request is not None:
        return dict(request.spec), request.terms
    return spec_and_terms(documents.decode(current(documents.SPEC, _there(body, run_id))))


def _there(body: bytes | None, run_id: str) -> bytes:
    if body is None:
        raise KeyError(f"the spec of {run_id} is missing")
    return body


def run_of_token(store: Store, token: str) -> str | None:
    """The id of the run that was stored with this client token."""
    body = store.read((inbox.TOKENS, token))
    return None if body is None else str(json.loads(body)["runId"])


def is_stranded(store: Store, run_id: str) -> bool:
    """Whether a run has not ended according to its record, although no controller works on it: a person restored its
    record, or the root of the state. The record is read twice, because the controller may have closed the run in
    between."""
    return _is_at_work(store, run_id) and run_id not in open_runs(store) and _is_at_work(store, run_id)


def _is_at_work(store: Store, run_id: str) -> bool:
    record = _folded(store, run_id)
    return record is not None and not record.has_ended


def open_runs(store: Store) -> list[str]:
    """Ids of those that the controller works on; requests in the inbox are not among them."""
    root = store.read((documents.STATE, documents.ROOT))
    return documents.active_runs({} if root is None else {documents.ROOT: root})


def retries_of(store: Store, run_id: str) -> int:
    """How often the run was reopened, as of now; 0 when its record is gone or cannot be read."""
    with suppress(*FAULTS):
        record = _folded(store, run_id)
        return record.retries if record else 0
    return 0


def appended(store: Store, run_id: str, after: str) -> list[tuple[str, bytes]]:
    """The items of a run's history that commits appended after a given one ("" = all): as many as make one part."""
    found: list[tuple[str, bytes]] = []
    rows, place = 0, after or None
    while True:
        page, following = store.page(documents.history_partition(run_id), ITEMS_AT_ONCE, place, oldest_first=True)
        for key, body in page:
            rows += _rows_in(body)
            if found and rows > ROWS_PER_PART:
                return found
            found.append((key, body))
            place = key
        if following is None:
            return found


def _rows_in(body: bytes) -> int:
    """0 if that cannot be read."""
    with suppress(Unreadable):
        return len(ended_attempts.from_bytes(body))
    return 0


def with_requests(store: Store, records: Sequence[RunRecord]) -> list[RunRecord]:
    """The records. Those of runs about to be reopened do not count as ended: `retry_at` says since when. Runs that are
    to be cancelled count as cancelled at once.

    Takes as many reads as there are records that may be reopened or cancelled, whatever the inbox holds.
    """
    pointers = [retry_pointer(record.id) for record in records if _may_be_reopened(record)]
    pointers += [cancel_pointer(record.id) for record in records if _may_be_cancelled(record)]
    asked = {request.run_id: request for request in _in_inbox_at(store, pointers)}
    return [_as_asked(record, asked.get(record.id)) for record in records]


def _as_asked(record: RunRecord, request: RetryRequest | CancelRequest | None) -> RunRecord:
    if isinstance(request, RetryRequest):
        begun = {"status": RunStatus.SUBMITTED, "status_reason": "", "stopped_at": 0.0, "cancelled": False}
        return replace(record, **begun, retry_at=request.requested_at)  # type: ignore[arg-type]
    return replace(record, cancelled=True) if isinstance(request, CancelRequest) else record


def _may_be_reopened(record: RunRecord) -> bool:
    return record.has_ended and record.status is not RunStatus.SUCCEEDED


def _may_be_cancelled(record: RunRecord) -> bool:
    return not record.has_ended and not record.cancelled


def page(store: Store, limit: int, after: str | None) -> tuple[list[RunRecord], str | None]:
    """Records of runs, newest first, at most `limit`, and where the next page starts: first those that are not folded
    in yet. after: where a page starts, as a call before has answered.

    A run that is folded in between two pages is not left out. It may be shown twice if others were submitted within the
    same second.
    """
    if after is not None and not after.startswith(_IN_INBOX):
        return _page_of_folded(store, limit, after)
    place = after.removeprefix(_IN_INBOX) if after else ""
    waiting, following = store.page(inbox.INBOX, limit, place or None)
    records = [record for _, body in waiting if (record := _submitted(body))]
    if following is not None:
        return records, _IN_INBOX + following
    taken_in, following = _page_of_folded(store, limit, _folded_since(place))
    taken_in = [record for record in taken_in if not place.endswith(f"#{record.id}")]
    shown = {record.id for record in taken_in}
    records = [record for record in records if record.id not in shown]
    kept = taken_in[: limit - len(records)]
    if len(kept) < len(taken_in):
        following = sort_key(kept[-1].id) if kept else _IN_INBOX + waiting[-1][0]
    return [*records, *kept], following


def _page_of_folded(store: Store, limit: int, after: str | None) -> tuple[list[RunRecord], str | None]:
    found, following = store.page(documents.RUNS, limit, after)
    return [documents.record_from(body) for _, body in found], following


def _folded_since(place: str) -> str | None:
    """The beginning of the runs that were submitted in the second of a place in the inbox, or before; None for no
    place. Requests are folded in as they come, so later ones have been shown."""
    found = _PLACE.match(place)
    return f"{datetime.fromtimestamp(int(found[1]), UTC):%y%m%d%H%M%S}~" if found else None


def _submitted(body: bytes) -> RunRecord | None:
    """None for another request, or one that the controller will set aside for a person to examine."""
    with suppress(ValueError):
        request = request_from(body)
        return RunRecord.of_request(request) if isinstance(request, SubmitRequest) else None
    return None


def _in_inbox_at(store: Store, pointers: Sequence[Key]) -> Iterator[RetryRequest | CancelRequest]:
    """The last request for each of the runs, if it is not folded in yet."""
    places = store.read_many(pointers)
    for body in store.read_many((inbox.INBOX, place.decode()) for place in places.values()).values():
        with suppress(ValueError):
            request = request_from(body)
            if isinstance(request, RetryRequest | CancelRequest):
                yield request


def task_chunks(store: Store, record: RunRecord, start: int, end: int) -> Iterator[tuple[int, TaskTable]]:
    """(index of its first task, table) of each chunk that holds tasks start:end. Untouched chunks are defaults."""
    rows = TaskTable.chunk_rows
    for number in range(start // rows, -(-end // rows)):
        chunk = TaskTable(min(rows, record.task_count - number * rows), record.halted)
        body = store.read((documents.run_partition(record.id), documents.task_chunk(number)))
        if body is not None:
            chunk.unpack(0, body)
        yield number * rows, chunk


def cluster(store: Store) -> tuple[State, list[str]]:
    """Instances, pools, attempts and sums, without the runs; and the ids of the open runs."""
    items = store.read_partition(documents.STATE)
    run_ids = documents.active_runs(items)
    if run_ids:
        root = documents.decode(items[documents.ROOT])
        items = {**items, documents.ROOT: documents.encode({**root, "runs": []})}
    return documents.restore(0, items, {}), run_ids


def by_number(store: Store, run_ids: Sequence[str]) -> dict[int, RunRecord]:
    """The runs' records, by the run's number."""
    records = map(documents.record_from, records_of(store, run_ids).values())
    return {record.number: record for record in records}


def needs_by_number(store: Store, run_ids: Sequence[str]) -> dict[int, Resources]:
    """The needs of a task of each run, by the run's number."""
    return {number: record.needs for number, record in by_number(store, run_ids).items()}


def _folded(store: Store, run_id: str) -> RunRecord | None:
    body = store.read((documents.RUNS, sort_key(run_id)))
    return None if body is None else documents.record_from(body)


def _in_inbox(store: Store, run_id: str) -> RunRecord | None:
    request = _request_of(store, run_id)
    return None if request is None else RunRecord.of_request(request)


def _request_of(store: Store, run_id: str) -> SubmitRequest | None:
    place = store.read(request_pointer(run_id))
    body = None if place is None else store.read((inbox.INBOX, place.decode()))
    request = None if body is None else request_from(body)
    return request if isinstance(request, SubmitRequest) else None
