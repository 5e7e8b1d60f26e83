"""What may users ask for, and what are they answered? One method for each action: SubmitRun, ValidateRun, PlanRun,
DescribeRun, ListRuns, CancelRun, RetryRun, ExplainRun, DescribeCluster, ListChanges, DescribeHistory, DescribeTask,
ListAttempts, ListTasks, ListInstances.

The api reads the state and puts requests into the inbox; it never writes the versioned documents (DESIGN D12). Users'
errors are replies, not exceptions: an exception from here is a fault of ours or of AWS.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import singledispatchmethod
from typing import Any

from argosy import layout
from argosy.api import cancelling, explaining, history, listing, reading, requests, retrying, spending, views
from argosy.api.admission import Admission, DeploymentLimits, Sources, admit, fingerprint
from argosy.api.caps import budget_warnings, hourly_faults, market_of
from argosy.api.changes import ChangesExpired, list_changes
from argosy.api.cluster_columns import at_work, in_form, leave_out_ended
from argosy.api.cluster_course import course_of
from argosy.api.estimates import estimates
from argosy.api.history import MOST_ATTEMPTS, NO_OBJECTS
from argosy.api.run_course import history_page
from argosy.catalogue.lookup import load_catalogue
from argosy.engine.loading import load
from argosy.model import inbox
from argosy.model.inbox import RetryRequest, SubmitRequest
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.run_record import RunRecord
from argosy.model.run_terms import RunTerms
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.ports import AlreadyExists, ObjectReader, StaleState, Store, Wake
from argosy.spec import bounds, shards
from argosy.spec.faults import Fault, SpecError
from argosy.spec.parse import parse_spec, to_json

ID_TRIES = 5
READ_TRIES = 5
# Bytes of a request as it is stored. A DynamoDB item holds 400 KB, and the ten requests that one tick folds in must fit
# into one transaction of 4 MB together with everything else that it writes.
REQUEST_LIMIT = 256 * 1024
_STATUS_CODES = {
    "ValidationException": 400,
    "ResourceNotFoundException": 404,
    "ConflictException": 409,
    "ChangesExpired": 410,
    "ThrottlingException": 429,
}


class RequestRefused(Exception):
    """A user's error, which becomes a reply."""

    def __init__(self, code: str, message: str, faults: Sequence[Fault] = ()) -> None:
        super().__init__(message)
        self.code, self.message, self.faults = code, message, faults


