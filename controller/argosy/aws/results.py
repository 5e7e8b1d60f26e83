"""Look-up of results, and the close of a run over them. (DESIGN D12b)"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from argosy.aws.cell import ALONE, PART_SIZE, Coordination, HomeClients, PartSize
from argosy.aws.errors import AWS_ERRORS, FailureKind, classify
from argosy.aws.history import HistoryWriter
from argosy.aws.manifest import (
    ManifestPart,
    StoredObject,
    earlier_entries,
    index_body,
    part_body,
    part_from,
    starts_of,
    task_counts,
)
from argosy.aws.markers import as_it_is, put_marker, take_back, withdraw_failure
from argosy.layout import (
    ATTEMPT_METADATA,
    attempt_uri,
    manifest_part_uri,
    manifest_uri,
    part_uri,
    split_s3,
)
from argosy.model.actions import CloseRun, FoldHistory, VerifyResult
from argosy.model.events import Event, HistoryPartWritten, ManifestPartWritten, NotCarriedOut, ResultSeen, RunClosed
from argosy.model.history_parts import ROWS_PER_PART
from argosy.model.money.ledger import cost_so_far
from argosy.model.runs import Run, RunStatus
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State

NO_CONDITION: Mapping[str, str] = {}
EVENT_SOURCE, EVENT_TYPE = "argosy", "Run State Change"
log = logging.getLogger(__name__)


class Results:
    """Looks results up and closes runs, a part of the manifest at a time. Renews the lease at every page."""

    def __init__(
        self,
        home: HomeClients,
        clock: Callable[[], float],
        coordination: Coordination = ALONE,
        part_size: PartSize = PART_SIZE,
    ) -> None:
        self._part_size = part_size
        self._s3, self._events, self._clock = home.s3, home.events, clock
        self._history = HistoryWriter(home.s3, coordination.appended)
        self._keep_alive, self._retries_of = coordination.keep_alive, coordination.retries_of

    def verify(self, action: VerifyResult, state: State) -> Event:
        """ResultSeen, with the attempt that the part names. Safe to call from several threads."""
        run = state.runs.get(action.run_id)
        if run is None:
            return NotCarriedOut("its run is closed")
        try:
            return self._part(run, action) or self._attempt_folder(run, action)
        except AWS_ERRORS as error:
            fault = classify(error)
            if fault.kind is FailureKind.NOT_FOUND:  # the bucket itself is gone
                return ResultSeen(run.id, action.index, 0)
            reason = f"the result of task {action.index} could not be looked up: {fault.text}"
            return NotCarriedOut(reason, about=Subject(Act.VERIFY, run.id), passing=fault.passing)

    def end(self, action: CloseRun, state: State) -> list[Event]:
        """Copy the rest of the run's history, a part at a time, then close it."""
        folded = self._fold(action.run_id, state, Act.CLOSE)
        if isinstance(folded, NotCarriedOut) or (folded is not None and folded.part.rows >= ROWS_PER_PART // 2):
            return [folded]  # there may be another part
        closing = self.close(action, state)
        return [closing] if folded is None else [folded, closing]

    def fold(self, action: FoldHistory, state: State) -> Event:
        """Write the next part of its history."""
        nothing = NotCarriedOut("there is nothing to compact", about=Subject(Act.FOLD, action.run_id), passing=True)
        return self._fold(action.run_id, state, Act.FOLD) or nothing

    def _fold(self, run_id: str, state: State, what: Act) -> HistoryPartWritten | NotCarriedOut | None:
        run = state.runs.get(run_id)
        if run is None:
            return NotCarriedOut("its run is closed")
        try:
            self._keep_alive()
            if what is Act.CLOSE and not run.manifest_bounds:
                self._history.note_instances(run, state)
            return self._history.fold(run)
        except AWS_ERRORS as error:
            fault = classify(error)
            reason = f"the history of run {run.id} could not be compacted: {fault.text}"
            return NotCarriedOut(reason, about=Subject(what, run.id), passing=fault.passing)

    def close(self, action: CloseRun, state: State) -> Event:
        """Write the next part of the manifest. After the last one: the manifest, then the marker as the last object,
        then send the event. A second close writes the same again. If the run was reopened in the meantime, it writes
        nothing that counts, or takes its marker back."""
        run = state.runs.get(action.run_id)
        if run is None:
            return NotCarriedOut("its run is closed")
        try:
            return self._close(run, state)
        except AWS_ERRORS as error:
            fault = classify(error)
            reason = f"run {run.id} could not be closed: {fault.text}"
            return NotCarriedOut(reason, about=Subject(Act.CLOSE, run.id), passing=fault.passing)

    def _close(self, run: Run, state: State) -> Event:
        """Raises AWS_ERRORS."""
        condition = as_it_is(self._s3, run)
        if self._was_reopened(run):
            return NotCarriedOut("its run was reopened in the meantime")
        if run.manifest_to.task == run.piece_count:
            manifest = index_body(run)
        else:
            part = self._next_part(run)
            written = ManifestPartWritten(run.id, run.retries, part.begin, part.end, part.after)
            if part.begin == part.end:
                return written
            manifest = part_body(run, part, state.instances, earlier_entries(self._s3, run, part))
            if not part.is_whole(run):
                self._put_json(manifest_part_uri(run.output, run.retries, part.begin, part.end), manifest)
                return written
        self._put_json(manifest_uri(run.output), manifest, condition)
        if self._was_reopened(run) or not self._mark(run):
            return NotCarriedOut("its run was reopened in the meantime")
        self._announce(run, cost_so_far(state, run, self._clock()))
        return RunClosed(run.id)

    def _was_reopened(self, run: Run) -> bool:
        """Whether another controller reopened it, so that this one holds the run as it was at an earlier try."""
        return self._retries_of(run.id) > run.retries

    def _mark(self, run: Run) -> bool:
        """Write the marker; False when it came too late and was taken back. The controller may have been paused during
        the request, so only a check afterwards can tell."""
        succeeded = run.final_status is RunStatus.SUCCEEDED
        put_marker(self._s3, run, succeeded)
        if self._was_reopened(run):
            take_back(self._s3, run, succeeded)
            return False
        if succeeded:
            withdraw_failure(self._s3, run)  # written by a controller that was paused and has not checked since
        return True

    def _part(self, run: Run, action: VerifyResult) -> ResultSeen | None:
        bucket, key = split_s3(part_uri(run.output, action.index // run.gang_size, run.terms.part_suffix))
        try:
            head = self._s3.head_object(Bucket=bucket, Key=key)
        except AWS_ERRORS as error:
            if classify(error).kind is FailureKind.NOT_FOUND:
                return None
            raise
        named = str(head.get("Metadata", {}).get(ATTEMPT_METADATA, ""))
        attempt = int(named) if named.isdecimal() and int(named) else action.attempt
        return ResultSeen(run.id, action.index, attempt, int(head["ContentLength"]))

    def _attempt_folder(self, run: Run, action: VerifyResult) -> ResultSeen:
        """One page of it: there may be millions of objects, and one is a result. The bytes are those of this page."""
        bucket, prefix = split_s3(attempt_uri(run.output, action.index // run.gang_size, action.attempt))
        stored = self._s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", ())
        attempt = action.attempt if stored else 0
        return ResultSeen(run.id, action.index, attempt, sum(int(each["Size"]) for each in stored))

    def _stored(self, uri: str, after: str) -> Iterator[StoredObject]:
        """Every object under an address whose name there comes after this one, in the order of the keys. Raises
        AWS_ERRORS."""
        bucket, prefix = split_s3(uri)
        request = {"Bucket": bucket, "Prefix": prefix, "StartAfter": prefix + after}
        while True:
            self._keep_alive()
            page = self._s3.list_objects_v2(**request)
            yield from ((each["Key"], int(each["Size"])) for each in page.get("Contents", ()))
            if not page.get("IsTruncated"):
                return
            request["ContinuationToken"] = page["NextContinuationToken"]

    def _next_part(self, run: Run) -> ManifestPart:
        """Raises AWS_ERRORS."""
        listings = (self._stored(run.output + start, after) for start, after in starts_of(run))
        return part_from(run, listings, self._part_size)

    def _put_json(self, uri: str, body: bytes, condition: Mapping[str, str] = NO_CONDITION) -> None:
        """condition: of the PUT, that no other controller has written it. Raises AWS_ERRORS."""
        self._keep_alive()
        bucket, key = split_s3(uri)
        self._s3.put_object(Bucket=bucket, Key=key, Body=body, ContentType="application/json", **condition)

    def _announce(self, run: Run, cost_usd: float) -> None:
        """Send the event. A failure that may pass raises AWS_ERRORS; any other is only logged, and the run closes."""
        detail = _detail(run, cost_usd, self._clock())
        entry = {"Source": EVENT_SOURCE, "DetailType": EVENT_TYPE, "Detail": json.dumps(detail)}
        try:
            answer = self._events.put_events(Entries=[entry])
        except AWS_ERRORS as error:
            if not classify(error).lasting:
                raise
            log.error("the end of run %s could not be announced: %s", run.id, classify(error).text)
            return
        if answer.get("FailedEntryCount"):
            log.error("the end of run %s was not announced: %s", run.id, answer["Entries"][0].get("ErrorCode"))


def _detail(run: Run, cost_usd: float, stopped_at: float) -> dict[str, Any]:
    """Modelled on AWS Batch's own event."""
    return {
        "runId": run.id,
        "name": run.name,
        "status": run.final_status.value,
        "previousStatus": run.status.value,
        "statusReason": run.status_reason or None,
        "tasks": task_counts(run),
        "output": run.output,
        "costUsd": cost_usd,
        "submittedAt": _iso(run.submitted_at),
        "startedAt": _iso(run.started_at),
        "stoppedAt": _iso(stopped_at),
    }


def _iso(at: float) -> str | None:
    return datetime.fromtimestamp(at, UTC).isoformat() if at else None
