"""The fields of a run spec: AWS Batch's and ECS's words, in camelCase.

Users read the descriptions in their editor, through the JSON Schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from argosy.layout import DEFAULT_PART_SUFFIX
from argosy.model.entrances import QUEUE_NAME
from argosy.spec.dependencies import DEPENDENCY_LIMIT, DependencySpec
from argosy.spec.fields import (
    DISK_LIMIT_GIB,
    GROUP_LIMIT,
    MEMORY_LIMIT_MIB,
    PACKAGE_LIMIT,
    SOFT_LIMIT,
    TAG_LIMIT,
    TASK_LIMIT,
    TIMEOUT_LIMIT_S,
    WEIGHT_LIMIT,
    Cells,
    Deadline,
    Environment,
    EnvironmentEntry,
    GpuCount,
    GpuShareSpec,
    GroupName,
    HostPorts,
    Image,
    Inputs,
    Program,
    RangeText,
    Requirement,
    S3Folder,
    S3Object,
    Script,
    Strict,
    TagKey,
    TagValue,
    Text,
    Usd,
    Version,
)
from argosy.spec.gangs import GangSpec
from argosy.spec.services import (
    SERVICE_LIMIT,
    DaemonSpec,
    DaemonUpdateSpec,
    HealthSpec,
    OptionalHealth,
    OptionalPorts,
    PortSpec,
    ServiceSpec,
    UpdateSpec,
)
from argosy.spec.tries import CheckpointSpec, ExitRuleSpec, FallbackSpec, RetrySpec, TimeoutSpec


class ContainerSpec(Strict):
    """What runs. With `taskDefinition`, only the command and the environment, which override the definition's."""

    image: Image | None = Field(
        default=None, description="Image by name, tag or digest; argosy/NAME is an image of the deployment."
    )
    command: Annotated[list[Text], Field(min_length=1, max_length=1000)] | None = Field(
        default=None,
        description="Arguments, one per element; no shell is involved. Substituted: ${range} ${start} ${end} ${index}"
        " ${count} ${item} ${item.KEY} ${output} ${part} ${runId} ${attempt}; $${ gives ${. Default: the image's.",
    )
    environment: Environment | None = Field(
        default=None,
        description="Variables, as a mapping or as ECS's list of name and value; ${...} is substituted in values.",
    )
    host_ports: HostPorts | None = Field(
        default=None,
        description='Ports of the instance that each task occupies, such as 8080 or "53/udp". The container listens on'
        " the same ports, and two tasks with a port in common never share an instance.",
    )
    ports: OptionalPorts = None
    health: OptionalHealth = None


class ResourcesSpec(Strict):
    """The resources that one task needs."""

    vcpus: float = Field(default=1, ge=1 / 1024, le=1024, description="vCPUs, rounded to 1/1024, ECS's CPU unit.")
    memory: int = Field(
        default=1024, ge=6, le=MEMORY_LIMIT_MIB, description="MiB; a hard limit: a task that exceeds it is killed."
    )
    gpus: GpuCount = Field(default=0, description="GPUs, pinned to the task. ALL: an instance's; 0.25: a part, on g6f.")
    gpu_share: GpuShareSpec | None = Field(
        default=None, description="A part of one GPU, which the task shares with others; in place of gpus."
    )
    gpu_model: str | None = Field(
        default=None, pattern=r"^[A-Za-z0-9.-]{1,32}$", description="Required GPU model, such as A100 or T4."
    )
    gpu_memory_mib: int | None = Field(
        default=None, ge=1, le=MEMORY_LIMIT_MIB, description="Least memory of each GPU in MiB, such as 40000."
    )
    disk_gib: int | None = Field(
        default=None,
        alias="diskGiB",
        ge=1,
        le=DISK_LIMIT_GIB,
        description="GiB of the instance's volume that the task may fill. Reserved when tasks are placed, not"
        " enforced while it runs. Default: none.",
    )
    architecture: Literal["x86_64", "arm64", "any"] | None = Field(
        default=None, description="CPU architecture of the image; any for images that support both. Default x86_64."
    )


