"""An EC2 instance's registration with the cluster."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from argosy.model.instance_types import InstanceType

_GPU_NAMESPACE = uuid.UUID("6f0e2c1a-4f0b-4d5e-9b7a-2f1f4f6f1d11")


@dataclass(frozen=True, slots=True)
class Host:
    """One instance with its agent."""

    instance_id: str
    instance_type: InstanceType
    availability_zone: str
    own_attributes: Mapping[str, str] = field(
        default_factory=dict
    )  # the owner's, as in the agent's ECS_INSTANCE_ATTRIBUTES

    @property
    def gpu_ids(self) -> tuple[str, ...]:
        """GPU-<uuid> for each GPU, in the order of their ordinals; the same for the same instance id."""
        names = (f"{self.instance_id}/{ordinal}" for ordinal in range(self.instance_type.gpus))
        return tuple(f"GPU-{uuid.uuid5(_GPU_NAMESPACE, name)}" for name in names)

    def registration(self, cluster: str, image_id: str | None) -> dict[str, Any]:
        """The agent's RegisterContainerInstance."""
        kind = self.instance_type
        resources: list[dict[str, Any]] = [
            {"name": "CPU", "type": "INTEGER", "integerValue": kind.cpu_units},
            {"name": "MEMORY", "type": "INTEGER", "integerValue": kind.registered_memory_mib},
        ]
        if self.gpu_ids:
            resources.append({"name": "GPU", "type": "STRINGSET", "stringSetValue": list(self.gpu_ids)})
        identity = {
            "instanceId": self.instance_id,
            "instanceType": kind.name,
            "availabilityZone": self.availability_zone,
            "imageId": image_id,
        }
        return {
            "cluster": cluster,
            "instanceIdentityDocument": json.dumps(identity),
            "totalResources": resources,
            "attributes": [{"name": name, "value": value} for name, value in self._attributes(image_id).items()],
            "versionInfo": {"agentVersion": "1.105.1", "agentHash": "argosy", "dockerVersion": "argosy-local"},
        }

    def _attributes(self, image_id: str | None) -> dict[str, str]:
        kind = self.instance_type
        attributes = {
            "ecs.instance-type": kind.name,
            "ecs.availability-zone": self.availability_zone,
            "ecs.cpu-architecture": kind.architecture,
            "ecs.os-type": "linux",
            "ecs.os-family": "LINUX",
            "com.amazonaws.ecs.capability.logging-driver.awslogs": "",
            **self.own_attributes,
        }
        return attributes | ({"ecs.ami-id": image_id} if image_id else {})
