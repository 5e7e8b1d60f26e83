"""SubmitRun, ValidateRun and PlanRun: how a run begins."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from argosy import layout
from argosy.api import reading, requests
from argosy.api.admission.specs import Admission, admit, fingerprint
from argosy.api.admission.spending_caps import budget_warnings, market_of, too_low
from argosy.api.queues.in_force import check_queue, may_exceed
from argosy.api.refusals import conflict
from argosy.api.request_context import Actions, RequestContext
from argosy.model import inbox
from argosy.model.damage import FAULTS
from argosy.model.inbox import SubmitRequest
from argosy.model.resources import Resources
from argosy.model.run_record import RunRecord
from argosy.model.run_terms import Dependency, RunTerms
from argosy.model.runs import RunStatus
from argosy.model.stored import documents
from argosy.planning.forecast import pulled_s, seconds_of
from argosy.planning.plan import plan_run
from argosy.planning.question import PlanQuestion
from argosy.ports import AlreadyExists, Key, Store
from argosy.spec import bounds, shards
from argosy.spec.faults import Fault, SpecError, shown
from argosy.spec.overrides import length_faults
from argosy.spec.parse import parse_spec, to_json
from argosy.spec.templates import fill_outputs, name_of

ID_TRIES = 5
# Bytes of a request as it is stored. A DynamoDB item holds 400 KB, and the ten requests that one tick folds in must fit
# into one transaction of 4 MB together with everything else that it writes.
REQUEST_LIMIT = 256 * 1024

# Every commit writes the ids of all open runs in one item, of which 400 KB holds about 23,000. Those that wait in the
# inbox come on top.
MOST_OPEN_RUNS = 5_000

PAST_RUNS_READ = 200  # the newest; a page of the store


def deployed_kind(terms: RunTerms) -> str:
    """Of a run that `argosy env` starts; "" = none."""
    return "" if terms.service is None else "service" if terms.daemon is None else "daemon"


def _submit(context: RequestContext, request: requests.SubmitRun, request_id: str) -> dict[str, Any]:
    token = hashlib.sha256((request.client_token or request_id).encode()).hexdigest()
    admission: Admission | None = None
    warnings: list[str] = []
    for attempt in range(ID_TRIES):
        earlier = _run_of_token(context, token, request.spec)
        if earlier is not None:
            context.wake.controller()  # the first call may have ended between storing and waking
            return {**context.full_view(earlier), "created": False, "warnings": []}
        if admission is None:  # all that may be refused comes before the run is stored
            admission = admitted(context, request.spec)
            _check_number(context)
            warnings = warnings_of(context, admission)
        try:
            run = new_run(context, admission, token, attempt)
            context.store.create(run.items, expires_at=run.expires_at)
        except AlreadyExists:
            continue  # this token was just used, or a run has that id: read again, then take another id
        context.wake.controller()
        return {**context.full_view(run.run_id), "created": True, "warnings": warnings}
    raise conflict("other runs were submitted at the same time: submit this one again")


def _check_number(context: RequestContext) -> None:
    """Raises RequestRefused at the limit of open runs. While the state is unreadable, or of another version, their
    number is unknown, and the submitted run waits in the inbox."""
    try:
        count = len(reading.open_runs(context.store))
    except FAULTS:
        return
    if count >= MOST_OPEN_RUNS:
        raise conflict(
            f"{MOST_OPEN_RUNS:,} runs are open, the most that a deployment allows: submit this one when some have"
            " ended, or combine runs into one (array.size, array.items)"
        )


def _check_kind(admission: Admission) -> None:
    """Raises SpecError for a service or daemon, which is never done: neither a user nor a schedule starts its run."""
    if kind := deployed_kind(admission.terms):
        name = admission.terms.name
        step = f"`argosy env create FILE` and `argosy env deploy {name}` do so"
        raise SpecError([Fault("kind", f"a {kind} never ends: deploy it instead; {step}")])


def _validate(context: RequestContext, request: requests.ValidateRun, request_id: str) -> dict[str, Any]:
    admission, now = with_dependencies(context.store, admitted(context, request.spec)), context.now()
    run_id = new_run_id(admission.terms.name, now, request_id)
    stored_form(_submit_request(context, admission, run_id, now))
    return {
        "name": admission.terms.name,
        "tasks": admission.task_count,
        "image": admission.image or None,
        "output": admission.terms.output or context.limits.default_output,
        "warnings": warnings_of(context, admission),
    }


def admitted(context: RequestContext, spec: Any) -> Admission:
    """The reply for a run of this spec, if it were submitted now. Raises SpecError with every fault."""
    admission = admit(spec, context.limits, context.sources, context.now())
    check_queue(context, admission.terms)
    _check_owner(context, admission.terms)
    if may_exceed(context, admission.terms) and (faults := too_low(admission.terms, context.market)):
        raise SpecError(faults)
    return admission


def _check_owner(context: RequestContext, terms: RunTerms) -> None:
    """Raises SpecError for a spec whose owner is not its sender."""
    if context.owner and terms.owner not in ("", context.owner):
        told = f"is {context.owner}, by its signature: leave it out, or send the request unsigned (--unsigned)"
        raise SpecError([Fault("owner", told)])


def warnings_of(context: RequestContext, admission: Admission) -> list[str]:
    """Sentences about what is allowed but perhaps not intended."""
    if admission.terms.budget_usd is None:
        return [*admission.notes]
    return [*admission.notes, *budget_warnings(admission.terms, context.market())]


def _run_of_token(context: RequestContext, token: str, spec: Any) -> str | None:
    """The id of the run that this token created. Refuses a token that was used with another spec."""
    body = context.store.read((inbox.TOKENS, token))
    if body is None:
        return None
    record = json.loads(body)
    if record["specSha256"] != fingerprint(to_json(parse_spec(spec))):
        raise conflict(f"this clientToken was already used for {record['runId']}, with a different spec")
    return str(record["runId"])


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run as it is stored, all or nothing: its request, its token and the pointer to it."""

    run_id: str
    items: dict[Key, bytes]
    expires_at: dict[Key, float]


