"""Changes to an open run: which are allowed, and the request to the controller.

A change is checked like a spec that had the new value from the start; faults that the spec already had are not faults
of the change. Durations become times, because they count from now, while the spec's own count from its submission.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from argosy.api import reading, requests
from argosy.api.admission.specs import check_spec
from argosy.api.admission.spending_caps import outgrows, too_low
from argosy.api.queues.in_force import queue_faults
from argosy.api.refusals import conflict
from argosy.api.request_context import RequestContext
from argosy.api.runs import costs
from argosy.model import inbox
from argosy.model.inbox import UpdateRequest
from argosy.model.program_versions import MOST_VERSIONS
from argosy.model.run_record import RunRecord
from argosy.model.run_terms import NEVER_ABSENT, OF_OPEN_RUNS, WHEN_RETRIED, Changes, RunTerms, changed, deadline_at
from argosy.model.wording import dollars
from argosy.ports import AlreadyExists, Key
from argosy.spec.faults import Fault, SpecError
from argosy.spec.terms import changed_form, path_of

JSON = dict[str, Any]
Faults = list[Fault]
Submitted = tuple[Mapping[str, Any], RunTerms]  # the JSON form of the spec, and what it asks for


def check_open(context: RequestContext, record: RunRecord) -> None:
    """Raises RequestRefused for a run that a change would not affect."""
    if record.has_ended:
        tail = "" if record.status == "SUCCEEDED" else f" (`argosy retry {record.id}` opens it again)"
        raise conflict(f"{record.id} has ended as {record.status}: only an open run can be changed{tail}")
    if record.suspended_at:
        raise conflict(f"{record.id} is suspended: change it once the controller has resumed it")
    if not record.retry_at and (record.cancelled or (record.halted and not record.revives)):
        why = "it was cancelled" if record.cancelled else record.status_reason or "it is being ended"
        raise conflict(f"{record.id} starts no more tasks ({why}): a change would have no effect")
    if record.number and not record.retry_at and reading.is_stranded(context.store, record.id):
        raise conflict(f"the controller does not have {record.id}: `argosy retry {record.id}` hands it over again")


def checked(context: RequestContext, record: RunRecord, submitted: Submitted, given: Changes) -> JSON:
    """The changes as they are stored. Raises SpecError with every fault, and RequestRefused for too small a budget."""
    if faults := [*_names(given)]:
        raise SpecError(faults)
    _judge(context, record, submitted, given)
    _check_budget(context, record, given.get("budgetUsd"))
    return {**given, **_deadline(given, context.now())}


def resized(context: RequestContext, record: RunRecord, submitted: Submitted, size: Changes) -> JSON:
    """The needs of each task after a retry of the run, in the stored form. Raises SpecError with every fault."""
    _, terms = submitted
    if terms.task_definition:
        name = terms.task_definition
        way = "register a revision with more, because a retry of the run uses the family's latest one"
        raise SpecError([Fault(each, f"is set by the task definition {name}: {way}") for each in size])
    _judge(context, record, submitted, size, prefix="")
    before = changed(terms, record.changes)
    if outgrows(before, changed(before, size), context.market()):
        largest = (
            "no instance type that the run may use, by its constraints, cells and purchase options, holds such a task"
        )
        raise SpecError([Fault(each, f"is too much: {largest}") for each in size])
    return dict(size)


def check_job(context: RequestContext, record: RunRecord, submitted: Submitted, job: str) -> None:
    """Another version of the program, for a retry. Raises SpecError, and RequestRefused for one too many."""
    spec, _ = submitted
    if "job" not in spec:
        why = "is only possible for a run whose program was uploaded with it: submit the changed program as a run"
        raise SpecError([Fault("job", why)])
    if len(record.programs) >= MOST_VERSIONS:
        raise conflict(f"{record.id} has had {MOST_VERSIONS} versions of its program, the most: submit a run")
    known, now = _faults(context, spec, context.now()), context.now()
    if faults := [each for each in _faults(context, {**spec, "job": job}, now) if each not in known]:
        raise SpecError(faults)


def _judge(
    context: RequestContext, record: RunRecord, submitted: Submitted, given: Changes, prefix: str = "changes."
) -> None:
    """Raises SpecError with every fault that the spec did not have before. prefix: of the names of the given fields."""
    spec, terms = submitted
    before, now = changed_form(spec, record.changes), context.now()
    known = _faults(context, before, now)
    faults = [fault for fault in _faults(context, changed_form(before, given), now) if fault not in known]
    if not faults:
        faults = _faults_of_terms(context, changed(terms, {**record.changes, **given}), given)
    if faults:
        names = {path_of(name): f"{prefix}{name}" for name in given}
        raise SpecError([Fault(names.get(fault.path, fault.path), fault.message) for fault in faults])


def _faults_of_terms(context: RequestContext, terms: RunTerms, given: Changes) -> Faults:
    faults = queue_faults(context, terms) if "queue" in given else []
    if not faults and not given.keys().isdisjoint({"queue", "maxHourlyCost", *WHEN_RETRIED}):
        faults = too_low(terms, context.market, path="queue" if "queue" in given else "resources")
    return faults


def _names(given: Changes) -> Faults:
    known = ", ".join(OF_OPEN_RUNS)
    wrong = [
        Fault(f"changes.{name[:60]}", f"cannot be changed in an open run; these can: {known}")
        for name in given
        if name not in OF_OPEN_RUNS
    ]
    absent = sorted(name for name in NEVER_ABSENT & given.keys() if given[name] is None)
    return wrong + [Fault(f"changes.{name}", "must have a value, not null") for name in absent]


def _faults(context: RequestContext, form: Mapping[str, Any], now: float) -> Faults:
    try:
        check_spec(form, context.limits, now)
    except SpecError as refusal:
        return list(refusal.faults)
    return []


def _check_budget(context: RequestContext, record: RunRecord, usd: float | None) -> None:
    if usd is None:
        return
    spent = costs.of_run(context.store, record, context.now(), context.policy).cost_usd
    if usd <= spent:
        sentence = f"changes.budgetUsd: {record.id} has spent {dollars(spent)} already, and {dollars(usd)} is no more"
        raise conflict(f"{sentence} than that: `argosy cancel {record.id}` stops it")


def _deadline(given: Changes, now: float) -> JSON:
    text = given.get("deadline")
    return {} if text is None else {"deadline": datetime.fromtimestamp(deadline_at(text, now), UTC).isoformat()}


def put(context: RequestContext, record: RunRecord, request: requests.UpdateRun, changes: Changes, token: str) -> bool:
    """Put the request into the inbox. False: the same request, delivered twice at once, is already there."""
    key = _token_key(record.id, token)
    asked_at = max(context.now(), record.submitted_at, record.retry_at + 1e-6)  # after the request that it changes
    body = inbox.to_bytes(UpdateRequest(record.id, asked_at, changes, request.reason))
    place = inbox.inbox_key(asked_at, f"{record.id}#update#{key[1][:16]}")
    try:
        context.store.create(
            {key: _wish(request), (inbox.INBOX, place): body},
            expires_at={key: asked_at + requests.TOKEN_DAYS * 86_400},
        )
    except AlreadyExists:
        return False
    return True


def was_asked(context: RequestContext, request: requests.UpdateRun, token: str) -> bool:
    """Whether this token has made this change. Raises RequestRefused if it has made another one."""
    earlier = context.store.read(_token_key(request.run_id, token))
    if earlier is not None and earlier != _wish(request):
        raise conflict("this clientToken has already made a different change to this run")
    return earlier is not None


def _token_key(run_id: str, token: str) -> Key:
    return inbox.TOKENS, hashlib.sha256(f"update\0{run_id}\0{token}".encode()).hexdigest()


def _wish(request: requests.UpdateRun) -> bytes:
    return json.dumps({"runId": request.run_id, "changes": request.changes}, sort_keys=True).encode()
