"""The task definitions of a deployment: one for CPU and those for 1, 4 and 8 GPUs, as in the originals.

They print the hardware of a task (`nvidia-smi`) and are ready for `taskDefinition: <prefix>-4-gpu` in a run spec with a
command of one's own. A run that names a container image gets a definition from the controller instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from argosy.catalogue.lookup import SHARED_MEMORY_DIVISOR
from argosy.settings.settings import Settings

CONTAINER = "main"  # the name that the controller's overrides expect
# Amazon Linux without a driver: the NVIDIA runtime puts nvidia-smi and the libraries in.
IMAGE = "public.ecr.aws/amazonlinux/amazonlinux:2023"


@dataclass(frozen=True)
class Shape:
    """Sizes of a task: ECS cpu units and MiB, GPUs, and images per batch, as brentley/tensorflow-container set them."""

    cpu_units: int
    memory_mib: int
    gpus: int
    batch_size: int


SHAPES = {
    "cpu": Shape(1024, 6144, 0, 32),
    "1-gpu": Shape(1024, 6144, 1, 32),
    "4-gpu": Shape(1024, 8192, 4, 128),
    "8-gpu": Shape(1024, 131_072, 8, 128),
}


@dataclass(frozen=True)
class TaskRoles:
    """The roles of every task of the deployment."""

    execution: iam.IRole
    task: iam.IRole


class TaskDefinitions(Construct):
    """`by_shape`: the definitions, families `<prefix>-cpu`, `<prefix>-1-gpu` and so on."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        roles: TaskRoles,
        log_group: logs.ILogGroup,
    ) -> None:
        super().__init__(scope, id)
        self._settings, self._roles, self._log_group = settings, roles, log_group
        # Their image is not in ECR, so that instances without a way out could never pull it.
        shapes = {} if settings.subnets == "private" else SHAPES
        self.by_shape = {name: self._definition(name, shape) for name, shape in shapes.items()}

    def _definition(self, name: str, shape: Shape) -> ecs.Ec2TaskDefinition:
        definition = ecs.Ec2TaskDefinition(
            self,
            "".join(part.capitalize() for part in name.split("-")),
            family=f"{self._settings.prefix}-{name}",
            network_mode=ecs.NetworkMode.BRIDGE,
            execution_role=self._roles.execution,
            task_role=self._roles.task,
        )
        definition.add_container(
            CONTAINER,
            container_name=CONTAINER,
            image=ecs.ContainerImage.from_registry(IMAGE),
            command=["nvidia-smi"] if shape.gpus else ["nproc"],
            cpu=shape.cpu_units,
            memory_limit_mib=shape.memory_mib,
            gpu_count=shape.gpus or None,
            environment=_environment(shape),
            logging=ecs.LogDrivers.aws_logs(stream_prefix="argosy", log_group=self._log_group),
            stop_timeout=cdk.Duration.seconds(self._settings.stop_timeout_s),
            user="65534:65534",
            readonly_root_filesystem=True,
            docker_security_options=["no-new-privileges"],
            linux_parameters=self._linux(name, shape),
        )
        return definition

    def _linux(self, name: str, shape: Shape) -> ecs.LinuxParameters:
        shared_mib = shape.memory_mib // SHARED_MEMORY_DIVISOR if shape.gpus else None
        linux = ecs.LinuxParameters(self, f"Linux{name}", init_process_enabled=True, shared_memory_size=shared_mib)
        linux.drop_capabilities(ecs.Capability.ALL)
        linux.add_tmpfs(ecs.Tmpfs(container_path="/tmp", size=64, mount_options=[ecs.TmpfsMountOption.NOSUID]))
        return linux


def _environment(shape: Shape) -> dict[str, str]:
    plain = {"GPU": str(shape.gpus), "BATCH_SIZE": str(shape.batch_size)}
    # An image that is not based on nvidia/cuda does not request the driver by itself.
    return {**plain, "NVIDIA_DRIVER_CAPABILITIES": "utility,compute"} if shape.gpus else plain
