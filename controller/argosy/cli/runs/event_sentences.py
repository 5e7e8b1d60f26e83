"""Lines of the journal as sentences, one for each type; unknown types are shown unchanged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Change = Mapping[str, Any]
MOST_RANGES = 5


def sentence(change: Change) -> str:
    """The line in plain words. A type from a later version of the api is shown unchanged."""
    kind = str(change.get("type"))
    words = _SENTENCES.get(kind)
    if words is None:
        return json.dumps(dict(change))
    return words(change) + _why(change)


def tasks_of(change: Change) -> str:
    """`task 7`, `tasks 3-9, 12`; of many ranges the first ones."""
    pairs: Sequence[Sequence[int]] = change.get("tasks", ())
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in pairs[:MOST_RANGES]]
    more = [f"and {len(pairs) - MOST_RANGES} more ranges"] if len(pairs) > MOST_RANGES else []
    is_one = len(pairs) == 1 and pairs[0][0] == pairs[0][1]
    return f"{'task' if is_one else 'tasks'} {', '.join([*shown, *more])} of {_run(change)}"


def _run(change: Change) -> str:
    return str(change.get("runId") or f"run number {change.get('runNumber')}")


def _why(change: Change) -> str:
    return f": {change['reason']}" if change.get("reason") else ""


def _about_run(words: str) -> Callable[[Change], str]:
    return lambda change: f"{_run(change)} {words}"


def _about_tasks(words: str) -> Callable[[Change], str]:
    def says(change: Change) -> str:
        place = f" on {change['instance']}" if change.get("instance") else ""
        return f"{tasks_of(change)} {words}{place}"

    return says


def _about_instance(words: str) -> Callable[[Change], str]:
    return lambda change: f"{change['instance']} {words}"


def _warned(change: Change) -> str:
    return f"{change['instance']} {'is emptied' if change.get('reason') else 'is interrupted: EC2 reclaims it'}"


def _about_pool(words: str) -> Callable[[Change], str]:
    return lambda change: f"{change['pool']} {words}"


def _submitted(change: Change) -> str:
    return f"{_run(change)} was submitted: {change['taskCount']:,} tasks"


def _closed(change: Change) -> str:
    cost = f", ${change['costUsd']:.4f}" if "costUsd" in change else ""
    return f"{_run(change)} ended as {change['status']}{cost}"


def changes_in_words(changes: Mapping[str, Any]) -> str:
    """`priority 5, no deadline`."""
    return ", ".join(f"no {name}" if value is None else f"{name} {value}" for name, value in changes.items())


def _waiting(change: Change) -> str:
    return f"{_run(change)} {'is waiting' if change.get('reason') else 'is no longer waiting'}"


def _ended(change: Change) -> str:
    code = f" with exit code {change['exitCode']}" if "exitCode" in change else ""
    account = f", charged to {change['chargedTo']}" if change.get("chargedTo") else ""
    place = f" on {change['instance']}" if change.get("instance") else ""
    return f"attempt {change['attempt']} of {tasks_of(change)} ended{place}{code}{account}; now {change['status']}"


def _refused(change: Change) -> str:
    return f"{tasks_of(change)} could not be started on {change['instance']}; now {change['status']}"


def _settled(change: Change) -> str:
    return f"{tasks_of(change)} {'is' if _is_one(change) else 'are'} now {change['status']}"


def _is_one(change: Change) -> bool:
    return tasks_of(change).startswith("task ")


def _booting(change: Change) -> str:
    return (
        f"{change['instance']} is booting: {change['instanceType']} in {change['zone']}, {change['purchase']}, "
        f"${change['usdPerHour']:.4f} an hour"
    )


def _cordoned(change: Change) -> str:
    return f"{change['instance']} {'gets no new tasks' if change.get('reason') else 'gets tasks again'}"


def _scaled(change: Change) -> str:
    kinds = f" of {' or '.join(change['types'])}" if change.get("types") else ""
    until = f" until {change['until']}" if change.get("until") else ""
    return f"minimum number of instances: {change['instances']}{kinds}{until}"


def _targets(words: str) -> Callable[[Change], str]:
    return lambda change: f"{change['pool']} {words}: {change['spot']} spot, {change['onDemand']} on-demand"


def _closed_pool(change: Change) -> str:
    return f"{change['pool']} {'is closed' if change.get('reason') else 'is open again'}"


def _order(change: Change) -> str:
    percent = change.get("gapPct")
    gap = "" if percent is None else f", at most {percent:.1f} % above the least it could cost"
    count = change["instances"]
    return f"{count} instance{'' if count == 1 else 's'} ordered for ${change['usdPerHour']:.4f} an hour{gap}"


def _about_environment(words: str) -> Callable[[Change], str]:
    return lambda change: f"environment {change['environment']} {words.format(**change)}"


def _deployment(change: Change) -> str:
    return f"deployment {change['deployment']} of environment {change['environment']}"


def _deploying(change: Change) -> str:
    goes_back = " goes back" if change.get("isRollback") else ""
    return f"{_deployment(change)}{goes_back or ' begins'}, to revision {change['revision']}"


def _why_stopped(change: Change) -> str:
    if change.get("forRun"):
        queue = f" of queue {change['forQueue']}" if change.get("forQueue") else ""
        return f"for run {change['forRun']}{queue}"
    return str(change["cause"])


_OF_ENVIRONMENTS: Mapping[str, Callable[[Change], str]] = {
    "env.created": _about_environment("was created with revision {revision}: {desired} tasks"),
    "env.updated": _about_environment("has revision {revision}"),
    "env.scaled": _about_environment("now has {desired} desired tasks"),
    "env.frozen": _about_environment("is frozen"),
    "env.thawed": _about_environment("is thawed"),
    "env.failing": _about_environment("is failing: its tasks end soon after their start"),
    "env.recovered": _about_environment("has recovered"),
    "env.deleting": _about_environment("is being deleted"),
    "env.deleted": _about_environment("is deleted"),
    "deployment.started": _deploying,
    "deployment.changed": lambda change: f"{_deployment(change)} is {change['status']}",
}
_SENTENCES: Mapping[str, Callable[[Change], str]] = {
    "run.submitted": _submitted,
    "run.prepared": _about_run("is prepared"),
    "run.running": _about_run("is running"),
    "run.waiting": _waiting,
    "run.steered": lambda change: f"{_run(change)} buys {change['buys']}{' and is late' if change.get('late') else ''}",
    "run.halted": _about_run("starts no more tasks"),
    "run.reopened": _about_run("was reopened"),
    "run.revived": _about_run("has its tasks back"),
    "run.suspended": _about_run("is suspended"),
    "run.resumed": _about_run("is resumed"),
    "run.grown": lambda change: f"{_run(change)} now has {change['taskCount']:,} tasks",
    "run.updated": lambda change: f"{_run(change)} was changed: {changes_in_words(change['changes'])}",
    "run.closed": _closed,
    **_OF_ENVIRONMENTS,
    "task.placed": _about_tasks("placed"),
    "task.inDoubt": _about_tasks("may have been launched"),
    "task.launched": _about_tasks("launched"),
    "task.running": _about_tasks("running"),
    "task.stopping": lambda change: f"{_about_tasks('asked to stop')(change)} ({_why_stopped(change)})",
    "task.left": _about_tasks("stopped while the run is suspended,"),
    "task.returned": _about_tasks("was launched after all"),
    "task.refused": _refused,
    "task.ended": _ended,
    "task.dropped": _about_tasks("no longer known"),
    "task.verified": _about_tasks("SUCCEEDED: the result is stored"),
    "task.settled": _settled,
    "instance.booting": _booting,
    "instance.registered": _about_instance("has joined the cluster"),
    "instance.advised": _about_instance("is at risk: EC2 recommends moving off it"),
    "instance.warned": _warned,
    "instance.cordoned": _cordoned,
    "instance.paused": lambda change: f"{change['instance']} refused tasks and gets no more until {change['until']}",
    "instance.disconnected": _about_instance("has lost its agent"),
    "instance.connected": _about_instance("has its agent back"),
    "instance.draining": _about_instance("is draining"),
    "instance.releasing": _about_instance("is being terminated"),
    "instance.gone": _about_instance("is gone"),
    "instance.forgotten": _about_instance("is no longer remembered"),
    "cluster.scaled": _scaled,
    "cluster.waiting": lambda change: f"the cluster is {'below' if change.get('reason') else 'at'} its minimum size",
    "cluster.headroom": lambda change: f"room for further tasks is {'missing' if change.get('reason') else 'there'}",
    "pool.found": _targets("was found"),
    "pool.target": _targets("has a new target"),
    "pool.short": lambda change: f"{change['pool']} is cooling off until {change['until']}",
    "pool.closed": _closed_pool,
    "pool.forgotten": _about_pool("is no longer known"),
    "order": _order,
    "request.refused": lambda change: f"request {change['request']} cannot be carried out and was set aside",
    "state.damaged": lambda change: "stored data was damaged; changes may be missing here",
}
