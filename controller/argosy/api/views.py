"""Runs, tasks and the cluster in replies. Pure functions from stored records to the replies' bodies.

Times are ISO 8601 in UTC, money is in US dollars and unrounded, shares are 0..1; unknown values are null.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from argosy.model.arns import task_arn
from argosy.model.costs import Costs, summed
from argosy.model.instances import Purchase
from argosy.model.program_versions import ProgramVersion
from argosy.model.purchases import PurchaseStance
from argosy.model.resources import CPU_UNITS_PER_VCPU
from argosy.model.run_record import RunRecord
from argosy.model.state import State
from argosy.model.tasks import NO_EXIT_CODE, TaskStatus, TaskTable

JSON = dict[str, Any]
FAILURES_SHOWN = 10
OTHER_REASONS = "(other reasons)"
FIRST_S, LAST_S = -62_135_596_800.0, 253_402_214_400.0  # of the calendar: 0001-01-01 and 9999-12-31
_SPENT_ON = ("useful", "boot", "idle", "redone", "failed", "displaced")  # members of Costs


def iso(epoch_s: float, precision: str = "milliseconds") -> str | None:
    """`2026-11-21T06:27:33.000Z`; None for 0, which means "not yet". precision: as of `datetime.isoformat`."""
    if not epoch_s:
        return None
    shown = min(max(epoch_s, FIRST_S), LAST_S)  # a stored time must break no view
    return datetime.fromtimestamp(shown, UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def run_view(record: RunRecord) -> JSON:
    """A run as ListRuns shows it."""
    return {
        "runId": record.id,
        "name": record.name,
        "environment": None if record.healthy_s is None else record.name,
        "status": record.shown_status,
        "statusReason": record.status_reason or None,
        "submittedAt": iso(record.submitted_at),
        "startedAt": iso(record.started_at),
        "stoppedAt": iso(record.stopped_at),
        "output": record.output,
        "owner": record.proven_owner or record.owner or None,
        "ownerProven": bool(record.proven_owner),
        "gpus": record.needs.gpus,
        "gpuPart": float(record.gpu_part) if record.gpu_part else None,
        "gpuShareMib": record.needs.gpu_share_mib,
        "gangSize": record.gang_size,
        "tasks": _task_counts(record.task_count, record.counts),
        "attempts": record.attempts,
        "interruptions": record.interruptions,
        "preemptions": record.preemptions,
        "costUsd": record.cost_usd,
        "onDemandCostUsd": record.on_demand_cost_usd,
        "usefulUsd": sum((costs.useful for costs in record.costs.values()), 0.0),
        "instances": record.instance_count,
    }


def full_run_view(record: RunRecord) -> JSON:
    """A run as DescribeRun shows it: also its failures, the latest and in groups, and why nothing starts."""
    total = summed(record.costs.values())
    failures = [
        {
            "index": failure.index,
            "attempt": failure.attempt,
            "exitCode": failure.exit_code,
            "reason": failure.reason,
            "instance": failure.instance,
            "taskArn": failure.task_arn,
        }
        for failure in record.failures[-FAILURES_SHOWN:]
    ]
    return {
        **run_view(record),
        "retries": record.retries,
        "redoneUsd": total.redone,
        "redoneHours": total.instance_seconds / 3600 * total.redone / total.total if total.redone else 0.0,
        "failures": failures,
        "failureGroups": failure_groups_view(record),
        "memoryMib": record.needs.memory_mib or None,
        "vcpus": record.needs.cpu_units / CPU_UNITS_PER_VCPU,
        "expectsResult": record.expects_result,
        "waiting": record.waiting or None,
        "purchase": purchase_view(record),
        "deadline": iso(record.deadline_at or 0.0),
        "late": _is_late(record),
        "budget": budget_view(record),
        "dependsOn": dependencies_view(record),
        "notBefore": iso(record.not_before),
        "queue": None if record.is_daemon else record.queue or None,
        "priority": record.priority,
        "maxInstances": record.max_instances,
        "maxConcurrentTasks": record.max_concurrent,
        "programs": [program_view(number, each) for number, each in enumerate(record.programs, 1)],
        "changes": dict(record.changes),
        "changeReason": record.change_reason or None,
    }


def program_view(number: int, version: ProgramVersion) -> JSON:
    """A version of a run's program. attempts, seconds: of its attempts that have ended; results: tasks that it made."""
    return {
        "version": number,
        "sha256": version.digest,
        "job": version.job,
        "addedAt": iso(version.added_at),
        "attempts": version.attempts,
        "seconds": version.seconds,
        "results": version.results,
    }


def dependencies_view(record: RunRecord) -> list[JSON]:
    """A dependency of a run, as DescribeRun shows it. isMet: whether it no longer waits for that run."""
    return [
        {
            "runId": each.run_id,
            "type": "N_TO_N" if each.one_to_one else "ALL",
            "on": "end" if each.on_end else "success",
            "isMet": each.run_id not in record.unmet,
        }
        for each in record.depends_on
    ]


def failure_groups_view(record: RunRecord) -> list[JSON]:
    """Its attempts that failed, in at most 50 groups of like reason and exit code, the most frequent first."""
    return [
        {
            "reason": reason_of(record, group.reason),
            "exitCode": None if group.exit_code == NO_EXIT_CODE or group.reason < 0 else group.exit_code,
            "count": group.count,
            "firstIndex": group.first_index,
            "lastIndex": group.last_index,
            "firstAt": iso(group.first_at),
            "lastAt": iso(group.last_at),
        }
        for group in sorted(record.failure_groups, key=lambda each: -each[2])
    ]