def new_run(context: RequestContext, admission: Admission, token: str, attempt: int) -> NewRun:
    """token: of the request, as hex digits; attempt: another one gives another id. Raises SpecError."""
    _check_kind(admission)
    now = context.now()
    run_id = new_run_id(admission.terms.name, now, f"{token}{attempt}")
    body = stored_form(_submit_request(context, with_dependencies(context.store, admission), run_id, now))
    place = inbox.inbox_key(now, run_id)
    pointer, forgotten_at = reading.request_pointer(run_id), now + requests.TOKEN_DAYS * 86_400
    made = {"runId": run_id, "specSha256": fingerprint(admission.form)}
    items = {
        (inbox.TOKENS, token): json.dumps(made).encode(),
        pointer: place.encode(),
        (inbox.INBOX, place): body,
    }
    return NewRun(run_id, items, {(inbox.TOKENS, token): forgotten_at, pointer: forgotten_at})


def _submit_request(context: RequestContext, admission: Admission, run_id: str, now: float) -> SubmitRequest:
    """The request to the controller for an admitted run."""
    return SubmitRequest(
        run_id=run_id,
        submitted_at=now,
        spec=admission.form,
        terms=admission.terms,
        task_count=admission.task_count,
        image=admission.image,
        output=layout.run_output(admission.terms.output or context.limits.default_output, run_id),
        expects_result=shards.expects_result(admission.form),
        proven_owner=context.owner,
    )


def with_dependencies(store: Store, admission: Admission) -> Admission:
    """The run as it is stored, with the locations of the results that it names. Raises SpecError with every fault.

    The controller checks the other runs again, because they continue."""
    wanted = admission.terms.depends_on
    if not wanted:
        return admission
    records = {each.run_id: reading.run(store, each.run_id) for each in wanted}
    faults = [
        fault
        for number, each in enumerate(wanted)
        for fault in _faults(f"dependsOn[{number}]", each, records[each.run_id], admission.task_count)
    ]
    if faults:
        raise SpecError(faults)
    outputs = {name_of(run_id): record.output for run_id, record in records.items() if record is not None}
    form = fill_outputs(admission.form, outputs)
    if faults := list(length_faults(form)):
        raise SpecError(faults)
    return replace(admission, form=form)


