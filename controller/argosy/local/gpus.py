"""Which GPUs does this machine have, and which local instance uses which of them?

A local instance of a type with GPUs gets that number of this machine's GPUs when it is launched, and gives them back
when it is terminated. If too few are free, EC2 has no capacity. So each GPU belongs to one instance, ECS pins it to one
task at a time, and a task that finds none waits as it would on AWS.

Example: a machine with one GPU, and four tasks of one GPU each. The first g5.2xlarge gets the GPU. EC2 refuses a second
one, so the tasks run one after the other on the first.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from argosy.catalogue.lookup import load_catalogue

PROBE_S = 10.0  # a driver that hangs has no GPU to offer
_QUERY = ["nvidia-smi", "--query-gpu=index,uuid,name,memory.total,mig.mode.current", "--format=csv,noheader,nounits"]
_LIST = ["nvidia-smi", "-L"]  # the only list that has MIG devices
_AMD = ["rocm-smi", "--showproductname", "--showmeminfo", "vram", "--showuniqueid", "--json"]
_MIG = re.compile(r"^\s+MIG \S*?(\d+)gb\S*\s+Device\s+(\d+):\s+\(UUID: (MIG-[^)]+)\)")
_OF_GPU = re.compile(r"^GPU (\d+):")
_MIB_PER_GIB = 1024
_BYTES_PER_MIB = 1024**2


class Maker(StrEnum):
    """The vendor, whose driver shows the device to a program."""

    NVIDIA = "NVIDIA"
    AMD = "AMD"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One device that a program can use: a GPU, or a MIG device of one.

    id: the driver's, which never changes. place: its index on the machine, "0:1" for MIG device 1 of GPU 0.
    """

    id: str
    place: str
    name: str
    memory_mib: int
    maker: Maker = Maker.NVIDIA


def find_gpus(limit_s: float = PROBE_S) -> tuple[Gpu, ...]:
    """The GPUs of this machine, NVIDIA's first. A driver that does not answer within the limit has none."""
    return (*_nvidia(limit_s), *_amd(limit_s))


def gone(gpus: Collection[Gpu], limit_s: float = PROBE_S) -> list[str]:
    """The ids of those that the driver no longer shows, such as after one has fallen off the bus, or all of them if it
    does not answer. None without the driver's program: then nothing says so."""
    asked = [gpu for gpu in gpus if shutil.which("nvidia-smi" if gpu.maker is Maker.NVIDIA else "rocm-smi")]
    there = {gpu.id for gpu in find_gpus(limit_s)} if asked else set()
    return [gpu.id for gpu in asked if gpu.id not in there]


def why_gone(gpus: Collection[Gpu]) -> str:
    """A sentence about those that are gone; "" if all are there."""
    return f"{', '.join(lost)} of this machine no longer answers" if (lost := gone(gpus)) else ""


def described(gpus: Sequence[Gpu]) -> str:
    """`2 x NVIDIA H200 (140 GiB)`."""
    counts = Counter((gpu.name, round(gpu.memory_mib / _MIB_PER_GIB)) for gpu in gpus)
    return ", ".join(f"{count} x {name} ({gib} GiB)" for (name, gib), count in counts.items())


def fitting_types(gpus: Sequence[Gpu], cores: int) -> list[str]:
    """The instance types that stand for these GPUs and cores: one for each number of GPUs.

    Each is the type with the most memory per GPU that every one of these GPUs has, so that a task gets what it asks
    for. If all types have more memory, it is the type with the least. Ties go to the type that uses the most of the
    cores, then to the cheapest.
    """
    least_mib = min((gpu.memory_mib for gpu in gpus), default=0)
    by_count: dict[int, list[tuple[int, int, float, str]]] = {}
    for kind in load_catalogue().values():
        if 0 < kind.gpus <= len(gpus) and kind.architecture == "x86_64":
            has_mib = kind.gpu_memory_mib
            memory = -has_mib if has_mib <= least_mib else has_mib
            rank = memory, -min(kind.vcpus, cores), kind.on_demand_usd_per_hour, kind.name
            by_count.setdefault(kind.gpus, []).append(rank)
    return [min(by_count[count])[-1] for count in sorted(by_count)]


def visible(gpus: Sequence[Gpu]) -> dict[str, str]:
    """The variables that show exactly these devices to a program of this machine; nothing for none."""
    if not gpus:
        return {}
    ids = ",".join(gpu.id for gpu in gpus if gpu.maker is Maker.NVIDIA)
    places = ",".join(gpu.place for gpu in gpus if gpu.maker is Maker.AMD)
    return {"CUDA_VISIBLE_DEVICES": ids, **({"ROCR_VISIBLE_DEVICES": places} if places else {})}