def reason_of(record: RunRecord, row: int) -> str | None:
    """The text of a row of the run's reasons; None if it is empty."""
    return (record.reasons[row] if 0 <= row < len(record.reasons) else OTHER_REASONS) or None


def purchase_view(record: RunRecord) -> JSON:
    """The purchase option of its spec, the current one, and since when and why they differ."""
    wanted, steering = record.purchase, record.steering
    now = Purchase.SPOT if steering.stance is PurchaseStance.SPOT else Purchase.ON_DEMAND
    return {
        "wanted": wanted.value,
        "now": now.value if wanted.mixes else wanted.value,
        "since": iso(steering.since),
        "reason": steering.reason or None,
    }


def _is_late(record: RunRecord) -> bool:
    missed = bool(record.deadline_at) and record.stopped_at > (record.deadline_at or 0.0)
    return missed or record.steering.late


def cost_view(record: RunRecord) -> JSON:
    """A run's ledger: by line of the bill, by use, and by pool. Each adds up to the run's cost."""
    total = summed(record.costs.values())
    return {
        "byLine": {"instancesUsd": total.instances, "disksUsd": total.disks, "addressesUsd": total.addresses},
        "byWaste": {f"{kind}Usd": getattr(total, kind) for kind in _SPENT_ON},
        "byPool": [_market_view(market, costs) for market, costs in sorted(record.costs.items(), key=_dearest_first)],
        "instanceHours": total.instance_seconds / 3600,
    }


def _dearest_first(row: tuple[str, Costs]) -> tuple[float, str]:
    return -row[1].total, row[0]


def _market_view(market: str, costs: Costs) -> JSON:
    pool, _, purchase = market.partition("|")
    cell, instance_type, zone, *_ = pool.split("/") if pool.count("/") > 1 else (None, pool, None)
    return {
        "cell": cell,
        "instanceType": instance_type,
        "availabilityZone": zone,
        "purchase": purchase or None,
        "instanceHours": costs.instance_seconds / 3600,
        "costUsd": costs.total,
        "usefulUsd": costs.useful,
        "onDemandCostUsd": costs.on_demand,
    }


def budget_view(record: RunRecord) -> JSON | None:
    """The run's caps and how far they are used; None for a run without any."""
    budget, hourly = record.budget_usd, record.max_hourly_usd
    if budget is None and hourly is None:
        return None
    return {
        "budgetUsd": budget,
        "spentUsd": record.cost_usd,
        "reservedUsd": record.reserved_usd,
        "maxHourlyCost": hourly,
        "usdPerHour": record.usd_per_hour,
        "onCap": ("drain" if record.drains_at_cap else "finish") if budget is not None else None,
        "usedUp": bool(record.capped_at),
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


@dataclass(frozen=True, slots=True)
class ChosenTasks:
    """Rows of one chunk of a run's tasks."""

    record: RunRecord
    first: int  # index of the chunk's first task
    chunk: TaskTable
    rows: Sequence[int]


def task_rows(chosen: ChosenTasks, state: State, now: float) -> list[JSON]:
    """Tasks as DescribeRun's `taskList` shows them."""
    return [_task_row(chosen, row, state, now) for row in chosen.rows]


def statuses_view(chunks: Iterable[TaskTable]) -> JSON:
    """The status of every task in the order of the indexes: `data` is base64 of `dtype`, of rows in `values`."""
    codes = np.concatenate([np.empty(0, "u1"), *(each.statuses() for each in chunks)]).astype("u1")
    data = base64.b64encode(codes.tobytes()).decode()
    return {"dtype": "<u1", "data": data, "values": [each.name for each in TaskStatus]}


def _task_row(chosen: ChosenTasks, row: int, state: State, now: float) -> JSON:
    record, chunk, index = chosen.record, chosen.chunk, chosen.first + row
    exit_code = int(chunk["exit_code"][row])
    shown = {
        "index": index,
        "status": TaskStatus(int(chunk.statuses(slice(row, row + 1))[0])).name,
        "attempts": int(chunk["attempts"][row]),
        "exitCode": None if exit_code == NO_EXIT_CODE else exit_code,
        "reason": record.reasons[int(chunk["reason"][row])] or None,
        "instance": bytes(chunk["instance"][row]).decode() or None,
        "seconds": float(chunk["seconds"][row]) or None,
        "gpuIds": _gpu_ids(state, bytes(chunk["instance"][row]).decode(), int(chunk["gpu_mask"][row])),
        "taskArn": None,
        "program": int(chunk["program"][row]) + 1 if record.programs else None,
    }
    live = state.attempts.row_of_task.get((record.number, index))
    return shown if live is None else shown | _live_attempt(state, live, now)


def _live_attempt(state: State, row: int, now: float) -> JSON:
    """The fields that the live attempt overrides in those of the last ended one."""
    attempts = state.attempts
    instance_id = bytes(attempts["instance"][row]).decode()
    started_at = float(attempts["started_at"][row])
    task_id = bytes(attempts["task_id"][row]).decode()
    instance = state.instances.get(instance_id)
    return {
        "instance": instance_id,
        "seconds": max(0.0, (float(attempts["left_at"][row]) or now) - started_at) if started_at else None,
        "gpuIds": _gpu_ids(state, instance_id, int(attempts["gpu_mask"][row])),
        "taskArn": None if instance is None else task_arn(instance.arn, task_id),
    }


def _gpu_ids(state: State, instance_id: str, mask: int) -> list[str]:
    instance = state.instances.get(instance_id)
    return [gpu for bit, gpu in enumerate(instance.gpu_ids) if mask >> bit & 1] if instance else []
