"""What may be asked of environments, and done to them?

A revision is an item of its own, which is created on condition that its number is free: of two updates of one revision
one is refused, at once. Everything else is a request to the controller.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from argosy import layout
from argosy.api import environment_requests as requests
from argosy.api import reading, spending
from argosy.api.admission import fingerprint, limit_faults
from argosy.api.environment_views import endpoints, environment_view
from argosy.api.means import Actions, Means
from argosy.api.refusals import RequestRefused
from argosy.api.requests import TOKEN_DAYS, page_place, page_token
from argosy.api.submit_actions import DEPLOYED, admitted, new_run_id, stored_form
from argosy.engine.loading import records_of
from argosy.model import documents, inbox
from argosy.model.damage import FAULTS
from argosy.model.environments import DeploymentStatus, Environment
from argosy.model.inbox import EnvironmentRequest, SubmitRequest
from argosy.model.run_record import RunRecord
from argosy.model.state import State
from argosy.model.stored_environments import (
    ENVIRONMENT,
    MARK_KEPT_S,
    environment_from,
    last_revision_of_deleted,
)
from argosy.ports import AlreadyExists, Key
from argosy.spec.faults import Fault, SpecError

JSON = dict[str, Any]
REVISIONS = "REVISIONS"  # partition of specs; sort key = name and number
LAST = "~"  # sorts after every number
TRIES = 10


def _create(means: Means, request: requests.CreateEnvironment, request_id: str) -> JSON:
    revision = _admitted(means, request.spec)
    name = str(revision["form"]["name"])
    body = _stored(means, name)
    env, newest = _read(body, name), _newest(means, name)
    if env is not None and env.deleting:
        raise RequestRefused(
            "ConflictException", f"the environment {name!r} is being deleted: create it when its tasks have stopped"
        )
    if (env is not None and not env.left) or _is_to_come(means, body, newest):
        raise RequestRefused(
            "ConflictException", f"there is an environment {name!r} already: update it, or take another name"
        )
    number = newest["revision"] + 1 if newest else 1
    desired, is_daemon = _desired(revision), _is_daemon(revision)
    _store(means, name, {**revision, "revision": number}, "create", desired=desired, is_daemon=is_daemon)
    return {"name": name, "revision": number, "warnings": revision["notes"]}


def _update(means: Means, request: requests.UpdateEnvironment, request_id: str) -> JSON:
    env = _known(means, request.name)
    revision = _admitted(means, request.spec)
    if revision["form"]["name"] != request.name:
        raise SpecError([Fault("spec.name", f"must be the environment's: {request.name}")])
    if _is_daemon(revision) != env.is_daemon:
        kept = "daemon" if env.is_daemon else "service"
        raise SpecError([Fault("spec.kind", f"must stay {kept}: take another name for the other kind")])
    newest = _newest(means, env.name)
    number = newest["revision"] if newest else 0
    if newest is not None and newest["specSha256"] == revision["specSha256"] and newest["image"] == revision["image"]:
        return {"name": env.name, "revision": number, "created": False, "warnings": revision["notes"]}
    if request.base_revision != number:
        raise _overtaken(env.name, number)
    try:
        _store(means, env.name, {**revision, "revision": number + 1}, "update")
    except RequestRefused as refusal:
        raise _overtaken(env.name, number + 1) from refusal
    return {"name": env.name, "revision": number + 1, "created": True, "warnings": revision["notes"]}


def _overtaken(name: str, newest: int) -> RequestRefused:
    return RequestRefused(
        "ConflictException",
        f"the newest revision of {name} is {newest}: look at what it changes, then update that one",
    )


def _admitted(means: Means, spec: Any) -> JSON:
    """A revision without its number. Raises SpecError with every fault."""
    admission = admitted(means, spec)
    if admission.form.get("kind") not in DEPLOYED:
        raise SpecError([Fault("spec.kind", "must be service or daemon: a batch is submitted, not deployed")])
    return {
        "createdAt": means.now(),
        "form": admission.form,
        "image": admission.image,
        "specSha256": fingerprint(admission.form),
        "notes": [*admission.notes],
        "provenOwner": means.owner,
    }


def _is_daemon(revision: JSON) -> bool:
    return bool(revision["form"]["kind"] == "daemon")


def _desired(revision: JSON) -> int:
    """How many tasks its spec asks for. On how many instances a daemon is to run, the controller finds out."""
    return 0 if _is_daemon(revision) else int(revision["form"]["service"]["desired"])


def _store(means: Means, name: str, revision: JSON, change: str, **fields: Any) -> None:
    now = means.now()
    request = EnvironmentRequest(name, now, change, revision=revision["revision"], **fields)
    items = {
        _key(name, revision["revision"]): json.dumps(revision).encode(),
        (inbox.INBOX, inbox.inbox_key(now, f"{name}#{change}")): inbox.to_bytes(request),
    }
    try:
        means.store.create(items)
    except AlreadyExists as fault:
        raise RequestRefused("ConflictException", f"{name} is being changed by somebody else: look again") from fault
    means.wake.controller()


def _deploy(means: Means, request: requests.StartDeployment, request_id: str) -> JSON:
    env = _known(means, request.name)
    newest = _newest(means, env.name)
    number = request.revision or (newest["revision"] if newest else 0)
    token = _token(env, request.client_token or request_id)
    if (used_for := _deployed_with(means, token)) not in (None, number) and request.revision is not None:
        raise RequestRefused("ConflictException", f"this clientToken was already used for revision {used_for}")
    return _start(means, env, number, token)


def _roll_back(means: Means, request: requests.RollBackDeployment, request_id: str) -> JSON:
    env = _known(means, request.name)
    token = _token(env, request.client_token or request_id)
    number = _deployed_with(means, token) or _before(env)
    if number is None:
        raise RequestRefused("ConflictException", f"{env.name} has no earlier revision that was completed")
    return _start(means, env, number, token)


def _before(env: Environment) -> int | None:
    """The revision to which it would be rolled back."""
    present = env.target.number if env.target else 0
    done = [each.revision for each in env.deployments if each.status is DeploymentStatus.COMPLETED]
    return next((number for number in [env.completed, *reversed(done)] if number and number != present), None)


def _token(env: Environment, given: str) -> str:
    """given: the client's."""
    return hashlib.sha256(f"{env.name}#{given}".encode()).hexdigest()


