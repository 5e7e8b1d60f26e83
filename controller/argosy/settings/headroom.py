"""Room for further tasks of one size, as the settings name it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from argosy.model.instances import Purchase
from argosy.model.policy import SparePlaces
from argosy.model.resources import CPU_UNITS_PER_VCPU, Resources
from argosy.settings.values import SettingsModel

MemoryMib = Annotated[int, Field(ge=0, le=24 * 1024 * 1024)]  # the largest EC2 instances have 24 TiB


class HeadroomSize(SettingsModel):
    """Memory in MiB."""

    places: Annotated[int, Field(ge=1, le=10_000)]
    vcpus: Annotated[float, Field(ge=1 / CPU_UNITS_PER_VCPU, le=1024)] = 1
    memory: MemoryMib = 1024
    gpus: Annotated[int, Field(ge=0, le=64)] = 0
    gpu_share_mib: MemoryMib = 0
    purchase: Literal["spot", "on-demand"] = "spot"

    @model_validator(mode="after")
    def _one_kind_of_gpu(self) -> Self:
        if self.gpus and self.gpu_share_mib:
            raise ValueError("gpus and gpuShareMib exclude each other: give one of them")
        return self

    def to_policy(self) -> SparePlaces:
        """The same for the controller."""
        needs = Resources(round(self.vcpus * CPU_UNITS_PER_VCPU), self.memory, self.gpus, self.gpu_share_mib)
        return SparePlaces(self.places, needs, Purchase(self.purchase))
