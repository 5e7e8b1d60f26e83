"""How does a run begin? SubmitRun, ValidateRun, PlanRun."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from argosy import layout
from argosy.api import reading, requests
from argosy.api.admission import Admission, admit, fingerprint
from argosy.api.caps import budget_warnings, hourly_faults
from argosy.api.dependencies import with_dependencies
from argosy.api.means import Actions, Means
from argosy.api.refusals import RequestRefused
from argosy.api.sharing_actions import check_queue
from argosy.model import inbox
from argosy.model.damage import FAULTS
from argosy.model.inbox import SubmitRequest
from argosy.model.run_terms import RunTerms
from argosy.ports import AlreadyExists, Key
from argosy.spec import bounds, shards
from argosy.spec.faults import Fault, SpecError
from argosy.spec.parse import parse_spec, to_json

ID_TRIES = 5
# Bytes of a request as it is stored. A DynamoDB item holds 400 KB, and the ten requests that one tick folds in must fit
# into one transaction of 4 MB together with everything else that it writes.
REQUEST_LIMIT = 256 * 1024

# Every commit writes the ids of all open runs in one item, of which 400 KB holds about 23,000. Those that wait in the
# inbox come on top.
MOST_OPEN_RUNS = 5_000

DEPLOYED = ("service", "daemon")  # kinds that `argosy env` starts


def _submit(means: Means, request: requests.SubmitRun, request_id: str) -> dict[str, Any]:
    token = hashlib.sha256((request.client_token or request_id).encode()).hexdigest()
    admission: Admission | None = None
    warnings: list[str] = []
    for attempt in range(ID_TRIES):
        earlier = _run_of_token(means, token, request.spec)
        if earlier is not None:
            means.wake.controller()  # the first call may have ended between storing and waking
            return {**means.full_view(earlier), "created": False, "warnings": []}
        if admission is None:  # all that may be refused comes before the run is stored
            admission = admitted(means, request.spec)
            _check_number(means)
            warnings = warnings_of(means, admission)
        try:
            run = new_run(means, admission, token, attempt)
            means.store.create(run.items, expires_at=run.expires_at)
        except AlreadyExists:
            continue  # this token was just used, or a run has that id: look again, then take another id
        means.wake.controller()
        return {**means.full_view(run.run_id), "created": True, "warnings": warnings}
    raise RequestRefused("ConflictException", "other runs were submitted at the same moment: submit this one again")


def _check_number(means: Means) -> None:
    """Raises RequestRefused where there are as many open runs as there may be. While the state cannot be read, or was
    written by another version, nothing is known of them, and what is submitted waits in the inbox."""
    try:
        count = len(reading.open_runs(means.store))
    except FAULTS:
        return
    if count >= MOST_OPEN_RUNS:
        raise RequestRefused(
            "ConflictException",
            f"{MOST_OPEN_RUNS:,} runs are open, and a deployment has no more at a time: submit this one when some have"
            " ended, or make one run of many (array.size, array.items)",
        )


def _check_kind(admission: Admission) -> None:
    """Raises SpecError for a service or daemon, which is never done: neither a user nor a schedule starts its run."""
    kind = admission.form.get("kind")
    if kind in DEPLOYED:
        name = admission.form["name"]
        step = f"`argosy env create FILE` and `argosy env deploy {name}` start it"
        raise SpecError([Fault("kind", f"a {kind} has no end, and is deployed instead: {step}")])


def _validate(means: Means, request: requests.ValidateRun, request_id: str) -> dict[str, Any]:
    admission, now = with_dependencies(means, admitted(means, request.spec)), means.now()
    run_id = new_run_id(admission.form["name"], now, request_id)
    stored_form(_submit_request(means, admission, run_id, now))
    return {
        "name": admission.form["name"],
        "tasks": admission.task_count,
        "image": admission.image or None,
        "output": admission.form.get("output", means.limits.default_output),
        "warnings": warnings_of(means, admission),
    }


def admitted(means: Means, spec: Any) -> Admission:
    """What a run of this spec would be now. Raises SpecError with every fault."""
    admission = admit(spec, means.limits, means.sources, means.now())
    check_queue(means, admission.form)
    _check_owner(means, admission.form)
    has_cap = RunTerms.of(admission.form).max_hourly_usd is not None
    if has_cap and (faults := hourly_faults(admission.form, means.market())):
        raise SpecError(faults)
    return admission


def _check_owner(means: Means, form: Mapping[str, Any]) -> None:
    """Raises SpecError for a spec that names somebody else than who sends it."""
    if means.owner and form.get("owner") not in (None, means.owner):
        told = f"is {means.owner}, who signs this request: leave it out, or send the request unsigned (--unsigned)"
        raise SpecError([Fault("owner", told)])


def warnings_of(means: Means, admission: Admission) -> list[str]:
    """What is allowed but may not be intended, a sentence each."""
    if RunTerms.of(admission.form).budget_usd is None:
        return [*admission.notes]
    return [*admission.notes, *budget_warnings(admission.form, means.market())]


def _run_of_token(means: Means, token: str, spec: Any) -> str | None:
    """The id of the run that this token created. Refuses a token that was used with another spec."""
    body = means.store.read((inbox.TOKENS, token))
    if body is None:
        return None
    record = json.loads(body)
    if record["specSha256"] != fingerprint(to_json(parse_spec(spec))):
        raise RequestRefused(
            "ConflictException", f"this clientToken was already used for {record['runId']}, with another spec"
        )
    return str(record["runId"])


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run as it is stored, all or nothing: its request, its token and the pointer to it."""

    run_id: str
    items: dict[Key, bytes]
    expires_at: dict[Key, float]