def _start(means: Means, env: Environment, number: int, token: str) -> JSON:
    body = means.store.read(_key(env.name, number)) if number else None
    if body is None:
        raise RequestRefused("ResourceNotFoundException", f"{env.name} has no revision {number}")
    revision, now = json.loads(body), means.now()
    if _deployed_with(means, token) is None and (faults := [*limit_faults(revision["form"], means.limits)]):
        raise SpecError(faults)  # the deployment has changed since the revision was stored
    request = EnvironmentRequest(
        env.name, now, "deploy", revision=number, token=token, submit=_run_of(means, revision, token, now)
    )
    place = inbox.inbox_key(now, f"{env.name}#deploy#{token[:16]}")
    items: dict[Key, bytes] = {
        (inbox.TOKENS, token): json.dumps({"environment": env.name, "revision": number}).encode(),
        (inbox.INBOX, place): inbox.to_bytes(request),
    }
    try:
        means.store.create(items, expires_at={(inbox.TOKENS, token): now + TOKEN_DAYS * 86_400})
        created = True
    except AlreadyExists:
        created = False
        number = _deployed_with(means, token) or number
    means.wake.controller()
    return {**_view(means, env), "deploying": number, "created": created}


def _deployed_with(means: Means, token: str) -> int | None:
    """The revision that this token has deployed."""
    earlier = means.store.read((inbox.TOKENS, token))
    return None if earlier is None else int(json.loads(earlier)["revision"])


def _run_of(means: Means, revision: JSON, token: str, now: float) -> SubmitRequest:
    form = revision["form"]
    run_id = new_run_id(form["name"], now, token)
    request = SubmitRequest(
        run_id=run_id,
        submitted_at=now,
        spec=form,
        task_count=int(form["array"]["size"]),
        image=revision["image"],
        output=layout.run_output(means.limits.default_output, run_id),
        expects_result=False,
        proven_owner=str(revision.get("provenOwner") or ""),
    )
    stored_form(request)
    return request


