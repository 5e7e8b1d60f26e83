"""The request, the facts and the actions about instances that get no work."""

from __future__ import annotations

from dataclasses import dataclass

from argosy.model.instances import InstanceStatus

# Members of instances and pools that a record leaves out while they are empty, which they nearly always are.
SELDOM = frozenset(
    ["drain_until", "impaired", "impaired_since", "console", "behind_since", "behind_because", "listed_usd_per_hour"]
    + ["gpu_memory_mib", "without_sharing_at", "images", "foreign_shares"]
)
MOST_STATUSES = 10  # container instances in one call of UpdateContainerInstancesState


@dataclass(frozen=True, slots=True)
class DrainRequest:
    """Let an instance drain until a time; a time that is not in the future ends the drain."""

    requested_at: float
    instance_id: str
    until: float  # epoch seconds
    kind: str = "drain"

    @property
    def run_id(self) -> str:
        """It concerns no run."""
        return ""


@dataclass(frozen=True, slots=True)
class DrainAsked:
    """A user lets an instance drain, or ends the drain."""

    request: DrainRequest


@dataclass(frozen=True, slots=True)
class HostHealthChanged:
    """ECS has checked a container instance."""

    instance_id: str
    impaired: str  # what is wrong, in its words; "" = nothing
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ConsoleRead:
    """The end of an instance's console output, redacted; or why EC2 does not provide it."""

    instance_id: str
    text: str
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ReadConsole:
    """Ask EC2 for the console output of an instance that never joined the cluster, before it is terminated."""

    cell: str
    instance_id: str


@dataclass(frozen=True, slots=True)
class SetHostStatus:
    """Set the status of these container instances at ECS. At most MOST_STATUSES an action."""

    cell: str
    instance_ids: tuple[str, ...]
    status: InstanceStatus  # ACTIVE or DRAINING
