"""Environments in replies: from the record and the tasks to the reply's body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.api.views import iso
from argosy.model.attempts import AttemptStatus
from argosy.model.live_tasks import healthy_for
from argosy.model.run_record import RunRecord
from argosy.model.services.environments import Environment, Revision, ServiceDeployment
from argosy.model.services.ports import TaskPort, unpacked
from argosy.model.state import State
from argosy.model.tasks import TaskStatus

JSON = dict[str, Any]


def environment_view(env: Environment, records: Mapping[str, RunRecord], state: State, now: float) -> JSON:
    """records: by run id, of the runs that it has, or has replaced. state: of the cluster."""
    tasks = {each.number: _tasks(records.get(each.run_id), state, now) for each in env.revisions}
    target = env.target.number if env.target else 0
    return {
        "name": env.name,
        "kind": "daemon" if env.is_daemon else "service",
        "status": status_of(env, records),
        "statusReason": _reason(env, records) or None,
        "frozenByUser": env.frozen_by_user,
        "createdAt": iso(env.created_at),
        "desired": env.desired,
        "healthy": sum(each["healthy"] for each in tasks.values()),
        "running": sum(each["running"] for each in tasks.values()),
        "total": sum(each["alive"] for each in tasks.values()),
        "outdated": sum(each["alive"] for number, each in tasks.items() if number != target),
        "pending": tasks[target]["pending"] if target in tasks else 0,
        "registeredTargets": sum(bool(each.registered_at and not each.left_at) for each in env.targets.values()),
        "latestRevision": env.latest.number,
        "targetRevision": target or None,
        "completedRevision": env.completed or None,
        "costUsd": env.past_usd + sum(each.cost_usd for each in records.values() if not each.has_ended),
        "revisions": [
            {
                "revision": each.number,
                "createdAt": iso(each.created_at),
                "runId": each.run_id or None,
                "healthy": tasks[each.number]["healthy"],
                "running": tasks[each.number]["running"],
            }
            for each in env.revisions
        ],
        "deployments": [_deployment_view(each) for each in env.deployments],
    }


def status_of(env: Environment, records: Mapping[str, RunRecord]) -> str:
    """In one word."""
    if env.deleting:
        return "DELETING"
    if env.left:
        return "LEFT"
    if env.frozen_reason:
        return "FROZEN"
    if env.target is not None and _suspended(env.target, records):
        return "SUSPENDED"
    if env.is_failing:
        return "FAILING"
    return str(env.deployment.status) if env.deployment else "CREATED"


def _suspended(revision: Revision, records: Mapping[str, RunRecord]) -> RunRecord | None:
    """Its run's record, if the run is suspended because the controller's own code fails on it."""
    record = records.get(revision.run_id)
    return record if record is not None and record.suspended_at and not record.has_ended else None


def _reason(env: Environment, records: Mapping[str, RunRecord]) -> str:
    if env.frozen_reason:
        return env.frozen_reason
    for revision in sorted(env.revisions, key=lambda each: each is not env.target):
        if record := _suspended(revision, records):
            return f"revision {revision.number} is {record.waiting}"
    if env.is_failing:
        return f"its tasks failed soon after their start {env.failures} times and are being restarted: {env.failure}"
    if env.targets_reason:
        return env.targets_reason
    target = records.get(env.target.run_id) if env.target else None
    waiting = target.waiting if target is not None and not target.has_ended else ""
    return (env.deployment.reason if env.deployment else "") or waiting


def _deployment_view(deployment: ServiceDeployment) -> JSON:
    return {
        "deployment": deployment.number,
        "revision": deployment.revision,
        "status": str(deployment.status),
        "reason": deployment.reason or None,
        "startedAt": iso(deployment.started_at),
        "endedAt": iso(deployment.ended_at),
        "failures": deployment.failures,
        "isRollback": deployment.is_rollback,
    }


def endpoints(env: Environment, records: Mapping[str, RunRecord], state: State, now: float) -> list[JSON]:
    """The addresses of the tasks that run and have not been stopped. Within the network of the instances, at
    their private addresses."""
    found: list[JSON] = []
    for revision in env.revisions:
        record = records.get(revision.run_id)
        if record is None or record.has_ended or not record.number or not record.ports:
            continue
        rows = _serving(record, state)
        for row, healthy in zip(rows.tolist(), _healthy(record, state, rows, now).tolist(), strict=True):
            shown = {"revision": revision.number, "healthy": healthy}
            found += [each | shown for each in _endpoints(state, row, record.ports)]
    return found


def _endpoints(state: State, row: int, ports: Sequence[TaskPort]) -> list[JSON]:
    """Of one task."""
    instance = state.instance_of(row)
    return [
        {
            "task": int(state.attempts["index"][row]),
            "instance": instance.id,
            "privateIp": instance.private_ip or None,
            "publicIp": instance.public_ip or None,
            "hostPort": port.host,
            "containerPort": port.container,
        }
        for port in unpacked(ports, int(state.attempts["host_ports"][row]))
        if instance is not None
    ]


def _serving(record: RunRecord, state: State) -> NDArray[np.int64]:
    """Rows of the tasks that run and have not been stopped."""
    table = state.attempts
    rows = np.array(sorted(table.of_run(record.number)), dtype=np.int64)
    found: NDArray[np.int64] = rows[(table["status"][rows] == AttemptStatus.RUNNING) & (table["stop_cause"][rows] == 0)]
    return found


def _healthy(record: RunRecord, state: State, rows: NDArray[np.int64], now: float) -> NDArray[np.bool_]:
    return healthy_for(state.attempts, rows, record.healthy_s or 0.0, now, has_command=record.has_health)


def _tasks(record: RunRecord | None, state: State, now: float) -> dict[str, int]:
    if record is None or record.has_ended or not record.number:
        return {"healthy": 0, "running": 0, "alive": 0, "pending": 0}
    table = state.attempts
    rows = np.array(sorted(table.of_run(record.number)), dtype=np.int64)
    runs = _serving(record, state)
    return {
        "healthy": int(np.count_nonzero(_healthy(record, state, runs, now))),
        "running": len(runs),
        "alive": len(rows),
        "pending": int(record.counts[TaskStatus.PENDING]),
    }