def _change(means: Means, name: str, change: str, **fields: Any) -> JSON:
    env = _known(means, name, even_left=change == "delete")
    now = means.now()
    request = EnvironmentRequest(name, now, change, **fields)
    for again in range(TRIES):
        place = inbox.inbox_key(now, f"{name}#{change}#{again}")
        try:
            means.store.create({(inbox.INBOX, place): inbox.to_bytes(request)})
        except AlreadyExists:
            continue  # somebody asked for the same at the same moment
        means.wake.controller()
        return _view(means, env)
    raise RequestRefused("ConflictException", f"{name} is being changed by somebody else: ask again")


def _stop(means: Means, request: requests.StopDeployment, request_id: str) -> JSON:
    env = _known(means, request.name)
    if env.deployment is None or env.deployment.has_ended:
        raise RequestRefused("ConflictException", f"no deployment of {env.name} is under way")
    return _change(means, request.name, "stop", reason=request.reason)


def _scale(means: Means, request: requests.ScaleEnvironment, request_id: str) -> JSON:
    if _known(means, request.name).is_daemon:
        why = "is a daemon, of which one task runs on each instance that matches: change daemon.instances in its spec"
        raise RequestRefused("ConflictException", f"{request.name} {why}")
    return {**_change(means, request.name, "scale", desired=request.desired), "desired": request.desired}


def _freeze(means: Means, request: requests.FreezeEnvironment, request_id: str) -> JSON:
    return _change(means, request.name, "freeze", reason=request.reason)


def _thaw(means: Means, request: requests.ThawEnvironment, request_id: str) -> JSON:
    return _change(means, request.name, "thaw")


def _delete(means: Means, request: requests.DeleteEnvironment, request_id: str) -> JSON:
    leaves = request.tasks == "leave"
    view = _change(means, request.name, "delete", leaves_tasks=leaves)
    return {**view, "status": "LEFT" if leaves else "DELETING"}


def _describe(means: Means, request: requests.DescribeEnvironment, request_id: str) -> JSON:
    env, state = _shown(means, request.name), reading.cluster(means.store)[0]
    [(view, records)] = _seen(means, [env], state)
    if "endpoints" in request.include:
        view["endpoints"] = endpoints(env, records, state, means.now())
    if "specs" in request.include:
        keys = {each["revision"]: _key(request.name, each["revision"]) for each in view["revisions"]}
        bodies = means.store.read_many(list(keys.values()))
        for each in view["revisions"]:
            body = bodies.get(keys[each["revision"]])
            each["spec"] = None if body is None else json.loads(body)["form"]
    return view


def _list(means: Means, request: requests.ListEnvironments, request_id: str) -> JSON:
    state = reading.cluster(means.store)[0]
    after = "" if request.next_token is None else page_place(request.next_token)
    names = sorted(name for name in state.environments if name > after and name.startswith(request.prefix))
    page = names[: request.max_results]
    return {
        "environments": _views(means, [state.environments[name] for name in page], state),
        "nextToken": page_token(page[-1]) if len(names) > len(page) else None,
    }


def _shown(means: Means, name: str) -> Environment:
    """Also one that is being deleted, until nothing of it is left. Raises RequestRefused."""
    env = _environment(means, name)
    return env if env is not None else _known(means, name)


def _known(means: Means, name: str, *, even_left: bool = False) -> Environment:
    """Raises RequestRefused for one that there is not."""
    body = _stored(means, name)
    env = _read(body, name)
    if env is not None and not env.deleting and (even_left or not env.left):
        return env
    newest = _newest(means, name) if env is None or env.left else None
    if newest is not None and _is_to_come(means, body, newest):
        # Created, and not folded in yet: what is asked for comes after it in the inbox.
        desired, is_daemon = _desired(newest), _is_daemon(newest)
        return Environment.new(name, newest["createdAt"], desired, newest["revision"], is_daemon=is_daemon)
    if env is not None and env.left:
        raise RequestRefused(
            "ConflictException",
            f"the environment {name!r} was deleted and its tasks were left: create it again, which takes them over, or"
            " delete it with its tasks",
        )
    why = "is being deleted" if env is not None else "does not exist"
    raise RequestRefused("ResourceNotFoundException", f"the environment {name!r} {why}")


