"""The records of the emulated ECS; the modules around them define their changes and views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

JSON = dict[str, Any]


GPU_PARTS = {  # aws.md 7.1
    **dict.fromkeys(("g6f.large", "g6f.xlarge"), "0.125"),
    "g6f.2xlarge": "0.25",
    **dict.fromkeys(("g6f.4xlarge", "gr6f.4xlarge"), "0.5"),
}
GPU_SHARING = "ecs.capability.gpu-sharing-mps"  # an attribute of instances whose GPUs can be shared
UNKNOWN, HEALTHY, UNHEALTHY = "UNKNOWN", "HEALTHY", "UNHEALTHY"  # healthStatus


@dataclass(slots=True)
class TaskNeeds:
    """The resources that a task takes from its instance. `gpus`: container name -> how many; `shares`: container name
    -> MiB of a GPU that it shares; ports: (port, "tcp" | "udp")."""

    cpu_units: int
    memory_mib: int
    gpus: Mapping[str, int]
    shares: Mapping[str, int]
    ports: frozenset[tuple[int, str]]
    gpu_part: str = ""

    @property
    def gpu_count(self) -> int:
        return sum(self.gpus.values())


@dataclass(slots=True)
class PhysicalGpu:
    """One GPU of an instance. MiB; total_mib: the memory that its agent reported, 0 = none."""

    id: str
    total_mib: int
    shared_mib: int = 0
    """Assigned to containers that share it."""
    containers: int = 0
    is_shared: bool = False

    @property
    def mode(self) -> str:
        return ("NVIDIA_MPS" if self.is_shared else "DEDICATED") if self.containers else "IDLE"

    @property
    def free_mib(self) -> int:
        """For further containers that share it."""
        return 0 if self.mode == "DEDICATED" else self.total_mib - self.shared_mib


@dataclass(slots=True)
class TaskDefinition:
    """One revision of a task definition; `body` is DescribeTaskDefinition's answer without the parts that change."""

    arn: str
    family: str
    revision: int
    body: JSON
    tags: list[JSON]
    ordinal: int
    registered_at: float
    status: str = "ACTIVE"
    deregistered_at: float | None = None

    @property
    def containers(self) -> list[JSON]:
        return self.body["containerDefinitions"]  # type: ignore[no-any-return]


@dataclass(slots=True)
class EcsContainer:
    """One container of a task, as ECS sees it."""

    arn: str
    name: str
    image: str
    cpu: str
    memory: str | None
    memory_reservation: str | None
    gpu_ids: list[str]
    gpu_sharing: JSON | None
    """The sharing strategy of its definition."""
    last_status: str = "PENDING"
    exit_code: int | None = None
    reason: str | None = None
    runtime_id: str | None = None
    image_digest: str | None = None
    network_bindings: list[JSON] = field(default_factory=list)
    health: str = UNKNOWN
    """As its agent last reported; a caller may see less (`ecs/views.py`)."""
    healths: set[str] = field(default_factory=set)
    """Everything that it ever reported."""


@dataclass(slots=True)
class EcsTask:
    """One ECS task. Times are epoch seconds, None = not yet. `version` grows with every change."""

    ordinal: int
    arn: str
    cluster: str
    definition: TaskDefinition
    instance: ContainerInstance
    needs: TaskNeeds
    containers: list[EcsContainer]
    overrides: JSON
    group: str
    started_by: str | None
    tags: list[JSON]
    enable_execute_command: bool
    created_at: float
    last_status: str = "PENDING"
    desired_status: str = "RUNNING"
    version: int = 1
    handed_over: bool = False
    """Whether the agent has received it."""
    gave_back: bool = False
    """Whether its instance has its resources again."""
    token: tuple[str, str] | None = None
    """(cluster, clientToken) of the RunTask that started it."""
    started_at: float | None = None
    stopping_at: float | None = None
    stopped_at: float | None = None
    execution_stopped_at: float | None = None
    pull_started_at: float | None = None
    pull_stopped_at: float | None = None
    stop_code: str | None = None
    stopped_reason: str | None = None


@dataclass(slots=True)
class ContainerInstance:
    """One container instance. What is free is kept up to date by `ecs/resources.py` alone."""

    ordinal: int
    arn: str
    cluster: str
    ec2_instance_id: str
    registered: list[JSON]
    """The totalResources as given."""
    attributes: dict[str, str | None]
    version_info: JSON
    tags: list[JSON]
    registered_at: float
    cpu_units: int
    memory_mib: int
    gpus: dict[str, PhysicalGpu]
    """By id, in the order of the registration."""
    free_cpu_units: int
    free_memory_mib: int
    taken_ports: set[tuple[int, str]]
    status: str = "ACTIVE"
    agent_connected: bool = True
    version: int = 1
    built_in: frozenset[str] = frozenset()
    """Names of the attributes that came with the registration; the others are custom ones."""
    tasks: dict[str, EcsTask] = field(default_factory=dict)
    """Those not STOPPED, by ARN."""
    to_start: dict[str, EcsTask] = field(default_factory=dict)
    to_stop: dict[str, EcsTask] = field(default_factory=dict)
    queue_sleeps: bool = False
    """Whether its agent has missed that a task in front of its queue ended."""
    health: list[JSON] = field(default_factory=list)
    """Its health checks, as DescribeContainerInstances shows them."""

    @property
    def free_gpu_ids(self) -> list[str]:
        """Of the GPUs without any container."""
        return [gpu.id for gpu in self.gpus.values() if not gpu.containers]

    @property
    def gpu_part(self) -> str:
        """The part of a GPU that its type has; "" = its GPUs are whole."""
        return GPU_PARTS.get(self.attributes.get("ecs.instance-type") or "", "")

    @property
    def shares_gpus(self) -> bool:
        return GPU_SHARING in self.attributes and all(gpu.total_mib for gpu in self.gpus.values())

    @property
    def zone(self) -> str:
        return self.attributes.get("ecs.availability-zone") or ""


@dataclass(slots=True)
class RememberedLaunch:
    """A client token: its request, and the tasks that it started."""

    request: JSON
    at: float
    task_arns: list[str]
    failures: list[JSON]


@dataclass(slots=True)
class EcsCluster:
    """One cluster and everything in it. Tasks and instances are in order of creation."""

    ordinal: int
    arn: str
    name: str
    tags: list[JSON]
    settings: list[JSON]
    status: str = "ACTIVE"
    instances: dict[str, ContainerInstance] = field(default_factory=dict)
    by_ec2_id: dict[str, list[ContainerInstance]] = field(default_factory=dict)
    """Usually one; more when an agent forgot its ARN."""
    tasks: dict[str, EcsTask] = field(default_factory=dict)
    by_started_by: dict[str, dict[str, EcsTask]] = field(default_factory=dict)
    launches: dict[str, RememberedLaunch] = field(default_factory=dict)
    """By client token."""
