"""The actions on environments.

A revision is a separate item that is created only if its number is free, so one of two updates of the same revision is
refused at once. Everything else is a request to the controller.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from argosy import layout
from argosy.api import reading
from argosy.api.admission.specs import fingerprint, limit_faults
from argosy.api.environments import requests
from argosy.api.environments.store import (
    is_to_come,
    known,
    newest_revision,
    parsed,
    revision_before,
    revision_key,
    shown,
    size_of,
    stored,
)
from argosy.api.environments.views import endpoints, environment_view
from argosy.api.refusals import RequestRefused, conflict, not_found
from argosy.api.request_context import Actions, RequestContext
from argosy.api.requests import TOKEN_DAYS, page_place, page_token
from argosy.api.runs import costs
from argosy.api.runs.submission import admitted, new_run_id, stored_form
from argosy.engine.loading import records_of
from argosy.model import inbox
from argosy.model.damage import FAULTS
from argosy.model.inbox import EnvironmentRequest, SubmitRequest
from argosy.model.run_record import RunRecord
from argosy.model.run_terms import RunTerms
from argosy.model.services.environments import Environment
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.ports import AlreadyExists, Key
from argosy.spec.faults import Fault, SpecError
from argosy.spec.terms import terms_of_form

JSON = dict[str, Any]
TRIES = 10


def _create(context: RequestContext, request: requests.CreateEnvironment, request_id: str) -> JSON:
    revision, terms = _admitted(context, request.spec)
    name = terms.name
    body = stored(context, name)
    env, newest = parsed(body, name), newest_revision(context, name)
    if env is not None and env.deleting:
        raise conflict(f"the environment {name!r} is being deleted: create it when its tasks have stopped")
    if (env is not None and not env.left) or is_to_come(context, body, newest):
        raise conflict(f"the environment {name!r} already exists: update it, or choose another name")
    number = newest["revision"] + 1 if newest else 1
    desired, is_daemon = size_of(terms)
    _store(context, name, {**revision, "revision": number}, "create", desired=desired, is_daemon=is_daemon)
    return {"name": name, "revision": number, "warnings": revision["notes"]}


def _update(context: RequestContext, request: requests.UpdateEnvironment, request_id: str) -> JSON:
    env = known(context, request.name)
    revision, terms = _admitted(context, request.spec)
    if terms.name != request.name:
        raise SpecError([Fault("spec.name", f"must be the environment's: {request.name}")])
    if (terms.daemon is not None) != env.is_daemon:
        kept = "daemon" if env.is_daemon else "service"
        raise SpecError([Fault("spec.kind", f"must stay {kept}: use another name for the other kind")])
    newest = newest_revision(context, env.name)
    number = newest["revision"] if newest else 0
    if newest is not None and newest["specSha256"] == revision["specSha256"] and newest["image"] == revision["image"]:
        return {"name": env.name, "revision": number, "created": False, "warnings": revision["notes"]}
    if request.base_revision != number:
        raise _overtaken(env.name, number)
    try:
        _store(context, env.name, {**revision, "revision": number + 1}, "update")
    except RequestRefused as refusal:
        raise _overtaken(env.name, number + 1) from refusal
    return {"name": env.name, "revision": number + 1, "created": True, "warnings": revision["notes"]}


def _overtaken(name: str, newest: int) -> RequestRefused:
    return conflict(f"the newest revision of {name} is {newest}: review it, then update that one")


def _admitted(context: RequestContext, spec: Any) -> tuple[JSON, RunTerms]:
    """A revision without its number, and its requirements. Raises SpecError with every fault."""
    admission = admitted(context, spec)
    if not admission.terms.serves:
        raise SpecError([Fault("spec.kind", "must be service or daemon: submit a batch instead of deploying it")])
    revision = {
        "createdAt": context.now(),
        "form": admission.form,
        "image": admission.image,
        "specSha256": fingerprint(admission.form),
        "notes": [*admission.notes],
        "provenOwner": context.owner,
    }
    return revision, admission.terms


def _store(context: RequestContext, name: str, revision: JSON, change: str, **fields: Any) -> None:
    now = context.now()
    request = EnvironmentRequest(name, now, change, revision=revision["revision"], **fields)
    items = {
        revision_key(name, revision["revision"]): json.dumps(revision).encode(),
        (inbox.INBOX, inbox.inbox_key(now, f"{name}#{change}")): inbox.to_bytes(request),
    }
    try:
        context.store.create(items)
    except AlreadyExists as fault:
        raise conflict(f"{name} is being changed by another request: check its state, then try again") from fault
    context.wake.controller()


def _deploy(context: RequestContext, request: requests.StartDeployment, request_id: str) -> JSON:
    env = known(context, request.name)
    newest = newest_revision(context, env.name)
    number = request.revision or (newest["revision"] if newest else 0)
    token = _token(env, request.client_token or request_id)
    if (used_for := _deployed_with(context, token)) not in (None, number) and request.revision is not None:
        raise conflict(f"this clientToken was already used for revision {used_for}")
    return _start(context, env, number, token)


def _roll_back(context: RequestContext, request: requests.RollBackDeployment, request_id: str) -> JSON:
    env = known(context, request.name)
    token = _token(env, request.client_token or request_id)
    number = _deployed_with(context, token) or revision_before(env)
    if number is None:
        raise conflict(f"{env.name} has no earlier revision whose deployment completed")
    return _start(context, env, number, token)


def _token(env: Environment, given: str) -> str:
    """given: the client's."""
    return hashlib.sha256(f"{env.name}#{given}".encode()).hexdigest()