@dataclass(slots=True)
class Api:
    """The users' actions on one deployment. `now` returns epoch seconds."""

    store: Store
    wake: Wake
    sources: Sources
    limits: DeploymentLimits
    cluster: str
    cells: Sequence[str]
    now: Callable[[], float]
    policy: Policy = field(default_factory=Policy)
    pause: Callable[[float], None] | None = None  # waits for so many seconds; None = nothing is waited for
    objects: ObjectReader = NO_OBJECTS  # of the results buckets
    fleets: Sequence[tuple[str, str, str]] = ()  # (cell, instance type, zone) of every fleet that exists

    def handle(self, request: Any, request_id: str) -> dict[str, Any]:
        """The reply, as an envelope. `request_id` stands in errors and replaces a missing client token."""
        try:
            parsed = requests.parse_request(request)
            return {"statusCode": 200, "body": self._act(parsed, request_id)}
        except SpecError as refusal:
            count = len(refusal.faults)
            message = "1 field is invalid" if count == 1 else f"{count} fields are invalid"
            return envelope_of_error("ValidationException", message, request_id, refusal.faults)
        except RequestRefused as refusal:
            return envelope_of_error(refusal.code, refusal.message, request_id, refusal.faults)
        except ChangesExpired as refusal:
            envelope = envelope_of_error("ChangesExpired", str(refusal), request_id)
            envelope["body"]["error"]["oldest"] = refusal.oldest and refusal.oldest.to_text()
            return envelope

    @singledispatchmethod
    def _act(self, request: Any, request_id: str) -> dict[str, Any]:
        raise TypeError(f"no action for {type(request).__name__}")

    @_act.register
    def _submit(self, request: requests.SubmitRun, request_id: str) -> dict[str, Any]:
        token = hashlib.sha256((request.client_token or request_id).encode()).hexdigest()
        admission: Admission | None = None
        warnings: list[str] = []
        for attempt in range(ID_TRIES):
            earlier = self._run_of_token(token, request.spec)
            if earlier is not None:
                self.wake.controller()  # the first call may have ended between storing and waking
                return {**self._full_view(earlier), "created": False, "warnings": []}
            if admission is None:  # all that may be refused comes before the run is stored
                admission = self._admit(request.spec)
                warnings = self._warnings(admission)
            try:
                run_id = self._store_run(admission, token, attempt)
            except AlreadyExists:
                continue  # this token was just used, or a run has that id: look again, then take another id
            self.wake.controller()
            return {**self._full_view(run_id), "created": True, "warnings": warnings}
        raise RequestRefused("ConflictException", "other runs were submitted at the same moment: submit this one again")

    @_act.register
    def _validate(self, request: requests.ValidateRun, request_id: str) -> dict[str, Any]:
        admission, now = self._admit(request.spec), self.now()
        run_id = new_run_id(admission.form["name"], now, request_id)
        _stored_form(self._submit_request(admission, run_id, now))
        return {
            "name": admission.form["name"],
            "tasks": admission.task_count,
            "image": admission.image or None,
            "output": admission.form.get("output", self.limits.default_output),
            "warnings": self._warnings(admission),
        }

    def _admit(self, spec: Any) -> Admission:
        """Raises SpecError with every fault."""
        admission = admit(spec, self.limits, self.sources, self.now())
        has_cap = RunTerms.of(admission.form).max_hourly_usd is not None
        if has_cap and (faults := hourly_faults(admission.form, self._market())):
            raise SpecError(faults)
        return admission

    def _warnings(self, admission: Admission) -> list[str]:
        """What is allowed but may not be intended, a sentence each."""
        if RunTerms.of(admission.form).budget_usd is None:
            return [*admission.notes]
        return [*admission.notes, *budget_warnings(admission.form, self._market())]

    def _market(self) -> Moment:
        return market_of(reading.cluster(self.store)[0], self.fleets, self.now(), self.policy)

    def _run_of_token(self, token: str, spec: Any) -> str | None:
        """The id of the run that this token created. Refuses a token that was used with another spec."""
        body = self.store.read((inbox.TOKENS, token))
        if body is None:
            return None
        record = json.loads(body)
        if record["specSha256"] != fingerprint(to_json(parse_spec(spec))):
            raise RequestRefused(
                "ConflictException", f"this clientToken was already used for {record['runId']}, with another spec"
            )
        return str(record["runId"])

    def _store_run(self, admission: Admission, token: str, attempt: int) -> str:
        """Create the request, its token and the pointer to it, all or nothing. Raises AlreadyExists."""
        now = self.now()
        run_id = new_run_id(admission.form["name"], now, f"{token}{attempt}")
        body = _stored_form(self._submit_request(admission, run_id, now))
        place = inbox.inbox_key(now, run_id)
        pointer, forgotten_at = reading.request_pointer(run_id), now + requests.TOKEN_DAYS * 86_400
        made = {"runId": run_id, "specSha256": fingerprint(admission.form)}
        self.store.create(
            {
                (inbox.TOKENS, token): json.dumps(made).encode(),
                pointer: place.encode(),
                (inbox.INBOX, place): body,
            },
            expires_at={(inbox.TOKENS, token): forgotten_at, pointer: forgotten_at},
        )
        return run_id

    def _submit_request(self, admission: Admission, run_id: str, now: float) -> SubmitRequest:
        """What the controller is asked to do for an admitted run."""
        return SubmitRequest(
            run_id=run_id,
            submitted_at=now,
            spec=admission.form,
            task_count=admission.task_count,
            image=admission.image,
            output=layout.run_output(admission.form.get("output", self.limits.default_output), run_id),
            expects_result=shards.expects_result(admission.form),
        )

    @_act.register
    def _plan(self, request: requests.PlanRun, request_id: str) -> dict[str, Any]:
        from argosy.api.plan_question import answer  # loads the market and the placement engine: only plans need them

        return answer(self, admit(request.spec, self.limits, self.sources, self.now()))

    @_act.register
    def _describe(self, request: requests.DescribeRun, request_id: str) -> dict[str, Any]:
        record = spending.of_run(self.store, self._record(request.run_id), self.now(), self.policy)
        view = views.full_run_view(record)
        if "cost" in request.include:
            view["cost"] = {**views.cost_view(record), "estimates": estimates(record, self.policy.data_cell)}
        if "tasks" in request.include:
            view |= self._task_page(record, request)
        elif request.next_token is not None:
            raise SpecError([Fault("nextToken", 'is only possible with include: ["tasks"]')])
        return view

    def _task_page(self, record: RunRecord, request: requests.DescribeRun) -> dict[str, Any]:
        start = requests.index_of_page(request.next_token)
        end = min(start + request.max_results, record.task_count)
        state = reading.cluster(self.store)[0]
        rows: list[dict[str, Any]] = []
        chunks = list(reading.task_chunks(self.store, record, start, end))
        # There may have been a commit since the record was read. A record read after the chunks holds every reason that
        # they refer to by number.
        record = replace(record, reasons=self._record(request.run_id).reasons)
        for first, chunk in chunks:
            wanted = range(max(start - first, 0), min(end - first, chunk.rows))
            rows += views.task_rows(record, chunk, first, wanted, state, self.now())
        more = end < record.task_count
        return {"taskList": rows, "nextToken": requests.page_token(str(end)) if more else None}

    @_act.register
    def _list(self, request: requests.ListRuns, request_id: str) -> dict[str, Any]:
        after = None if request.next_token is None else requests.page_place(request.next_token)
        page, following = reading.page(self.store, request.max_results, after)
        records = reading.with_requests(self.store, page)
        runs = [views.run_view(each) for each in spending.up_to_now(self.store, records, self.now(), self.policy)]
        return {"runs": runs, "nextToken": None if following is None else requests.page_token(following)}

    @_act.register
    def _cancel(self, request: requests.CancelRun, request_id: str) -> dict[str, Any]:
        record = self._record(request.run_id)
        if not record.has_ended:
            if reading.is_stranded(self.store, request.run_id):
                with _refusing():  # the controller would set the request aside without a reply
                    retrying.check_readable(self.store, request.run_id)
            cancelling.put(self.store, record, request.reason, request_id, self.now())
            self.wake.controller()
            record = replace(record, cancelled=True)
        return views.full_run_view(record)

    @_act.register
    def _retry(self, request: requests.RetryRun, request_id: str) -> dict[str, Any]:
        record = self._record(request.run_id)
        now = max(self.now(), record.submitted_at)
        wanted = RetryRequest(request.run_id, now, request.failed, request.cancelled, request.budget_usd)
        with _refusing():
            created = retrying.put(self.store, record, wanted, request.client_token or request_id, self._market)
        self.wake.controller()
        tasks = retrying.task_count(record, wanted) if created else 0
        return {**self._full_view(request.run_id), "created": created, "tasksToRetry": tasks}

    @_act.register
    def _explain(self, request: requests.ExplainRun, request_id: str) -> dict[str, Any]:
        record = self._record(request.run_id)
        if request.index is not None and request.index >= record.task_count:
            raise SpecError([Fault("index", f"the run has {record.task_count} tasks, counted from 0")])
        run = self._open_run(request.run_id)
        if run is None:
            return explaining.not_open(record)
        state, its_run = run
        moment = Moment(state, load_catalogue(), self.now(), self.policy)
        return explaining.explain_run(moment, its_run, request.index, self.store.switches().deployment)

    def _open_run(self, run_id: str) -> tuple[State, Run] | None:
        """The whole state and a run in it; None when the run is not folded in yet, or is closed."""
        state = self.whole_state()
        return (state, state.runs[run_id]) if run_id in state.runs else None

    def whole_state(self) -> State:
        """The state as of the last commit. Raises RequestRefused if the controller commits faster than we read."""
        for _ in range(READ_TRIES):
            with suppress(StaleState):  # the controller committed while we were reading
                return load(self.store)
        raise RequestRefused("ThrottlingException", "the controller is busy: try again")

    @_act.register
    def _describe_cluster(self, request: requests.DescribeCluster, request_id: str) -> dict[str, Any]:
        state, run_ids = reading.cluster(self.store)
        records = reading.by_number(self.store, run_ids)
        needs = {number: record.needs for number, record in records.items()}
        left_out = leave_out_ended(state)
        view = views.cluster_view(state, needs, self.cluster, self.cells, self.now(), self.policy)
        if "attempts" in request.include:
            view["attempts"] = at_work(state, {number: record.id for number, record in records.items()})
        if "history" in request.include:
            view["history"] = course_of(self.store, request, self.now())
        return in_form({**view, "endedLeftOut": left_out}, request.form)

    @_act.register
    def _list_tasks(self, request: requests.ListTasks, request_id: str) -> dict[str, Any]:
        record = None if request.run_id is None else self._record(request.run_id)
        return listing.list_tasks(self.store, self.objects, request, record, self.now())

    @_act.register
    def _list_instances(self, request: requests.ListInstances, request_id: str) -> dict[str, Any]:
        return listing.list_instances(self.store, request, self.whole_state, self.policy)

    @_act.register
    def _list_changes(self, request: requests.ListChanges, request_id: str) -> dict[str, Any]:
        if request.run_id is not None:
            self._record(request.run_id)  # of a run that is not there nobody should wait for news
        return list_changes(self.store, request, self.now, self.pause)

    @_act.register
    def _describe_history(self, request: requests.DescribeHistory, request_id: str) -> dict[str, Any]:
        after, version = requests.place_of(request), self.store.version()
        view, following = history_page(self._history(request.run_id), version, after, self.now())
        return {**view, "nextToken": None if following is None else requests.token_of(request, following)}

    @_act.register
    def _list_attempts(self, request: requests.ListAttempts, request_id: str) -> dict[str, Any]:
        after = requests.place_of(request)
        version = self.store.version()
        past = self._history(request.run_id)
        page = history.attempts_page(past, after)
        # A record that is read after the rows holds every reason that they refer to by number.
        view = history.attempts_view(self._record(request.run_id), version, page, len(past.damaged))
        following = None if page.is_last or page.end is None else requests.token_of(request, page.end)
        return {**view, "nextToken": following}

    @_act.register
    def _describe_task(self, request: requests.DescribeTask, request_id: str) -> dict[str, Any]:
        record = self._record(request.run_id)
        if request.index >= record.task_count:
            raise SpecError([Fault("index", f"the run has {record.task_count} tasks, counted from 0")])
        version = self.store.version()
        past = self._history(record.id)
        rows = history.attempts_of_task(past, request.index)
        [(first, chunk)] = reading.task_chunks(self.store, record, request.index, request.index + 1)
        record, state = self._record(request.run_id), reading.cluster(self.store)[0]
        log = history.log_of(record, self.sources.definitions)
        return {
            "runId": record.id,
            "asOf": version,
            "index": request.index,
            "status": TaskStatus(int(chunk.statuses()[request.index - first])).name,
            "attempts": [history.task_view(record, row, self.cluster, log, state) for row in rows[-MOST_ATTEMPTS:]],
            "attemptsLeftOut": max(0, len(rows) - MOST_ATTEMPTS),
            "damaged": len(past.damaged),
        }

    def _history(self, run_id: str) -> history.History:
        return history.History(self.store, self.objects, self._record(run_id))

    def _full_view(self, run_id: str) -> dict[str, Any]:
        return views.full_run_view(self._record(run_id))

    def _record(self, run_id: str) -> RunRecord:
        record = reading.run(self.store, run_id)
        if record is None:
            raise RequestRefused("ResourceNotFoundException", f"there is no run {run_id[:100]!r}")
        return record


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except retrying.NotRetried as why:
        raise RequestRefused("ConflictException", str(why)) from why