def _faults(path: str, dependency: Dependency, record: RunRecord | None, tasks: int) -> Iterator[Fault]:
    if record is None:
        yield Fault(f"{path}.run", f"there is no run {shown(dependency.run_id)}")
        return
    if record.healthy_s is not None:
        yield Fault(f"{path}.run", f"{record.id} is a run of the service {record.name}, which never ends")
    if dependency.one_to_one and record.task_count != tasks:
        sizes = f"{record.id} has {record.task_count:,} tasks and this run {tasks:,}"
        yield Fault(f"{path}.type", f"N_TO_N needs as many tasks in both runs: {sizes}")
    failed = record.has_ended and record.status is not RunStatus.SUCCEEDED
    if failed and not (dependency.on_end or dependency.one_to_one):
        step = f"`argosy retry {record.id}` retries it, or set on: end to accept any outcome"
        yield Fault(f"{path}.run", f"{record.id} has ended {record.status.value}: {step}")


def _plan(context: RequestContext, request: requests.PlanRun, request_id: str) -> dict[str, Any]:
    admission = admit(request.spec, context.limits, context.sources, context.now())
    check_queue(context, admission.terms)
    _check_owner(context, admission.terms)
    if kind := deployed_kind(admission.terms):
        raise SpecError([Fault("kind", f"a {kind} never ends, so its cost and its end cannot be planned")])
    terms = admission.terms
    records = list(_past(context.store, terms.name))
    market = market_of(context.whole_state(), context.fleets, context.now(), context.policy)
    about_limits = [*(fault.text() for fault in too_low(terms, lambda: market)), *budget_warnings(terms, market)]
    question = PlanQuestion(
        moment=market,
        terms=terms,
        task_count=admission.task_count,
        needs=_needs(terms, records),
        seconds=seconds_of(terms, records),
        fleets=context.fleets,
        home=context.cells[0],
        warnings=[*about_limits, *admission.notes],
        owner=context.owner,
        image_bytes=context.sources.image_bytes(admission.image),
        pulled_s=pulled_s(records, admission.image) if admission.image else None,
    )
    return plan_run(question)


def _past(store: Store, name: str) -> Iterator[RunRecord]:
    """Records of earlier runs of the same name, newest first."""
    page, _ = store.page(documents.RUNS, PAST_RUNS_READ)
    return (record for _, body in page if (record := documents.record_from(body)).name == name)


def _needs(terms: RunTerms, records: Sequence[RunRecord]) -> Resources:
    """The needs of a task: from the spec, or, for a registered task definition, from an earlier run of the same
    name."""
    if not terms.task_definition:
        return terms.needs
    family = terms.task_definition.partition(":")[0]
    for record in records:
        if f":task-definition/{family}:" in record.task_definition:
            return record.needs
    sentence = "the needs of its tasks are unknown until a run of this name has been submitted, so it cannot be planned"
    raise SpecError([Fault("taskDefinition", sentence)])


def new_run_id(name: str, now: float, seed: str) -> str:
    """`digits-261121-062733-k3f9`: the name, the second (UTC) and four characters derived from `seed`."""
    tail = base64.b32encode(hashlib.sha256(seed.encode()).digest())[:4].decode().lower()
    return f"{name}-{datetime.fromtimestamp(now, UTC):%y%m%d-%H%M%S}-{tail}"


def stored_form(request: SubmitRequest) -> bytes:
    """The request as it is stored. Raises SpecError, at the largest field, when it is too large for an item.

    `spec.bounds` has measured the user's text; the defaults were added since.
    """
    body = inbox.to_bytes(request)
    if len(body) <= REQUEST_LIMIT:
        return body
    path, size = bounds.largest(request.spec)
    share = f"takes {size} of the {len(body)} bytes of the run with all defaults; the limit is {REQUEST_LIMIT}"
    raise SpecError([Fault(path, f"{share}: put long items into an S3 object (itemsFrom)")])


ACTIONS: Actions = {requests.SubmitRun: _submit, requests.ValidateRun: _validate, requests.PlanRun: _plan}