class ArraySpec(Strict):
    """How the run is split into tasks: exactly one of range, size, items and itemsFrom; at most 1,000,000 tasks."""

    range: RangeText | None = Field(default=None, description="Half-open START:END, split into shards of shardSize.")
    shard_size: int | None = Field(
        default=None, ge=1, description="Length of each task's part of the range. Default 1."
    )
    size: int | None = Field(
        default=None, ge=1, le=TASK_LIMIT, description="Number of tasks; each has its own ${index}."
    )
    items: Annotated[list[Any], Field(min_length=1, max_length=TASK_LIMIT)] | None = Field(
        default=None,
        description="One task per JSON value: ${item} and, for mappings, ${item.KEY}. An input with ${item} is an"
        " address for each member of a list.",
    )
    items_from: S3Object | None = Field(
        default=None, description="S3 object with one JSON value per line, used like items."
    )
    expected_seconds: float | None = Field(
        default=None,
        ge=0.001,
        le=TIMEOUT_LIMIT_S,
        description="Expected seconds per task. Deadlines and forecasts rely on it until tasks have ended.",
    )
    part_suffix: str = Field(
        default=DEFAULT_PART_SUFFIX, pattern=r"^[A-Za-z0-9._-]{0,32}$", description="Suffix of part object names."
    )


class SoftConstraintSpec(Strict):
    """A constraint that is preferred, not required."""

    expression: Text = Field(description="As in constraints: a cluster query expression, or distinctInstance.")
    weight: int = Field(default=1, ge=1, le=WEIGHT_LIMIT, description="Weight among the soft constraints.")


class PlacementSpec(Strict):
    """Which instances the tasks may use, and how the tasks are spread over them."""

    constraints: Annotated[list[Text], Field(max_length=10)] = Field(
        default=[], description="Expressions of the ECS cluster query language, or distinctInstance; all must hold."
    )
    strategy: Annotated[list[Text], Field(max_length=5)] = Field(
        default=[],
        description="Strategies such as binpack:memory or spread:attribute:ecs.availability-zone, in order; also"
        " module:function, if the deployment's settings list it.",
    )
    max_concurrent_tasks: int | None = Field(
        default=None, ge=1, le=TASK_LIMIT, description="The most tasks of the run that may run at the same time."
    )
    # Absent rather than empty by default, so that a spec without them has the stored form, and the fingerprint for its
    # client token, that earlier versions gave it.
    group: GroupName | None = Field(
        default=None,
        description="ECS task group of the run's tasks. Runs may share a group: spread, distinctInstance,"
        " maxTasksPerInstance and affinity then apply to all of their tasks. Default: run:RUN_ID.",
    )
    max_tasks_per_instance: int | None = Field(
        default=None, ge=1, le=TASK_LIMIT, description="The most tasks of the group on one instance."
    )
    soft_constraints: Annotated[list[SoftConstraintSpec], Field(max_length=SOFT_LIMIT)] | None = Field(
        default=None,
        description="Preferred, not required: the instances with the least unmet weight are tried first. They do not"
        " change what is bought.",
    )
    affinity: Annotated[list[GroupName], Field(max_length=GROUP_LIMIT)] | None = Field(
        default=None,
        description="Task groups that must have a task on the same instance. The run's own group keeps the run on one"
        " instance.",
    )
    anti_affinity: Annotated[list[GroupName], Field(max_length=GROUP_LIMIT)] | None = Field(
        default=None,
        description="Task groups that never share an instance with the run's tasks, in whatever order they start. The"
        " run's own group means one task per instance.",
    )


