"""Which lines say what a commit changes in environments?"""

from __future__ import annotations

from collections.abc import Iterator

from argosy.model.environments import Environment, EnvironmentFacts
from argosy.model.journal.lines import Line, LineType, line
from argosy.model.state import State


def environment_lines(state: State) -> list[Line]:
    """Of those that have changed."""
    found: list[Line] = []
    for name in sorted(state.changed_environments):
        env = state.environments.get(name)
        found += [line(LineType.ENV_DELETED, environment=name)] if env is None else _changes(env)
    return found


def _changes(env: Environment) -> Iterator[Line]:
    now = env.facts()
    before = env.committed
    if before is None:
        first = next((each.number for each in env.revisions if each.created_at >= env.created_at), now.latest)
        yield line(LineType.ENV_CREATED, environment=env.name, revision=first, desired=now.desired)
        before = EnvironmentFacts(first, now.desired, "", deleting=False, is_failing=False, deployments={})
    if now.latest != before.latest:
        yield line(LineType.ENV_UPDATED, environment=env.name, revision=now.latest)
    if now.desired != before.desired:
        yield line(LineType.ENV_SCALED, environment=env.name, desired=now.desired)
    yield from _deployments(env, before)
    if now.frozen_reason != before.frozen_reason:
        kind = LineType.ENV_FROZEN if now.frozen_reason else LineType.ENV_THAWED
        yield line(kind, environment=env.name, reason=now.frozen_reason)
    if now.is_failing != before.is_failing:
        kind = LineType.ENV_FAILING if now.is_failing else LineType.ENV_RECOVERED
        yield line(kind, environment=env.name, reason=env.failure if now.is_failing else None)
    if now.deleting and not before.deleting:
        yield line(LineType.ENV_DELETING, environment=env.name)


def _deployments(env: Environment, before: EnvironmentFacts) -> Iterator[Line]:
    for each in env.deployments:
        facts = {"environment": env.name, "deployment": each.number}
        if each.number not in before.deployments:
            back = each.is_rollback or None
            yield line(LineType.DEPLOYMENT_STARTED, **facts, revision=each.revision, isRollback=back)
        was = before.deployments.get(each.number, each.status.IN_PROGRESS)
        if each.status is not was:
            yield line(LineType.DEPLOYMENT_CHANGED, **facts, status=str(each.status), reason=each.reason)