def envelope_of_error(code: str, message: str, request_id: str, faults: Sequence[Fault] = ()) -> dict[str, Any]:
    """An error as users get it. Codes without a status in the table are faults of ours: 500."""
    error: dict[str, Any] = {"code": code, "message": message, "requestId": request_id}
    error["fieldList"] = [{"path": fault.path, "message": fault.message} for fault in faults]
    return {"statusCode": _STATUS_CODES.get(code, 500), "body": {"error": error}}


def new_run_id(name: str, now: float, seed: str) -> str:
    """`digits-261121-062733-k3f9`: the name, the second (UTC) and four characters derived from `seed`."""
    tail = base64.b32encode(hashlib.sha256(seed.encode()).digest())[:4].decode().lower()
    return f"{name}-{datetime.fromtimestamp(now, UTC):%y%m%d-%H%M%S}-{tail}"


def _stored_form(request: SubmitRequest) -> bytes:
    """The request as it is stored. Raises SpecError, at the largest field, when it is too large for an item.

    `spec.bounds` has measured what the user sent; the defaults were added since.
    """
    body = inbox.to_bytes(request)
    if len(body) <= REQUEST_LIMIT:
        return body
    path, size = bounds.largest(request.spec)
    share = f"takes {size} of the {len(body)} bytes of the run with all defaults; the limit is {REQUEST_LIMIT}"
    raise SpecError([Fault(path, f"{share}: put long items into an S3 object (itemsFrom)")])