def forms_at_work(means: Means, name: str, asked: int | None = None, *, rolled_back: bool = False) -> list[JSON]:
    """The specs of an environment that may run now or next: of its newest revision, of the one that runs, of the one
    that a failed deployment goes back to, and of the one that is asked for. None where there is no such environment."""
    env, newest = _environment(means, name), _newest(means, name)
    numbers = {asked, newest["revision"] if newest else None}
    if env is not None:
        numbers |= {env.completed, env.target.number if env.target else None, _before(env) if rolled_back else None}
    bodies = means.store.read_many([_key(name, number) for number in sorted(filter(None, numbers))])
    found = [json.loads(body)["form"] for body in bodies.values()]
    return found or ([{}] if env is not None else [])  # of which nothing is known: nobody's but the owner's


def _environment(means: Means, name: str) -> Environment | None:
    """Raises RequestRefused for one that cannot be read."""
    return _read(_stored(means, name), name)


def _stored(means: Means, name: str) -> bytes | None:
    return means.store.read((documents.STATE, ENVIRONMENT + name))


def _read(body: bytes | None, name: str) -> Environment | None:
    """Raises RequestRefused for one that cannot be read."""
    try:
        return None if body is None else environment_from(body)
    except FAULTS as fault:
        what = f"the stored environment {name} is corrupt ({type(fault).__name__}: {str(fault)[:200]})"
        raise RequestRefused(
            "ConflictException", f"{what}: its tasks go on; restore it first, as docs/guides/operations.md says"
        ) from fault


def _is_to_come(means: Means, body: bytes | None, newest: JSON | None) -> bool:
    """Of one that the controller does not know, or has left: whether it was created a moment ago. Otherwise its newest
    revision is one of those that what is stored of it counts, or is older than the mark of a deletion is kept.

    body: what was stored of it before `newest` was looked for. Looked at once more it might have been folded in by now.
    """
    if newest is None or means.now() - newest["createdAt"] > MARK_KEPT_S:
        return False
    if body is None:
        return True
    env = environment_from(body)
    last = last_revision_of_deleted(body) if env is None else env.latest.number
    return last is not None and last < newest["revision"]


def _newest(means: Means, name: str) -> JSON | None:
    """The newest revision that is stored, of this environment or of one before it under the same name."""
    found = means.store.page(REVISIONS, 1, f"{name}#{LAST}")[0]
    return json.loads(found[0][1]) if found and found[0][0].startswith(f"{name}#") else None


def _key(name: str, number: int) -> Key:
    return REVISIONS, f"{name}#{number:06d}"


def _view(means: Means, env: Environment) -> JSON:
    return _views(means, [env], reading.cluster(means.store)[0])[0]


def _views(means: Means, environments: Sequence[Environment], state: State) -> list[JSON]:
    return [view for view, _ in _seen(means, environments, state)]


def _seen(means: Means, environments: Sequence[Environment], state: State) -> list[tuple[JSON, dict[str, RunRecord]]]:
    """Their views, and the records of their runs by id."""
    run_ids = [run_id for env in environments for run_id in env.all_runs()]
    readable = list(_readable(records_of(means.store, run_ids).values()))
    now = means.now()
    records = {each.id: each for each in spending.up_to_now(means.store, readable, now, means.policy)}
    of_each = [{run_id: records[run_id] for run_id in env.all_runs() if run_id in records} for env in environments]
    return [(environment_view(env, known, state, now), known) for env, known in zip(environments, of_each, strict=True)]


def _readable(bodies: Iterable[bytes]) -> Iterator[RunRecord]:
    """Those that can be read: what the others cost is not known."""
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
