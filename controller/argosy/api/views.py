"""Runs, tasks and the cluster in replies. Pure functions from stored records to the replies' bodies.

Times are ISO 8601 in UTC, money is in US dollars and unrounded, shares are 0..1; unknown values are null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.catalogue.lookup import BANDS, interruption_band, load_catalogue
from argosy.market.offers import is_stale, price_of, rate_of, rate_source, rejected
from argosy.model.arns import task_arn
from argosy.model.attempts import AttemptStatus
from argosy.model.instances import Instance, Purchase
from argosy.model.money.costs import Costs, summed
from argosy.model.policy import Policy
from argosy.model.pools import CAPACITY_BLOCK, Floor, Pool
from argosy.model.purchases import Stance
from argosy.model.resources import CPU_UNITS_PER_VCPU, Resources
from argosy.model.state import State
from argosy.model.stored.run_record import RunRecord
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
        "gpuShareMib": record.needs.gpu_share_mib,
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
        "changes": dict(record.changes),
        "changeReason": record.change_reason or None,
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
    now = Purchase.SPOT if steering.stance is Stance.SPOT else Purchase.ON_DEMAND
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


def cluster_view(state: State, needs: Mapping[int, Resources], now: float, policy: Policy) -> JSON:
    """The instances, fleets and costs of DescribeCluster's body. needs: of a task of each open run, by Run.number."""
    used, tasks = used_by_instance(state, needs)
    alive = [instance for instance in state.instances.values() if instance.alive]
    peaks = (state.peak_cpu, state.peak_memory, state.peak_gpus)
    return {
        "instances": [
            instance_view(instance, used.get(instance.id), tasks.get(instance.id, 0))
            for instance in state.instances.values()
        ],
        "fleets": [fleet_view(pool, now, policy) for pool in state.pools.values() if not pool.reservation],
        "reservations": [reservation_view(pool) for pool in state.pools.values() if pool.reservation],
        "usdPerHour": sum(instance.price_usd_per_hour for instance in alive),
        "spentUsd": state.spent_usd + sum(i.hours(now) * i.price_usd_per_hour for i in alive),
        "onDemandUsd": state.spent_on_demand_usd + sum(i.hours(now) * i.on_demand_usd_per_hour for i in alive),
        "peakUtilisation": dict(zip(("cpu", "memory", "gpus"), peaks, strict=True)),
        "floor": floor_view(state.floor),
    }


def floor_view(floor: Floor) -> JSON | None:
    """The minimum size that a user has requested; None = no number."""
    if not floor.instances:
        return None
    return {
        "instances": floor.instances,
        "instanceTypes": list(floor.types),
        "askedAt": iso(floor.asked_at),
        "until": iso(floor.until) if floor.until else None,
        "waiting": floor.waiting or None,
    }


def used_by_instance(state: State, needs: Mapping[int, Resources]) -> tuple[dict[str, Resources], dict[str, int]]:
    """The use of each instance by live attempts, and their number."""
    table, used = state.attempts, dict[str, Resources]()
    for name, runs in table.runs_on_instance.items():
        taken = Resources()
        for number, count in runs.items():
            taken = taken.plus(needs.get(number, Resources()), count)
        used[name.decode()] = taken
    at_work = Counter(table["instance"][at_work_rows(state)].tolist())
    return used, {name.decode(): count for name, count in at_work.items()}


def at_work_rows(state: State) -> NDArray[np.int64]:
    """The rows of attempts that ECS has, and that take their place on their instance."""
    table = state.attempts
    rows: NDArray[np.int64] = table.placed()
    return rows[table.has_status(AttemptStatus.LAUNCHED, AttemptStatus.RUNNING)[rows]]


