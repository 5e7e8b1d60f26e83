"""The terms of a run, read from its validated spec.

The only reader of a spec's terms: `api.admission` calls it once, and the terms are stored with the run. The
command, environment and piece of each task are not among them: see `shards`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from argosy.model.exit_codes import WRONG_REQUEST
from argosy.model.purchases import PurchaseMode
from argosy.model.resources import CPU_UNITS_PER_VCPU, Resources
from argosy.model.run_terms import (
    DEFAULT_QUEUE,
    START_FIRST,
    X86_64,
    Changes,
    DaemonTerms,
    Deadline,
    Dependency,
    ExitRule,
    GangTerms,
    HealthTerms,
    Port,
    RunTerms,
    ServiceTerms,
    port_of,
)
from argosy.model.services.ports import TCP, TaskPort
from argosy.spec.gangs import GangSpec
from argosy.spec.models import (
    ArraySpec,
    CapacitySpec,
    ContainerSpec,
    PlacementSpec,
    ResourcesSpec,
    RunSpec,
)
from argosy.spec.parse import purchase_of, to_json
from argosy.spec.services import DaemonSpec, DaemonUpdateSpec, HealthSpec, UpdateSpec
from argosy.spec.tries import FallbackSpec

FALLBACK_LOSSES = 3
DRAIN_S = 30.0
_RUNNER_RULES = (ExitRule("EXIT", str(WRONG_REQUEST)),)  # after the spec's own rules: trying again cannot help
_AROUND = ("array", "placement", "daemon")  # the size of the array is the first desired count
_ROLLOUT = ("desired", "update")


def terms_of(spec: RunSpec) -> RunTerms:
    """The terms of a spec that has passed `parse.parse_spec`."""
    container = spec.container or ContainerSpec()
    ports = tuple(TaskPort(each.container, each.host or 0) for each in container.ports or ())
    needs_runner = spec.run is not None
    rules = [ExitRule(each.action, each.on_exit_code, each.on_reason, each.on_status_reason)
             for each in spec.retry_strategy.evaluate_on_exit]  # fmt: skip
    return RunTerms(
        name=spec.name,
        host_ports=tuple(sorted({*map(port_of, container.host_ports or ()), *_pinned(ports)})),
        needs_runner=needs_runner,
        task_definition=spec.task_definition or "",
        output=spec.output or "",
        tags=tuple(spec.tags.items()),
        attempt_limit=spec.retry_strategy.attempts,
        alike_limit=0 if (alike := spec.retry_strategy.stop_after_alike) == "never" else alike,
        exit_rules=(*rules, *(_RUNNER_RULES if needs_runner else ())),
        attempt_timeout_s=float(spec.timeout.attempt_duration_seconds or 0) if spec.timeout else 0.0,
        duration_limit_s=float(spec.timeout.run_duration_seconds or 0) if spec.timeout else 0.0,
        service=_service_terms(spec),
        daemon=_daemon_terms(_daemon_of(spec)),
        gang=_gang_terms(spec.gang),
        health=_health_terms(container.health),
        ports=ports,
        depends_on=tuple(
            Dependency(each.run, each.type == "N_TO_N", each.on == "end") for each in spec.depends_on or ()
        ),
        not_before=_deadline(spec.not_before),
        queue=spec.queue or DEFAULT_QUEUE,
        owner=spec.owner or "",
        priority=spec.priority or 0,
        preemptible=spec.preemptible,
        checkpoint_s=float(spec.checkpoint.every_seconds or 0) if spec.checkpoint else 0.0,
        **_of_resources(spec.resources or ResourcesSpec()),
        **_of_placement(spec.placement),
        **_of_capacity(spec.capacity),
        **_of_array(spec.array or ArraySpec()),
    )


def terms_of_form(form: Mapping[str, Any]) -> RunTerms:
    """The terms of a spec's JSON form. Raises ValueError for a form that has a fault."""
    return terms_of(RunSpec.model_validate(form))


def needs_of(resources: ResourcesSpec) -> Resources:
    """The resources of one task. Raises ValueError: admission replaces ALL by a number."""
    if isinstance(resources.gpus, str):
        raise ValueError("resources.gpus: ALL means a number of GPUs to a deployment only")
    share_mib = resources.gpu_share.memory_mib if resources.gpu_share else 0
    gpus = math.ceil(resources.gpus)  # a part of a GPU is one device
    return Resources(round(resources.vcpus * CPU_UNITS_PER_VCPU), resources.memory, gpus, share_mib)


def _of_resources(resources: ResourcesSpec) -> dict[str, Any]:
    needs, share = needs_of(resources), resources.gpu_share
    return {
        "needs": needs,
        "gpu_share_mib": needs.gpu_share_mib,
        "gpu_compute_percent": (share and share.max_compute_percent) or 0,
        "gpu_part": f"{resources.gpus:g}" if resources.gpus != needs.gpus else "",
        "gpu_model": resources.gpu_model,
        "gpu_memory_mib": resources.gpu_memory_mib or 0,
        "disk_gib": resources.disk_gib or 0,
        "architecture": resources.architecture or X86_64,
    }