class CapacitySpec(Strict):
    """What may be bought for the run."""

    purchase: Literal["spot", "spot-then-on-demand", "on-demand"] = Field(
        default="spot",
        description="Spot instances, on-demand instances, or spot as long as deadline and fallback allow. Default spot;"
        " with a deadline, spot-then-on-demand.",
    )
    deadline: Deadline | None = Field(
        default=None,
        description="When the run must be done: a time with its offset (2026-11-21T18:00:00Z), or a duration from the"
        " submission (90m, 2h, 1h30m, PT2H). Spot is used as long as on-demand could still make up for losing it.",
    )
    fallback: FallbackSpec | None = Field(
        default=None,
        description="When tasks use on-demand because spot is scarce or interrupted repeatedly.",
    )
    on_demand_base: int | None = Field(
        default=None,
        ge=0,
        le=SERVICE_LIMIT,
        description="For a service on spot instances: number of tasks on on-demand instances. Default 0.",
    )
    cells: Cells | None = Field(
        default=None, description="Regions of the deployment in which instances may be bought. Default: all of them."
    )
    max_instances: int | None = Field(
        default=None, ge=1, le=100_000, description="The most instances for the run at the same time."
    )
    transfer_gb_per_task: float | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="Gigabytes that a task transfers from and to the deployment's home Region. Their price between"
        " Regions is added to the price of instances in other Regions when these are compared. Default 0.",
    )
    max_hourly_cost: Usd | None = Field(
        default=None, description="USD per hour: the most that the run's instances may cost together."
    )
    budget_usd: Usd | None = Field(
        default=None,
        description="USD: the most that the run may cost. A task is only started if the rest of the budget covers it.",
    )
    on_cap: Literal["drain", "finish"] | None = Field(
        default=None,
        description="When budgetUsd is used up, drain stops running tasks and finish lets them end. Default drain.",
    )


class RunSpec(Strict):
    """A run: one container, an array of tasks, one output."""

    version: Version = Field(description="Version of this format.")
    kind: Literal["batch", "service", "daemon"] | None = Field(
        default=None,
        description="batch: tasks that come to an end (the default). service: tasks that are kept running, by"
        " `argosy env`. daemon: the same with one task on each instance that matches.",
    )
    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,62}$", description="Name of the run; its id begins with it.")
    container: ContainerSpec | None = Field(
        default=None, description="The container. It needs an image unless run or taskDefinition is given."
    )
    task_definition: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,255}(:[1-9][0-9]{0,9})?$")] | None = Field(
        default=None,
        description="A registered ECS task definition, FAMILY or FAMILY:REVISION, in place of container.image.",
    )
    run: Program | None = Field(
        default=None,
        description="Your own program: a list of words, or a text for `sh -c`; ${...} is substituted as in"
        " container.command. It reads $ARGOSY_IN and leaves its result in $ARGOSY_OUT. The image is argosy/python"
        " unless container.image names another one.",
    )
    workdir: Annotated[Text, Field(min_length=1, max_length=1024)] | None = Field(
        default=None,
        description="The program's folder, relative to the spec file; what .gitignore lists is left out. It is"
        " packed and uploaded once, at submission, and is the folder that each task works in.",
    )
    setup: Script | None = Field(
        default=None, description="Shell commands that each task runs in the program's folder before the program."
    )
    packages: Annotated[list[Requirement], Field(min_length=1, max_length=PACKAGE_LIMIT)] | None = Field(
        default=None,
        description="Python packages that the program imports, such as pandas or numpy>=2. Resolved and uploaded once,"
        " when the run is submitted.",
    )
    job: S3Object | None = Field(
        default=None,
        description="S3 object that workdir, setup and packages are packed into; `argosy submit` makes it.",
    )
    inputs: Inputs | None = Field(
        default=None,
        description="Objects, prefixes that end with /, or paths of your machine (uploaded once, at submission), that"
        " each task finds in the folder $ARGOSY_IN; ${...} is substituted, so that each task can have its own.",
    )
    result: Literal["folder", "stdout", "none"] | None = Field(
        default=None,
        description="What a program leaves: the files in the folder $ARGOSY_OUT, or what it prints. Default folder.",
    )
    resources: ResourcesSpec | None = Field(
        default=None, description="Needs of each task, unless set by a taskDefinition. Default 1 vCPU and 1024 MiB."
    )
    array: ArraySpec | None = Field(
        default=None, description="How the run is split into tasks. Required, except for services and daemons."
    )
    gang: GangSpec | None = Field(
        default=None, description="Tasks in groups that run together, each task on its own instance."
    )
    service: ServiceSpec | None = Field(
        default=None, description="For a service: how many tasks run, and how they are updated."
    )
    daemon: DaemonSpec | None = Field(
        default=None, description="For a daemon: on which instances its tasks run, and how they are updated."
    )
    depends_on: Annotated[list[DependencySpec], Field(min_length=1, max_length=DEPENDENCY_LIMIT)] | None = Field(
        default=None, description="Runs that this one waits for, as a whole or task by task."
    )
    not_before: Deadline | None = Field(
        default=None,
        description="Earliest start: a time with its offset (2026-11-21T18:00:00Z), or a duration from the"
        " submission (90m, 2h, 1h30m, PT2H).",
    )
    output: S3Folder | None = Field(
        default=None,
        description="s3://BUCKET/PREFIX/, to which the run id is appended. Default: the deployment's bucket.",
    )
    placement: PlacementSpec = Field(
        default_factory=PlacementSpec, description="Which instances the tasks may use, and how they are spread."
    )
    capacity: CapacitySpec = Field(
        default_factory=CapacitySpec, description="What kind of instances may be bought, and how many."
    )
    retry_strategy: RetrySpec = Field(default_factory=RetrySpec, description="When a failed task is tried again.")
    timeout: TimeoutSpec | None = Field(
        default=None, description="How long an attempt, and the whole run, may take. Default: no limit."
    )
    queue: Annotated[str, Field(pattern=QUEUE_NAME)] | None = Field(
        default=None, description="Queue in which the run waits; `argosy queues` lists them. Default: default."
    )
    owner: Annotated[Text, Field(min_length=1, max_length=64)] | None = Field(
        default=None,
        description="The owner of the run, unproven unless the request was signed.",
    )
    priority: Annotated[int, Field(ge=-100, le=100)] | None = Field(
        default=None, description="Order among the runs of the queue: higher first, then older. Default 0."
    )
    preemptible: bool | None = Field(
        default=None,
        description="Whether its tasks may be stopped for a queue that may take room, where its queue leaves that to "
        "its runs or allows it. Default: as the queue says, and no where it says nothing.",
    )
    checkpoint: CheckpointSpec | None = Field(
        default=None,
        description="Its program resumes when it is started again: with run, what is in the folder $ARGOSY_CHECKPOINT "
        "survives. A task that has just saved is the first to be stopped for a queue that may take room.",
    )
    compat: Literal["aws-batch"] | None = Field(
        default=None,
        description="aws-batch also sets AWS Batch's AWS_BATCH_JOB_ARRAY_INDEX, ..._ARRAY_SIZE and ..._ATTEMPT.",
    )
    tags: Annotated[dict[TagKey, TagValue], Field(max_length=TAG_LIMIT)] = Field(
        default={}, description="AWS tags of the run's ECS tasks."
    )


