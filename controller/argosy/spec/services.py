"""What may the spec of a service say, and what may it not?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from argosy.model.targets import MOST_TARGETS
from argosy.spec.faults import Fault
from argosy.spec.fields import Strict

SERVICE_LIMIT = 10_000  # tasks of one service


class UpdateSpec(Strict):
    """How tasks of a service are replaced by those of another revision."""

    min_healthy_percent: int = Field(
        default=100, ge=0, le=100, description="Percent of the desired tasks, rounded up, that stay healthy meanwhile."
    )
    max_over_percent: int = Field(
        default=25,
        ge=0,
        le=100,
        description="Percent of the desired tasks, rounded up, that may run beside them meanwhile. With 0, a task is"
        " stopped before the one that takes its place starts.",
    )
    healthy_seconds: int = Field(
        default=15,
        ge=1,
        le=3600,
        description="Seconds that a task has to run, or to be well by its health command, until it counts as healthy.",
    )
    progress_seconds: int = Field(
        default=600, ge=10, le=86_400, description="Seconds without progress after which a deployment counts as stuck."
    )
    rollback: bool = Field(
        default=True, description="Whether a deployment that fails goes back to the revision that completed before."
    )


class ServiceSpec(Strict):
    """How many tasks of a service are kept running, and how they are updated."""

    desired: int = Field(ge=0, le=SERVICE_LIMIT, description="How many tasks are to run.")
    update: UpdateSpec = Field(
        default_factory=UpdateSpec, description="How tasks are replaced by those of another revision."
    )
    target_group: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")] | None = Field(
        default=None,
        description="Name of a target group in the deployment's setting targetGroups: each task is registered there"
        " with the first of container.ports while it serves.",
    )
    drain_seconds: int | None = Field(
        default=None,
        ge=0,
        le=3600,
        description="Seconds from when the target group sends a task no new requests until it is told to stop. Default:"
        " 30. A spot warning leaves at most 80.",
    )


def service_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """What kind, array and service must agree on."""
    if data.get("kind") == "service":
        yield from _faults_of_service(data)
    elif data.get("kind") != "daemon" and data.get("array") is None:
        yield Fault("array", "is required, unless kind is service or daemon")


def _faults_of_service(data: Mapping[str, Any]) -> Iterator[Fault]:
    if data.get("service") is None:
        yield Fault("service", "is required with kind: service; its field desired says how many tasks are to run")
    if data.get("run") is not None and data.get("result") != "none":
        yield Fault("result", "must be none with kind: service: its tasks leave no results")
    yield from _update_faults(data.get("service"))
    yield from _target_faults(data)


def _target_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    service, container = data.get("service"), data.get("container")
    if not isinstance(service, Mapping):
        return
    if service.get("targetGroup") is None:
        if service.get("drainSeconds") is not None:
            yield Fault("service.drainSeconds", "is only possible with service.targetGroup, which it waits for")
        return
    if not (isinstance(container, Mapping) and container.get("ports")):
        yield Fault("service.targetGroup", "needs container.ports: the first of them is registered")
    desired = service.get("desired")
    if isinstance(desired, int) and desired > MOST_TARGETS:
        yield Fault("service.desired", f"must be at most {MOST_TARGETS:,} with service.targetGroup")


def target_group_faults(data: Mapping[str, Any], groups: Mapping[str, str], cells: Sequence[str]) -> Iterator[Fault]:
    """groups: ARNs of the deployment's target groups. One takes instances of its own Region only."""
    service, capacity = data.get("service"), data.get("capacity")
    name = service.get("targetGroup") if isinstance(service, Mapping) else None
    if not isinstance(name, str):
        return
    if name not in groups:
        known = f"there are {', '.join(sorted(groups))}" if groups else "it has none"
        yield Fault("service.targetGroup", f"{name[:32]!r} is not in the deployment's setting targetGroups: {known}")
        return
    region = groups[name].split(":")[3]
    given = capacity.get("cells") if isinstance(capacity, Mapping) else None
    if set(given if isinstance(given, list) and given else cells) - {region}:
        yield Fault("service.targetGroup", f"{name!r} is in {region}: set capacity.cells to [{region}]")


def base_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """What a base goes with."""
    given = data.get("capacity")
    capacity = given if isinstance(given, Mapping) else {}
    if data.get("kind") == "service" and capacity.get("onDemandBase") and capacity.get("purchase", "spot") != "spot":
        yield Fault("capacity.onDemandBase", "is only possible with purchase: spot, from which it takes tasks away")


def _update_faults(service: Any) -> Iterator[Fault]:
    update = service.get("update") if isinstance(service, Mapping) else None
    if not isinstance(update, Mapping):
        return
    if update.get("minHealthyPercent", 100) == 100 and update.get("maxOverPercent", 25) == 0:
        yield Fault(
            "service.update", "could never replace a task: allow maxOverPercent above 0, or less than 100 healthy"
        )