def instance_view(instance: Instance, used: Resources | None, tasks: int) -> JSON:
    """One of `instances` of DescribeCluster's body. used: None = nothing."""
    total, used = instance.total, used or Resources()
    return {
        "instanceId": instance.id,
        "instanceType": instance.instance_type,
        "availabilityZone": instance.zone,
        "cell": instance.cell,
        "purchase": instance.purchase.value,
        "reservation": instance.reservation or None,
        "status": instance.status.value,
        "cpu": {"total": total.cpu_units / CPU_UNITS_PER_VCPU, "used": used.cpu_units / CPU_UNITS_PER_VCPU},
        "memory": {"total": total.memory_mib, "used": used.memory_mib},
        "gpus": {"total": total.gpus, "used": used.gpus},
        "tasks": tasks,
        "noWorkBecause": instance.cordon or None,
        "console": instance.console or None,
        "priceUsdPerHour": instance.price_usd_per_hour,
        "onDemandUsdPerHour": instance.on_demand_usd_per_hour,
        "diskUsdPerHour": instance.disk_usd_per_hour,
        "addressUsdPerHour": instance.address_usd_per_hour,
        "launchedAt": iso(instance.launched_at),
        "stoppedAt": iso(instance.stopped_at),
    }


def reservation_view(pool: Pool) -> JSON:
    """One of `reservations` of DescribeCluster's body. USD an hour at on-demand prices, whether used or not; null for a
    Capacity Block, which is paid in advance."""
    kind = None if pool.reserved_as == CAPACITY_BLOCK else load_catalogue(pool.cell).get(pool.instance_type)
    usd = price_of(pool, kind, Purchase.ON_DEMAND, 0.0, Policy()) if kind else None
    return {
        "reservation": pool.reservation,
        "kind": pool.reserved_as,
        "instanceType": pool.instance_type,
        "availabilityZone": pool.zone,
        "cell": pool.cell,
        "instances": pool.reserved,
        "free": pool.reserved_free,
        "endsAt": iso(pool.reserved_until),
        "emptyBy": iso(pool.empty_by),
        "unusableBecause": pool.unusable or None,
        "usdPerHour": usd and usd * pool.reserved,
        "idleUsdPerHour": usd and usd * pool.reserved_free,
    }


def fleet_view(pool: Pool, now: float, policy: Policy) -> JSON:
    """One of `fleets` of DescribeCluster's body. USD an hour; times are ISO 8601; unknown values are null."""
    kind = load_catalogue(pool.cell).get(pool.instance_type)
    band = interruption_band(pool.cell, pool.instance_type)
    why_not = rejected([pool], load_catalogue(pool.cell), now, policy)
    return {
        "instanceType": pool.instance_type,
        "availabilityZone": pool.zone,
        "cell": pool.cell,
        "spotTarget": pool.spot_target,
        "onDemandTarget": pool.on_demand_target,
        "spotUsdPerHour": pool.spot_usd_per_hour or None,
        "pricedAt": iso(pool.priced_at, "seconds"),
        "priceIsStale": is_stale(pool, now, policy),
        "onDemandUsdPerHour": price_of(pool, kind, Purchase.ON_DEMAND, now, policy) if kind else None,
        "onDemandFrom": "priceList" if pool.listed_usd_per_hour else "catalogue",
        "assumedUsdPerHour": price_of(pool, kind, Purchase.SPOT, now, policy) if kind else None,
        "interruptionBand": None if band is None else BANDS[band],
        "interruptionsPerHour": rate_of(pool, now, policy),
        "interruptionsFrom": rate_source(pool, now, policy),
        "coolingOffUntil": iso(pool.short_until if pool.short_until > now else 0.0, "seconds"),
        "coolingOffAfter": pool.short_reason if pool.short_until > now else None,
        "behindSince": iso(pool.behind_since, "seconds"),
        "behindBecause": pool.behind_because or None,
        "needsMending": pool.needs_mending and pool.cools_off(now),
        "unsettledUntil": iso(pool.unsettled_until if pool.unsettled_until > now else 0.0, "seconds"),
        "placementScore": pool.placement_score or None,
        "noOfferBecause": why_not[0][1] if why_not else None,
    }