class GpuStock:
    """The machine's GPUs, and which instance has which. All Regions share it, and each calls it from its own thread."""

    def __init__(self, gpus: Sequence[Gpu]) -> None:
        self.gpus = tuple(gpus)
        self._free = list(gpus)
        self._lost: list[str] = []  # ids of those that have fallen off the bus
        self._of: dict[str, tuple[Gpu, ...]] = {}
        self._guard = threading.Lock()

    def why_not(self, instance_type: str, count: int) -> str:
        """Why no instance with this number of GPUs can be launched now; "" if one can."""
        if count <= len(self._free):
            return ""
        used, every = len(self.gpus) - len(self._free), len(self.gpus)
        if count > every:
            lost = f"; {', '.join(self._lost)} no longer answers" if self._lost else ""
            return f"{instance_type} needs {count} GPUs, and this machine has {every}{lost}."
        return f"{instance_type} waits for a GPU of this machine: {used} of {every} in use."

    def take(self, instance_id: str, count: int) -> None:
        """Assign GPUs to a launched instance, after `why_not`. It gets none if another instance was faster."""
        with self._guard:
            if count <= len(self._free):
                self._of[instance_id] = tuple(self._free[:count])
                del self._free[:count]

    def of(self, instance_id: str) -> tuple[Gpu, ...]:
        """In the order of their places."""
        return self._of.get(instance_id, ())

    def give_back(self, instance_id: str) -> None:
        """Call it when the instance is terminated. A second call does nothing. A GPU that is gone is given to none."""
        lost = gone(self.of(instance_id))
        with self._guard:
            free = {*self._free, *self._of.pop(instance_id, ())}
            self._lost += [each for each in lost if each not in self._lost]
            self.gpus = tuple(gpu for gpu in self.gpus if gpu.id not in self._lost)
            self._free = [gpu for gpu in self.gpus if gpu in free]


def _nvidia(limit_s: float) -> Iterator[Gpu]:
    rows = [[cell.strip() for cell in row] for row in csv.reader(_said(_QUERY, limit_s).splitlines())]
    slices = _mig_devices(limit_s) if any(row[-1:] == ["Enabled"] for row in rows) else {}
    for row in rows:
        if len(row) != len(("index", "uuid", "name", "memory", "mig")) or not row[3].isdigit():
            continue
        index, uuid, name, memory_mib, mig = row
        if mig == "Enabled":
            yield from slices.get(index, ())
        else:
            yield Gpu(uuid, index, name, int(memory_mib))


def _mig_devices(limit_s: float) -> dict[str, list[Gpu]]:
    """By the number of their GPU; a line is `  MIG 1g.18gb     Device  0: (UUID: MIG-...)`."""
    found: dict[str, list[Gpu]] = {}
    index = ""
    for line in _said(_LIST, limit_s).splitlines():
        if whole := _OF_GPU.match(line):
            index = whole[1]
        elif part := _MIG.match(line):
            name = line.split("Device")[0].strip()
            device = Gpu(part[3], f"{index}:{part[2]}", f"NVIDIA {name}", int(part[1]) * _MIB_PER_GIB)
            found.setdefault(index, []).append(device)
    return found


def _amd(limit_s: float) -> Iterator[Gpu]:
    try:
        cards = json.loads(_said(_AMD, limit_s) or "{}")
    except ValueError:
        return
    for card, told in sorted(cards.items(), key=lambda each: (len(each[0]), each[0])):
        if card.startswith("card") and isinstance(told, Mapping):
            yield from _card(card.removeprefix("card"), told)


def _card(place: str, told: Mapping[str, Any]) -> Iterator[Gpu]:
    memory_bytes = str(told.get("VRAM Total Memory (B)", ""))
    if memory_bytes.isdigit():
        name = str(told.get("Card Series") or told.get("Card series") or "GPU")
        identity = str(told.get("Unique ID") or place)
        yield Gpu(f"GPU-{identity}", place, f"AMD {name}", int(memory_bytes) // _BYTES_PER_MIB, Maker.AMD)


def _said(words: Collection[str], limit_s: float) -> str:
    """What a program printed; "" if there is none, or it failed or hung."""
    try:
        asked = subprocess.run([*words], capture_output=True, text=True, timeout=limit_s, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout if asked.returncode == 0 else ""
