"""The size and price of every EC2 instance type in the catalogue."""

from __future__ import annotations

from dataclasses import dataclass

from argosy.model.instances import Purchase
from argosy.model.resources import Resources

PURCHASE_ATTRIBUTE = "argosy.purchase"
XID_ATTRIBUTE = "argosy.xid"  # the error of a GPU that NVIDIA's driver last logged, one of `messages.health.XIDS`
CELL_ATTRIBUTE = "argosy.cell"
RESERVED_UNTIL_ATTRIBUTE = "argosy.reserved-until"  # epoch seconds: it has to be empty then
GPU_MODEL_ATTRIBUTE = "argosy.gpu-model"
GPU_MEMORY_ATTRIBUTE = "argosy.gpu-memory-mib"
GPU_PART_ATTRIBUTE = "argosy.gpu-part"  # the fraction of a GPU that an instance has, such as 0.25
# Of an instance whose GPUs can be shared: its agent has it if the AMI has NVIDIA's MPS (aws.md 7).
GPU_SHARING_ATTRIBUTE = "ecs.capability.gpu-sharing-mps"
SHARES_GPUS = f"attribute:{GPU_SHARING_ATTRIBUTE} exists"  # the constraint of tasks that share one
_WHOLE_MIB = {"L4": 22_888}  # by model, where EC2 offers parts of it
_OF_VGPU, _WITHOUT_MPS = ("g6f", "gr6f"), ("V100",)  # AWS does not say which families share; Volta is assumed not to


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One EC2 instance type, priced for one Region.

    memory_mib and gpu_memory_mib are nominal; registered_memory_mib is the estimate of what ECS offers to tasks.
    gpu_memory_mib is that of one GPU. Types without GPUs have model None. Prices are Linux, USD per hour.
    """

    name: str
    vcpus: int
    cpu_units: int
    memory_mib: int
    registered_memory_mib: int
    gpus: int
    gpu_model: str | None
    gpu_memory_mib: int
    architecture: str
    on_demand_usd_per_hour: float
    typical_spot_usd_per_hour: float

    @property
    def shared_gpu_mib(self) -> int:
        """The memory of one of its GPUs for tasks with a share; 0 = its GPUs cannot be shared. An estimate until ECS
        reports an instance's memory: drivers reserve up to a sixteenth (1,024 MiB of a T4, 613 MiB of an H200)."""
        shares = self.gpus and self.family not in _OF_VGPU and self.gpu_model not in _WITHOUT_MPS
        return self.gpu_memory_mib * 15 // 16 if shares else 0

    @property
    def gpu_part(self) -> str:
        """The fraction of a GPU that the type has: 0.125, 0.25 or 0.5; "" = whole GPUs, or none."""
        whole_mib = _WHOLE_MIB.get(self.gpu_model or "", 0) if self.gpus and self.family in _OF_VGPU else 0
        return f"{round(8 * self.gpu_memory_mib / whole_mib) / 8:g}" if whole_mib else ""

    def has_gpus(self, model: str | None, memory_mib: int) -> bool:
        """Whether its GPUs are of the model (None = any) and each have that memory (0 = any, even no GPU)."""
        return model in (None, self.gpu_model) and memory_mib <= self.gpu_memory_mib

    def runs(self, architecture: str) -> bool:
        """Whether it runs images of the architecture: x86_64, arm64, or any (images built for both)."""
        return architecture in ("any", self.architecture)

    @property
    def resources(self) -> Resources:
        """The resources that an instance of the type registers with ECS."""
        return Resources(self.cpu_units, self.registered_memory_mib, self.gpus, self.gpus * self.shared_gpu_mib)

    @property
    def image(self) -> str:
        """Which of a deployment's AMIs its instances start from: cpu, gpu, cpu_arm64, gpu_arm64."""
        return ("gpu" if self.gpus else "cpu") + ("_arm64" if self.architecture == "arm64" else "")

    @property
    def family(self) -> str:
        """The part before the dot: "c5" of "c5.large"."""
        return self.name.partition(".")[0]


def own_attributes(kind: InstanceType | None, purchase: Purchase, cell: str) -> dict[str, str]:
    """The attributes that constraints can name and ECS does not provide. kind: None = not in the catalogue."""
    found = {PURCHASE_ATTRIBUTE: purchase.value, CELL_ATTRIBUTE: cell}
    if kind is not None and kind.gpu_model is not None:
        found |= {GPU_MODEL_ATTRIBUTE: kind.gpu_model, GPU_MEMORY_ATTRIBUTE: str(kind.gpu_memory_mib)}
    if kind is not None and kind.gpu_part:
        found[GPU_PART_ATTRIBUTE] = kind.gpu_part
    return found
