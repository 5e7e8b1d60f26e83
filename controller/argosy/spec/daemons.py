"""What may the spec of a daemon say, and what may it not?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from argosy.model.run_terms import START_FIRST, STOP_FIRST
from argosy.spec.faults import Fault
from argosy.spec.fields import Strict


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
    """What fields of a daemon must agree on."""
    if data.get("kind") != "daemon":
        return
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