_BY_PATH: dict[str, type[Strict]] = {
    "": RunSpec,
    "container": ContainerSpec,
    "container.health": HealthSpec,
    "container.ports": PortSpec,
    "container.environment": EnvironmentEntry,  # the list form
    "resources": ResourcesSpec,
    "resources.gpuShare": GpuShareSpec,
    "array": ArraySpec,
    "placement": PlacementSpec,
    "placement.softConstraints": SoftConstraintSpec,
    "capacity": CapacitySpec,
    "capacity.fallback": FallbackSpec,
    "retryStrategy": RetrySpec,
    "retryStrategy.evaluateOnExit": ExitRuleSpec,
    "timeout": TimeoutSpec,
    "checkpoint": CheckpointSpec,
    "gang": GangSpec,
    "service": ServiceSpec,
    "service.update": UpdateSpec,
    "daemon": DaemonSpec,
    "daemon.update": DaemonUpdateSpec,
    "dependsOn": DependencySpec,
}


def model_at(path: str) -> type[Strict]:
    """Of the part at `path` (`faults.path_text`)."""
    return _BY_PATH.get(path.split("[", 1)[0], RunSpec)


def fields_at(path: str) -> Sequence[str]:
    """The names, as users write them, of the fields of the part at `path` (`faults.path_text`)."""
    return [field.alias or name for name, field in model_at(path).model_fields.items()]