def new_run(means: Means, admission: Admission, token: str, attempt: int) -> NewRun:
    """token: of the request, as hex digits; attempt: another one gives another id. Raises SpecError."""
    _check_kind(admission)
    now = means.now()
    run_id = new_run_id(admission.form["name"], now, f"{token}{attempt}")
    body = stored_form(_submit_request(means, with_dependencies(means, admission), run_id, now))
    place = inbox.inbox_key(now, run_id)
    pointer, forgotten_at = reading.request_pointer(run_id), now + requests.TOKEN_DAYS * 86_400
    made = {"runId": run_id, "specSha256": fingerprint(admission.form)}
    items = {
        (inbox.TOKENS, token): json.dumps(made).encode(),
        pointer: place.encode(),
        (inbox.INBOX, place): body,
    }
    return NewRun(run_id, items, {(inbox.TOKENS, token): forgotten_at, pointer: forgotten_at})


def _submit_request(means: Means, admission: Admission, run_id: str, now: float) -> SubmitRequest:
    """What the controller is asked to do for an admitted run."""
    return SubmitRequest(
        run_id=run_id,
        submitted_at=now,
        spec=admission.form,
        task_count=admission.task_count,
        image=admission.image,
        output=layout.run_output(admission.form.get("output", means.limits.default_output), run_id),
        expects_result=shards.expects_result(admission.form),
        proven_owner=means.owner,
    )


def _plan(means: Means, request: requests.PlanRun, request_id: str) -> dict[str, Any]:
    from argosy.api.plan_question import answer  # loads the market and the placement engine: only plans need them

    admission = admit(request.spec, means.limits, means.sources, means.now())
    check_queue(means, admission.form)
    _check_owner(means, admission.form)
    kind = admission.form.get("kind")
    if kind in DEPLOYED:
        raise SpecError([Fault("kind", f"a {kind} is never done, so that it has no plan of its cost and its end")])
    return answer(means, admission)


def new_run_id(name: str, now: float, seed: str) -> str:
    """`digits-261121-062733-k3f9`: the name, the second (UTC) and four characters derived from `seed`."""
    tail = base64.b32encode(hashlib.sha256(seed.encode()).digest())[:4].decode().lower()
    return f"{name}-{datetime.fromtimestamp(now, UTC):%y%m%d-%H%M%S}-{tail}"


def stored_form(request: SubmitRequest) -> bytes:
    """The request as it is stored. Raises SpecError, at the largest field, when it is too large for an item.

    `spec.bounds` has measured what the user sent; the defaults were added since.
    """
    body = inbox.to_bytes(request)
    if len(body) <= REQUEST_LIMIT:
        return body
    path, size = bounds.largest(request.spec)
    share = f"takes {size} of the {len(body)} bytes of the run with all defaults; the limit is {REQUEST_LIMIT}"
    raise SpecError([Fault(path, f"{share}: put long items into an S3 object (itemsFrom)")])


ACTIONS: Actions = {requests.SubmitRun: _submit, requests.ValidateRun: _validate, requests.PlanRun: _plan}