def _start(context: RequestContext, env: Environment, number: int, token: str) -> JSON:
    body = context.store.read(revision_key(env.name, number)) if number else None
    if body is None:
        raise not_found(f"{env.name} has no revision {number}")
    revision, now = json.loads(body), context.now()
    if _deployed_with(context, token) is None and (faults := [*limit_faults(revision["form"], context.limits)]):
        raise SpecError(faults)  # the deployment has changed since the revision was stored
    request = EnvironmentRequest(
        env.name, now, "deploy", revision=number, token=token, submit=_run_of(context, revision, token, now)
    )
    place = inbox.inbox_key(now, f"{env.name}#deploy#{token[:16]}")
    items: dict[Key, bytes] = {
        (inbox.TOKENS, token): json.dumps({"environment": env.name, "revision": number}).encode(),
        (inbox.INBOX, place): inbox.to_bytes(request),
    }
    try:
        context.store.create(items, expires_at={(inbox.TOKENS, token): now + TOKEN_DAYS * 86_400})
        created = True
    except AlreadyExists:
        created = False
        number = _deployed_with(context, token) or number
    context.wake.controller()
    return {**_view(context, env), "deploying": number, "created": created}


def _deployed_with(context: RequestContext, token: str) -> int | None:
    """The revision that this token has deployed."""
    earlier = context.store.read((inbox.TOKENS, token))
    return None if earlier is None else int(json.loads(earlier)["revision"])


def _run_of(context: RequestContext, revision: JSON, token: str, now: float) -> SubmitRequest:
    terms = terms_of_form(form := revision["form"])
    run_id = new_run_id(terms.name, now, token)
    request = SubmitRequest(
        run_id=run_id,
        submitted_at=now,
        spec=form,
        terms=terms,
        task_count=int(form["array"]["size"]),
        image=revision["image"],
        output=layout.run_output(context.limits.default_output, run_id),
        expects_result=False,
        proven_owner=str(revision.get("provenOwner") or ""),
    )
    stored_form(request)
    return request


def _change(context: RequestContext, name: str, change: str, **fields: Any) -> JSON:
    env = known(context, name, even_left=change == "delete")
    now = context.now()
    request = EnvironmentRequest(name, now, change, **fields)
    for again in range(TRIES):
        place = inbox.inbox_key(now, f"{name}#{change}#{again}")
        try:
            context.store.create({(inbox.INBOX, place): inbox.to_bytes(request)})
        except AlreadyExists:
            continue  # a concurrent request for the same
        context.wake.controller()
        return _view(context, env)
    raise conflict(f"{name} is being changed by other requests: try again")


