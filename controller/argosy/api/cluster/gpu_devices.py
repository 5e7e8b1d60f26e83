"""The GPUs that tasks share, as replies show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from argosy.model.instances import Instance
from argosy.model.resources import NOTHING, Resources
from argosy.model.state import State

JSON = dict[str, Any]


def show_devices(views: Iterable[JSON], state: State, needs: Mapping[int, Resources]) -> None:
    """Add `gpuDevices` to the views of instances on which tasks share a GPU. needs: of a task of each open run, by
    Run.number."""
    shared = shared_devices(state, needs)
    for view in views:
        if (devices := shared.get(view["instanceId"])) is not None:
            view["gpuDevices"] = devices


def shared_devices(state: State, needs: Mapping[int, Resources]) -> dict[str, list[JSON]]:
    """By id of the instances on which tasks share a GPU. needs: as above."""
    used = gpus_in_use(state, needs)
    shared = {name: mine for name, mine in used.items() if any(map(sum, mine.values())) and name in state.instances}
    return {name: _devices(state.instances[name], mine) for name, mine in shared.items()}


def gpus_in_use(state: State, needs: Mapping[int, Resources]) -> dict[str, dict[int, list[int]]]:
    """By instance and place of the GPU there: MiB of it that each of its tasks has; 0 = the whole GPU is the task's."""
    table, found = state.attempts, dict[str, dict[int, list[int]]]()
    rows = table.placed()
    for row in rows[table["gpu_mask"][rows] != 0].tolist():
        share_mib = needs.get(int(table["run"][row]), NOTHING).gpu_share_mib
        used, mask = found.setdefault(bytes(table["instance"][row]).decode(), {}), int(table["gpu_mask"][row])
        for place in (place for place in range(mask.bit_length()) if mask >> place & 1):
            used.setdefault(place, []).append(share_mib)
    return found


def _devices(instance: Instance, used: Mapping[int, Sequence[int]]) -> list[JSON]:
    """In ECS's words for their modes."""
    total_mib = instance.gpu_memory_mib
    return [
        {
            "gpuId": gpu,
            "mode": mode,
            "freeMib": 0 if mode == "DEDICATED" else max(0, total_mib - sum(used.get(place, ()))),
            "totalMib": total_mib,
            "tasks": len(used.get(place, ())),
        }
        for place, gpu in enumerate(instance.gpu_ids)
        for mode in ["IDLE" if place not in used else "NVIDIA_MPS" if sum(used[place]) else "DEDICATED"]
    ]
