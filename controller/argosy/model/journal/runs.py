"""Lines about runs and environments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from argosy.model.journal.lines import Line, LineType, line
from argosy.model.purchases import PurchaseStance
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run, RunFacts
from argosy.model.services.environments import Environment, EnvironmentFacts
from argosy.model.state import State


def environment_lines(state: State) -> list[Line]:
    """Lines of the changed environments."""
    found: list[Line] = []
    for name in sorted(state.changed_environments):
        env = state.environments.get(name)
        found += [line(LineType.ENV_DELETED, environment=name)] if env is None else _environment_changes(env)
    return found


def _environment_changes(env: Environment) -> Iterator[Line]:
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


_FIGURES = re.compile(r"[0-9][0-9.,:]*")


def run_lines(state: State) -> list[Line]:
    """Lines of open runs, and of suspended or set-aside runs."""
    found = [each for run in state.runs.values() if run.id in state.changed_runs for each in _changes(run)]
    return found + [_of_record(record) for record in state.quarantined.values()]


def _changes(run: Run) -> Iterator[Line]:
    before, now = run.committed, run.facts()
    if before is None:
        yield _line(LineType.RUN_SUBMITTED, run, name=run.name, taskCount=run.task_count, output=run.output)
        before = RunFacts(run.status, "", "", halted=False, cancelled=False, is_capped=False, steering=now.steering,
                          retries=0, task_count=run.task_count)  # fmt: skip
    if before.was_suspended:
        yield _line(LineType.RUN_RESUMED, run)
    if now.task_count > before.task_count:
        yield _line(LineType.RUN_GROWN, run, taskCount=now.task_count)
    yield from _retried(run, before, now)
    if now.changes != before.changes:
        known = dict(before.changes)
        news = {name: value for name, value in now.changes if name not in known or known[name] != value}
        yield _line(LineType.RUN_UPDATED, run, changes=news, reason=run.change_reason)
    if now.task_definition and now.task_definition != before.task_definition:
        yield _line(LineType.RUN_PREPARED, run, taskDefinition=now.task_definition)
    if now.status != before.status and now.status == "RUNNING":
        yield _line(LineType.RUN_RUNNING, run)
    yield from _halted(run, before, now)
    if (now.steering.stance, now.steering.late) != (before.steering.stance, before.steering.late):
        buys = "spot" if now.steering.stance is PurchaseStance.SPOT else "on-demand"
        yield _line(LineType.RUN_STEERED, run, buys=buys, late=now.steering.late, reason=now.steering.reason)
    if not run.done and _words(now.waiting) != _words(before.waiting):
        yield _line(LineType.RUN_WAITING, run, reason=now.waiting)
    if run.done:
        yield _line(LineType.RUN_CLOSED, run, reason=run.status_reason, costUsd=round(run.cost_usd, 6))


def _retried(run: Run, before: RunFacts, now: RunFacts) -> Iterator[Line]:
    """A retry halts the run until all of its tasks are checked: then it is revived."""
    if now.retries != before.retries:
        yield _line(LineType.RUN_REOPENED, run, retries=now.retries)
    if (before.halted or now.retries != before.retries) and not now.halted:
        yield _line(LineType.RUN_REVIVED, run)


def _halted(run: Run, before: RunFacts, now: RunFacts) -> Iterator[Line]:
    given_up = (now.cancelled, now.is_capped) != (before.cancelled, before.is_capped)
    if now.halted and now.retries == before.retries and (given_up or not before.halted):
        yield _line(LineType.RUN_HALTED, run, reason=run.status_reason, cancelled=now.cancelled or None)


def _line(kind: LineType, run: Run, **facts: object) -> Line:
    return line(kind, runId=run.id, status=str(run.status), **facts)


def _of_record(record: RunRecord) -> Line:
    """The line of a run that is suspended or set aside."""
    if record.has_ended:
        return line(LineType.RUN_CLOSED, runId=record.id, status=str(record.status), reason=record.status_reason)
    return line(LineType.RUN_SUSPENDED, runId=record.id, status=str(record.status), reason=record.waiting)


def _words(sentence: str) -> str:
    """The sentence without its figures: a change of figures alone is no news."""
    return _FIGURES.sub("0", sentence)
