"""Environments and their revisions in the table, and which requests find them there."""

from __future__ import annotations

import json
from typing import Any

from argosy.api.refusals import conflict, not_found
from argosy.api.request_context import RequestContext
from argosy.model.damage import FAULTS
from argosy.model.run_terms import RunTerms
from argosy.model.services.environments import DeploymentStatus, Environment, Revision
from argosy.model.stored import documents
from argosy.model.stored.environments import ENVIRONMENT, MARK_KEPT_S, environment_from, last_revision_of_deleted
from argosy.ports import Key
from argosy.spec.terms import terms_of_form

JSON = dict[str, Any]
REVISIONS = "REVISIONS"  # partition of specs; sort key = name and number
LAST = "~"  # sorts after every number


def shown(context: RequestContext, name: str) -> Environment:
    """Includes an environment that is being deleted, until it is gone. Raises RequestRefused."""
    env = environment(context, name)
    return env if env is not None else known(context, name)


def known(context: RequestContext, name: str, *, even_left: bool = False) -> Environment:
    """Raises RequestRefused for an environment that does not exist."""
    body = stored(context, name)
    env = parsed(body, name)
    if env is not None and not env.deleting and (even_left or not env.left):
        return env
    newest = newest_revision(context, name) if env is None or env.left else None
    if newest is not None and is_to_come(context, body, newest):
        # Created, and not folded in yet: requests for it come after it in the inbox.
        desired, is_daemon = size_of(terms_of_form(newest["form"]))
        return Environment.new(name, Revision(newest["revision"], newest["createdAt"]), desired, is_daemon=is_daemon)
    if env is not None and env.left:
        raise conflict(
            f"the environment {name!r} was deleted without its tasks: create it again to take them over, or"
            " delete it with its tasks"
        )
    why = "is being deleted" if env is not None else "does not exist"
    raise not_found(f"the environment {name!r} {why}")


def forms_at_work(
    context: RequestContext, name: str, asked: int | None = None, *, rolled_back: bool = False
) -> list[JSON]:
    """The specs of an environment that may run now or next: of the newest revision, the running one, the one that a
    failed deployment returns to, and the requested one. Empty if there is no such environment."""
    env, newest = environment(context, name), newest_revision(context, name)
    numbers = {asked, newest["revision"] if newest else None}
    if env is not None:
        numbers |= {
            env.completed,
            env.target.number if env.target else None,
            revision_before(env) if rolled_back else None,
        }
    bodies = context.store.read_many([revision_key(name, number) for number in sorted(filter(None, numbers))])
    found = [json.loads(body)["form"] for body in bodies.values()]
    return found or (
        [{}] if env is not None else []
    )  # no revision is readable: only the deployment's owner may change it


def environment(context: RequestContext, name: str) -> Environment | None:
    """Raises RequestRefused for an unreadable environment."""
    return parsed(stored(context, name), name)


def stored(context: RequestContext, name: str) -> bytes | None:
    return context.store.read((documents.STATE, ENVIRONMENT + name))


def parsed(body: bytes | None, name: str) -> Environment | None:
    """Raises RequestRefused for an unreadable environment."""
    try:
        return None if body is None else environment_from(body)
    except FAULTS as fault:
        what = f"the stored environment {name} is corrupt ({type(fault).__name__}: {str(fault)[:200]})"
        raise conflict(f"{what}: its tasks continue; restore it first, as docs/guides/operations.md says") from fault


def is_to_come(context: RequestContext, body: bytes | None, newest: JSON | None) -> bool:
    """Whether an environment that the controller does not have, or has left, was just created. If not, its newest
    revision is counted by the stored record, or is older than the lifetime of a deletion's mark.

    body: its record, read before `newest`. If it were read again, the new environment might be folded in by then.
    """
    if newest is None or context.now() - newest["createdAt"] > MARK_KEPT_S:
        return False
    if body is None:
        return True
    env = environment_from(body)
    last = last_revision_of_deleted(body) if env is None else env.latest.number
    return last is not None and last < newest["revision"]


def newest_revision(context: RequestContext, name: str) -> JSON | None:
    """The newest stored revision, of this environment or of an earlier one of the same name."""
    found = context.store.page(REVISIONS, 1, f"{name}#{LAST}")[0]
    return json.loads(found[0][1]) if found and found[0][0].startswith(f"{name}#") else None


def revision_key(name: str, number: int) -> Key:
    return REVISIONS, f"{name}#{number:06d}"


def revision_before(env: Environment) -> int | None:
    """The revision to which it would be rolled back."""
    present = env.target.number if env.target else 0
    done = [each.revision for each in env.deployments if each.status is DeploymentStatus.COMPLETED]
    return next((number for number in [env.completed, *reversed(done)] if number and number != present), None)


def size_of(terms: RunTerms) -> tuple[int, bool]:
    """The number of tasks in the spec, and whether it is a daemon, whose instances the controller counts."""
    return 0 if terms.service is None else terms.service.desired, terms.daemon is not None