def _of_placement(placement: PlacementSpec) -> dict[str, Any]:
    return {
        "group": placement.group,
        "max_concurrent": placement.max_concurrent_tasks,
        "max_tasks_per_instance": placement.max_tasks_per_instance,
        "constraints": tuple(placement.constraints),
        "strategy": tuple(placement.strategy),
        "soft_constraints": tuple((each.expression, each.weight) for each in placement.soft_constraints or ()),
        "affinity": tuple(placement.affinity or ()),
        "anti_affinity": tuple(placement.anti_affinity or ()),
    }


def _of_capacity(capacity: CapacitySpec) -> dict[str, Any]:
    fallback = capacity.fallback or FallbackSpec()
    waits_s, losses = fallback.after_wait_seconds, fallback.after_interruptions
    return {
        "purchase": PurchaseMode(purchase_of(capacity)),
        "cells": tuple(capacity.cells or ()),
        "max_instances": capacity.max_instances,
        "deadline": _deadline(capacity.deadline),
        "on_demand_base": capacity.on_demand_base or 0,
        "fallback_after_s": None if waits_s is None else float(waits_s),
        "fallback_losses": FALLBACK_LOSSES if losses is None else losses,
        "fallback_redone_usd": fallback.after_redone_usd,
        "budget_usd": capacity.budget_usd,
        "max_hourly_usd": capacity.max_hourly_cost,
        "drains_at_cap": capacity.on_cap != "finish",
        "transfer_gb_per_task": capacity.transfer_gb_per_task or 0.0,
    }


def _of_array(array: ArraySpec) -> dict[str, Any]:
    return {
        "items_from": array.items_from or "",
        "part_suffix": array.part_suffix,
        "expected_seconds": array.expected_seconds,
        "shard_size": array.shard_size or (None if array.range is None else 1),
    }


def _deadline(text: str | None) -> Deadline | None:
    return None if text is None else Deadline.parse(text)


def _pinned(ports: tuple[TaskPort, ...]) -> Iterator[Port]:
    return ((each.host, TCP) for each in ports if each.host)


def _health_terms(health: HealthSpec | None) -> HealthTerms | None:
    if health is None:
        return None
    times = (health.interval_seconds, health.timeout_seconds, health.retries, health.start_seconds)
    return HealthTerms(tuple(health.command), *times)


def _gang_terms(gang: GangSpec | None) -> GangTerms | None:
    return None if gang is None else GangTerms(gang.size, float(gang.start_within_seconds), gang.processes == "gpu")


def _service_terms(spec: RunSpec) -> ServiceTerms | None:
    if (daemon := _daemon_of(spec)) is not None:
        return _kept_up(spec, daemon.update, 0)  # another task on the instance would take the others' resources
    if (service := spec.service) is None:
        return None
    drain_s = DRAIN_S if service.drain_seconds is None else float(service.drain_seconds)
    return replace(
        _kept_up(spec, service.update, service.update.max_over_percent),
        desired=service.desired,
        target_group=service.target_group or "",
        drain_s=drain_s if service.target_group else 0.0,
    )


def _kept_up(spec: RunSpec, update: UpdateSpec | DaemonUpdateSpec, max_over_percent: int) -> ServiceTerms:
    return ServiceTerms(
        desired=0,
        min_healthy_percent=update.min_healthy_percent,
        max_over_percent=max_over_percent,
        healthy_s=float(update.healthy_seconds),
        progress_s=float(update.progress_seconds),
        rolls_back=update.rollback,
        target_group="",
        drain_s=0.0,
        content=content_of(to_json(spec)),
    )


def _daemon_of(spec: RunSpec) -> DaemonSpec | None:
    return (spec.daemon or DaemonSpec()) if spec.kind == "daemon" else spec.daemon


def _daemon_terms(daemon: DaemonSpec | None) -> DaemonTerms | None:
    return None if daemon is None else DaemonTerms(daemon.instances or "", daemon.update.order == START_FIRST)


def content_of(form: Mapping[str, Any]) -> str:
    """Digest of the fields of a service's form that define its tasks. The others (how many tasks, how they are
    replaced, where further ones go) may change while they run. The group counts: RunTask receives it, and a launch in
    doubt repeats the very same request (DESIGN D4)."""
    content = {name: value for name, value in form.items() if name not in _AROUND}
    content["service"] = {name: value for name, value in form.get("service", {}).items() if name not in _ROLLOUT}
    content["group"] = form.get("placement", {}).get("group")
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


# By the name of a changeable field: the part of the spec that holds it.
_PARTS: Mapping[str, tuple[str, ...]] = {
    "priority": (),
    "queue": (),
    **dict.fromkeys(("budgetUsd", "maxHourlyCost", "deadline", "maxInstances"), ("capacity",)),
    "maxConcurrentTasks": ("placement",),
    **dict.fromkeys(("memory", "vcpus"), ("resources",)),
}


def path_of(name: str) -> str:
    """The field's name in a spec's faults."""
    return ".".join((*_PARTS[name], name))


def changed_form(form: Mapping[str, Any], changes: Changes) -> Mapping[str, Any]:
    """The form with the changes. Raises KeyError for a field that never changes."""
    found = dict(form)
    for name, value in changes.items():
        part = found
        for outer in _PARTS[name]:
            part = found[outer] = dict(found.get(outer) or {})
        part.pop(name, None)
        if value is not None:
            part[name] = value
    if "budgetUsd" in changes and changes["budgetUsd"] is None:
        found["capacity"].pop("onCap", None)  # it decides what happens to the run when the budget is used up
    return found
