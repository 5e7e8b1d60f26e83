"""The task definitions of the example images, from each image's task-definitions.json, in one Region.

An optional stack, because deploying it builds the images, which needs Docker. A run spec names one: `taskDefinition:
tensorflow-4-gpu`. Local mode registers the same files, so the name means the same there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ecr_assets as assets
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from argosy.settings.settings import Settings
from stacks import dsstne, grants, nag
from stacks.bundle import ROOT
from stacks.image_assets import CPU, GPU, flavours, image_asset
from stacks.tasks import CONTAINER

FILE = "task-definitions.json"
USER = "10001"  # the images' own
SCRATCH_SHARE = 4  # of a task's memory, the part that /tmp may take


class ExamplesStack(cdk.Stack):
    """The examples of one Region, for the roles and the log group that the deployment has there."""

    def __init__(
        self, scope: Construct, id: str, *, settings: Settings, region: str, folder: Path = ROOT / "containers"
    ) -> None:
        super().__init__(
            scope, id, env=cdk.Environment(region=region), description=f"Argosy: examples of {settings.prefix}"
        )
        self._settings, self._folder = settings, folder
        self._images: dict[tuple[str, str], assets.DockerImageAsset] = {}
        arns = grants.Arns(settings)
        self._roles = {
            name: iam.Role.from_role_arn(self, f"{name.capitalize()}Role", arns.role(name), mutable=False)
            for name in ("execution", "task")
        }
        # Made by the deployment's own stack, which is where `argosy logs` looks.
        self._log_group = logs.LogGroup.from_log_group_name(self, "TaskLogs", f"/ecs/{settings.prefix}/tasks")
        for name, described in described_in(folder):
            definition = self._definition(name, described)
            if name == dsstne.DEFINITION:
                dsstne.let_an_original_image_run(self, definition)
            output = cdk.CfnOutput(self, f"Output{_camel(name)}", value=definition.task_definition_arn)
            output.override_logical_id(f"TaskDefinition{_camel(name)}")
        nag.acknowledge_examples(self)

    def _definition(self, name: str, described: dict[str, Any]) -> ecs.Ec2TaskDefinition:
        definition = ecs.Ec2TaskDefinition(
            self,
            _camel(name),
            family=family(self._settings, name),
            network_mode=ecs.NetworkMode.BRIDGE,
            execution_role=self._roles["execution"],
            task_role=self._roles["task"],
        )
        gpus = int(described["gpus"])
        driver = {"NVIDIA_DRIVER_CAPABILITIES": "utility,compute"} if gpus else {}
        definition.add_container(
            CONTAINER,
            container_name=CONTAINER,
            image=ecs.ContainerImage.from_docker_image_asset(self._image(described["image"], gpus)),
            cpu=described["cpu"],
            memory_limit_mib=described["memory"],
            gpu_count=gpus or None,
            environment={**driver, **described["environment"]},
            logging=ecs.LogDrivers.aws_logs(stream_prefix="argosy", log_group=self._log_group),
            stop_timeout=cdk.Duration.seconds(self._settings.stop_timeout_s),
            user=USER,
            readonly_root_filesystem=True,
            docker_security_options=["no-new-privileges"],
            linux_parameters=self._linux(name, described),
        )
        return definition

    def _linux(self, name: str, described: dict[str, Any]) -> ecs.LinuxParameters:
        linux = ecs.LinuxParameters(
            self,
            f"Linux{_camel(name)}",
            init_process_enabled=True,
            shared_memory_size=described.get("sharedMemory"),  # Docker's default is 64 MiB
        )
        linux.drop_capabilities(ecs.Capability.ALL)
        options = [ecs.TmpfsMountOption.NOSUID, ecs.TmpfsMountOption.NODEV]
        scratch_mib = max(64, int(described["memory"]) // SCRATCH_SHARE)
        linux.add_tmpfs(ecs.Tmpfs(container_path="/tmp", size=scratch_mib, mount_options=options))
        return linux

    def _image(self, reference: str, gpus: int) -> assets.DockerImageAsset:
        """One asset for each folder and flavour, however many definitions use it."""
        folder = self._folder / reference.removeprefix("argosy/")
        flavour = (GPU if gpus else CPU) if flavours(folder) else ""
        key = folder.name, flavour
        if key not in self._images:
            name = f"{_camel(folder.name)}{flavour.capitalize()}Image"
            self._images[key] = image_asset(self, name, folder, flavour, self._settings)
        return self._images[key]


def described_in(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, description) of every definition that an image of the folder comes with."""
    for path in sorted(folder.glob(f"*/{FILE}")):
        yield from json.loads(path.read_text(encoding="utf-8")).items()


def family(settings: Settings, name: str) -> str:
    """The plain name in the main stage; other stages put theirs before it, for definitions are the account's."""
    return name if settings.stage == "main" else f"{settings.prefix}-{name}"


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("-"))
