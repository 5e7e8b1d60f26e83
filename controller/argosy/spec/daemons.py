"""What may the spec of a daemon say, and what may it not?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from argosy.model.run_terms import START_FIRST, STOP_FIRST
from argosy.spec.faults import Fault
from argosy.spec.fields import Strict

# By field: why a daemon cannot have it.
_NOT_OF_DAEMONS = {
    "dependsOn": "a daemon is deployed, and waits for no run",
    "notBefore": "a daemon is started by its deployment",
    "array": "one task runs on each instance that matches",
    "output": "tasks of a daemon leave no results",
    "inputs": "tasks of a daemon are not given inputs",
    "placement": "daemon.instances says on which instances it runs",
    "capacity": "nothing is bought for a daemon: it runs on the instances that others need",
    "retryStrategy": "a task of a daemon that ends is always started again",
    "timeout": "tasks of a daemon run as long as their instances",
    "checkpoint": "tasks of a daemon are never stopped for others",
}
_GPU_FIELDS = ("gpus", "gpuModel", "gpuMemoryMib")


class DaemonUpdateSpec(Strict):
    """How tasks of a daemon are replaced by those of another revision."""

    min_healthy_percent: int = Field(
        default=80,
        ge=0,
        le=100,
        description="Percent of the instances that match, rounded up, on which a healthy task stays meanwhile; at most"
        " all but one.",
    )
    order: Literal["stop-first", "start-first"] = Field(
        default=STOP_FIRST,
        description="Whether the old task on an instance stops before the new one starts, or once that is healthy.",
    )
    healthy_seconds: int = Field(
        default=15, ge=1, le=3600, description="Seconds: a task that has run for so long counts as healthy."
    )
    progress_seconds: int = Field(
        default=600, ge=10, le=86_400, description="Seconds without progress after which a deployment counts as stuck."
    )
    rollback: bool = Field(
        default=True, description="Whether a deployment that fails goes back to the revision that completed before."
    )


class DaemonSpec(Strict):
    """On which instances a task of a daemon runs, and how its tasks are updated."""

    instances: Annotated[str, Field(min_length=1, max_length=4096)] | None = Field(
        default=None,
        description="Which instances: an expression of the cluster query language about attributes. Default: all.",
    )
    update: DaemonUpdateSpec = Field(
        default_factory=DaemonUpdateSpec, description="How tasks are replaced by those of another revision."
    )


def daemon_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """What kind and daemon must agree on, and what else a daemon cannot have."""
    if data.get("kind") != "daemon":
        if data.get("daemon") is not None:
            yield Fault("daemon", "is only possible with kind: daemon")
        return
    if data.get("service") is not None:
        yield Fault("service", "is only possible with kind: service")
    for name, why in _NOT_OF_DAEMONS.items():
        if data.get(name) is not None:
            yield Fault(name, f"is not possible with kind: daemon: {why}")
    given = data.get("resources")
    resources = given if isinstance(given, Mapping) else {}
    for name in _GPU_FIELDS:
        if resources.get(name):
            yield Fault(f"resources.{name}", "is not possible with kind: daemon: it would take GPUs from all others")
    if data.get("run") is not None and data.get("result") != "none":
        yield Fault("result", "must be none with kind: daemon: its tasks leave no results")
    yield from _order_faults(data)


def _order_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    daemon, container = data.get("daemon"), data.get("container")
    update = daemon.get("update") if isinstance(daemon, Mapping) else None
    ports = container.get("hostPorts") if isinstance(container, Mapping) else None
    if ports and isinstance(update, Mapping) and update.get("order") == START_FIRST:
        sentence = "must be stop-first where container.hostPorts are given: two tasks cannot hold one port"
        yield Fault("daemon.update.order", sentence)
