"""How is what the controller knows shown to users? Pure functions from stored records to the replies' bodies.

Times leave as ISO 8601 in UTC, money in US dollars unrounded, shares as 0..1; what is not known is null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from argosy.api.cost_views import budget_view
from argosy.api.pool_views import fleet_view
from argosy.api.timestamps import iso
from argosy.model.attempts import AttemptStatus
from argosy.model.deadlines import deadline_at
from argosy.model.inbox import SubmitRequest
from argosy.model.instances import Instance
from argosy.model.policy import Policy
from argosy.model.resources import CPU_UNITS_PER_VCPU, Resources
from argosy.model.runs import RunStatus, needs_of
from argosy.model.stance import Stance
from argosy.model.state import State
from argosy.model.tasks import NO_EXIT_CODE, TaskStatus, TaskTable

FAILURES_SHOWN = 10


def run_view(record: Mapping[str, Any]) -> dict[str, Any]:
    """A run as ListRuns shows it. `record` is what `documents.run_record` wrote."""
    return {
        "runId": record["id"],
        "name": record["name"],
        "status": record["status"],
        "statusReason": record["status_reason"] or None,
        "submittedAt": iso(record["submitted_at"]),
        "startedAt": iso(record["started_at"]),
        "stoppedAt": iso(record["stopped_at"]),
        "output": record["output"],
        "gpus": record["needs"][2],
        "tasks": _task_counts(record["task_count"], record["counts"]),
        "attempts": record["attempts"],
        "interruptions": record["interruptions"],
        "costUsd": record["cost_usd"],
        "onDemandCostUsd": record["on_demand_cost_usd"],
        "usefulUsd": sum((row[0] for row in record.get("costs", {}).values()), 0.0),
        "instances": len(record["instances"]),
    }


def full_run_view(record: Mapping[str, Any]) -> dict[str, Any]:
    """A run as DescribeRun shows it: also its latest failures, and why nothing starts."""
    failures = [
        {
            "index": failure["index"],
            "attempt": failure["attempt"],
            "exitCode": failure["exit_code"],
            "reason": failure["reason"],
            "instance": failure["instance"],
            "taskArn": failure["task_arn"],
        }
        for failure in record["failures"][-FAILURES_SHOWN:]
    ]
    return {
        **run_view(record),
        "retries": record.get("retries", 0),
        "failures": failures,
        "waiting": record["waiting"] or None,
        "purchase": purchase_view(record),
        "deadline": iso(record.get("deadline_at") or 0.0),
        "late": _is_late(record),
        "budget": budget_view(record),
    }


def purchase_view(record: Mapping[str, Any]) -> dict[str, Any]:
    """What its spec asks for, what is bought for it now, and since when and why that differs."""
    wanted, steering = record.get("purchase", "spot"), record.get("steering", {})
    mixed = wanted == "spot-then-on-demand"
    on_spot = steering.get("stance", Stance.SPOT) == Stance.SPOT
    return {
        "wanted": wanted,
        "now": ("spot" if on_spot else "on-demand") if mixed else wanted,
        "since": iso(steering.get("since", 0.0)),
        "reason": steering.get("reason") or None,
    }


def _is_late(record: Mapping[str, Any]) -> bool:
    deadline_at = record.get("deadline_at")
    missed = bool(deadline_at) and record["stopped_at"] > deadline_at
    return missed or bool(record.get("steering", {}).get("late"))


def submitted_record(request: SubmitRequest) -> dict[str, Any]:
    """The record of a run that the controller has not folded in yet."""
    capacity = request.spec.get("capacity", {})
    return {
        "id": request.run_id,
        "number": 0,
        "name": request.spec["name"],
        "status": RunStatus.SUBMITTED.value,
        "status_reason": "",
        "submitted_at": request.submitted_at,
        "started_at": 0.0,
        "stopped_at": 0.0,
        "output": request.output,
        "needs": list(needs_of(request.spec)),
        "task_count": request.task_count,
        "counts": [request.task_count] + [0] * (len(TaskStatus) - 1),
        "attempts": 0,
        "interruptions": 0,
        "cost_usd": 0.0,
        "on_demand_cost_usd": 0.0,
        "budget_usd": request.spec.get("capacity", {}).get("budgetUsd"),
        "max_hourly_usd": request.spec.get("capacity", {}).get("maxHourlyCost"),
        "drains_at_cap": request.spec.get("capacity", {}).get("onCap") != "finish",
        "instances": [],
        "failures": [],
        "halted": False,
        "purchase": capacity.get("purchase", "spot"),
        "deadline_at": deadline_at(capacity["deadline"], request.submitted_at) if "deadline" in capacity else None,
        "reasons": [""],
        "waiting": "",
    }


def _task_counts(total: int, counts: Sequence[int]) -> dict[str, int]:
    """Tasks whose result is being looked up still count as running."""
    return {
        "total": total,
        "pending": counts[TaskStatus.PENDING],
        "starting": counts[TaskStatus.STARTING],
        "running": counts[TaskStatus.RUNNING] + counts[TaskStatus.VERIFYING],
        "succeeded": counts[TaskStatus.SUCCEEDED],
        "failed": counts[TaskStatus.FAILED],
        "cancelled": counts[TaskStatus.CANCELLED],
    }


def task_rows(
    record: Mapping[str, Any], chunk: TaskTable, first_index: int, rows: Iterable[int], state: State, now: float
) -> list[dict[str, Any]]:
    """Tasks as DescribeRun's `taskList` shows them.

    chunk: some rows of the run's table, of which row 0 is task `first_index`; rows: which of them.
    """
    return [_task_row(record, chunk, row, first_index + row, state, now) for row in rows]


def _task_row(
    record: Mapping[str, Any], chunk: TaskTable, row: int, index: int, state: State, now: float
) -> dict[str, Any]:
    exit_code = int(chunk["exit_code"][row])
    shown = {
        "index": index,
        "status": TaskStatus(int(chunk.statuses(slice(row, row + 1))[0])).name,
        "attempts": int(chunk["attempts"][row]),
        "exitCode": None if exit_code == NO_EXIT_CODE else exit_code,
        "reason": record["reasons"][int(chunk["reason"][row])] or None,
        "instance": bytes(chunk["instance"][row]).decode() or None,
        "seconds": float(chunk["seconds"][row]) or None,
        "gpuIds": _gpu_ids(state, bytes(chunk["instance"][row]).decode(), int(chunk["gpu_mask"][row])),
        "taskArn": None,
    }
    live = state.attempts.row_of_task.get((record["number"], index))
    return shown if live is None else shown | _live_attempt(state, live, now)


def _live_attempt(state: State, row: int, now: float) -> dict[str, Any]:
    """What the attempt that is alive now says in place of the one that ended last."""
    attempts = state.attempts
    instance_id = bytes(attempts["instance"][row]).decode()
    started_at = float(attempts["started_at"][row])
    task_id = bytes(attempts["task_id"][row]).decode()
    return {
        "instance": instance_id,
        "seconds": max(0.0, now - started_at) if started_at else None,
        "gpuIds": _gpu_ids(state, instance_id, int(attempts["gpu_mask"][row])),
        "taskArn": _task_arn(state.instances.get(instance_id), task_id),
    }


def _gpu_ids(state: State, instance_id: str, mask: int) -> list[str]:
    instance = state.instances.get(instance_id)
    return [gpu for bit, gpu in enumerate(instance.gpu_ids) if mask >> bit & 1] if instance else []


def _task_arn(instance: Instance | None, task_id: str) -> str | None:
    """The ARN of a task from that of the container instance it runs on: same partition, account and cluster."""
    if instance is None or not instance.arn or not task_id:
        return None
    head, _, resource = instance.arn.rpartition(":")
    cluster = resource.split("/")[1]
    return f"{head}:task/{cluster}/{task_id}"


def cluster_view(
    state: State,
    needs: Mapping[int, Resources],
    cluster: str,
    cells: Sequence[str],
    now: float,
    policy: Policy = Policy(),  # noqa: B008 - a constant
) -> dict[str, Any]:
    """DescribeCluster's body. needs: what a task of each open run takes, by the run's number."""
    used, tasks = _used(state, needs)
    alive = [instance for instance in state.instances.values() if instance.alive]
    peaks = (state.peak_cpu, state.peak_memory, state.peak_gpus)
    return {
        "cluster": cluster,
        "cells": list(cells),
        "instances": [
            _instance_view(instance, used.get(instance.id, Resources()), tasks.get(instance.id, 0))
            for instance in state.instances.values()
        ],
        "fleets": [fleet_view(pool, now, policy) for pool in state.pools.values()],
        "usdPerHour": sum(instance.price_usd_per_hour for instance in alive),
        "spentUsd": state.spent_usd + sum(i.hours(now) * i.price_usd_per_hour for i in alive),
        "onDemandUsd": state.spent_on_demand_usd + sum(i.hours(now) * i.on_demand_usd_per_hour for i in alive),
        "peakUtilisation": dict(zip(("cpu", "memory", "gpus"), peaks, strict=True)),
    }


def _used(state: State, needs: Mapping[int, Resources]) -> tuple[dict[str, Resources], dict[str, int]]:
    """What live attempts take on each instance, and how many they are."""
    used: dict[str, Resources] = {}
    tasks: dict[str, int] = {}
    for row in state.attempts.live().tolist():
        instance_id = bytes(state.attempts["instance"][row]).decode()
        mine = needs.get(int(state.attempts["run"][row]), Resources())
        used[instance_id] = used.get(instance_id, Resources()).plus(mine)
        started = state.attempts["status"][row] in (AttemptStatus.LAUNCHED, AttemptStatus.RUNNING)
        tasks[instance_id] = tasks.get(instance_id, 0) + int(started)
    return used, tasks


def _instance_view(instance: Instance, used: Resources, tasks: int) -> dict[str, Any]:
    total = instance.total
    return {
        "instanceId": instance.id,
        "instanceType": instance.instance_type,
        "availabilityZone": instance.zone,
        "cell": instance.cell,
        "purchase": instance.purchase.value,
        "status": instance.status.value,
        "cpu": {"total": total.cpu_units / CPU_UNITS_PER_VCPU, "used": used.cpu_units / CPU_UNITS_PER_VCPU},
        "memory": {"total": total.memory_mib, "used": used.memory_mib},
        "gpus": {"total": total.gpus, "used": used.gpus},
        "tasks": tasks,
        "priceUsdPerHour": instance.price_usd_per_hour,
        "onDemandUsdPerHour": instance.on_demand_usd_per_hour,
        "launchedAt": iso(instance.launched_at),
        "stoppedAt": iso(instance.stopped_at),
    }