def _stop(context: RequestContext, request: requests.StopDeployment, request_id: str) -> JSON:
    env = known(context, request.name)
    if env.deployment is None or env.deployment.has_ended:
        raise conflict(f"no deployment of {env.name} is in progress")
    return _change(context, request.name, "stop", reason=request.reason)


def _scale(context: RequestContext, request: requests.ScaleEnvironment, request_id: str) -> JSON:
    if known(context, request.name).is_daemon:
        why = "is a daemon, which runs one task on each matching instance: change daemon.instances in its spec"
        raise conflict(f"{request.name} {why}")
    return {**_change(context, request.name, "scale", desired=request.desired), "desired": request.desired}


def _freeze(context: RequestContext, request: requests.FreezeEnvironment, request_id: str) -> JSON:
    return _change(context, request.name, "freeze", reason=request.reason)


def _thaw(context: RequestContext, request: requests.ThawEnvironment, request_id: str) -> JSON:
    return _change(context, request.name, "thaw")


def _delete(context: RequestContext, request: requests.DeleteEnvironment, request_id: str) -> JSON:
    leaves = request.tasks == "leave"
    view = _change(context, request.name, "delete", leaves_tasks=leaves)
    return {**view, "status": "LEFT" if leaves else "DELETING"}


def _describe(context: RequestContext, request: requests.DescribeEnvironment, request_id: str) -> JSON:
    env, state = shown(context, request.name), reading.cluster(context.store)[0]
    [(view, records)] = _seen(context, [env], state)
    if "endpoints" in request.include:
        view["endpoints"] = endpoints(env, records, state, context.now())
    if "specs" in request.include:
        keys = {each["revision"]: revision_key(request.name, each["revision"]) for each in view["revisions"]}
        bodies = context.store.read_many(list(keys.values()))
        for each in view["revisions"]:
            body = bodies.get(keys[each["revision"]])
            each["spec"] = None if body is None else json.loads(body)["form"]
    return view


def _list(context: RequestContext, request: requests.ListEnvironments, request_id: str) -> JSON:
    state = reading.cluster(context.store)[0]
    after = "" if request.next_token is None else page_place(request.next_token)
    names = sorted(name for name in state.environments if name > after and name.startswith(request.prefix))
    page = names[: request.max_results]
    return {
        "environments": _views(context, [state.environments[name] for name in page], state),
        "nextToken": page_token(page[-1]) if len(names) > len(page) else None,
    }


def _view(context: RequestContext, env: Environment) -> JSON:
    return _views(context, [env], reading.cluster(context.store)[0])[0]


def _views(context: RequestContext, environments: Sequence[Environment], state: State) -> list[JSON]:
    return [view for view, _ in _seen(context, environments, state)]


def _seen(
    context: RequestContext, environments: Sequence[Environment], state: State
) -> list[tuple[JSON, dict[str, RunRecord]]]:
    """Their views, and the records of their runs by id."""
    run_ids = [run_id for env in environments for run_id in env.all_runs()]
    readable = list(_readable(records_of(context.store, run_ids).values()))
    now = context.now()
    records = {each.id: each for each in costs.up_to_now(context.store, readable, now, context.policy)}
    of_each = [{run_id: records[run_id] for run_id in env.all_runs() if run_id in records} for env in environments]
    return [(environment_view(env, known, state, now), known) for env, known in zip(environments, of_each, strict=True)]


def _readable(bodies: Iterable[bytes]) -> Iterator[RunRecord]:
    """The readable records: the costs of the others are unknown."""
    for body in bodies:
        with suppress(*FAULTS):
            yield documents.record_from(body)


ACTIONS: Actions = {
    requests.CreateEnvironment: _create,
    requests.UpdateEnvironment: _update,
    requests.StartDeployment: _deploy,
    requests.RollBackDeployment: _roll_back,
    requests.StopDeployment: _stop,
    requests.ScaleEnvironment: _scale,
    requests.FreezeEnvironment: _freeze,
    requests.ThawEnvironment: _thaw,
    requests.DeleteEnvironment: _delete,
    requests.DescribeEnvironment: _describe,
    requests.ListEnvironments: _list,
}
