"""The GPUs that tasks share, as replies show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.model.instances import Instance
from argosy.model.resources import NOTHING, Resources
from argosy.model.state import State

JSON = dict[str, Any]


def show_devices(views: Iterable[JSON], state: State, needs: Mapping[int, Resources]) -> None:
    """Add `gpuDevices` to the views of instances on which tasks share a GPU. needs: of a task of each open run, by
    Run.number."""
    used = gpus_in_use(state, needs)
    for view in views:
        mine = used.get(view["instanceId"], {})
        if any(mine.values()):
            view["gpuDevices"] = _devices(state.instances[view["instanceId"]], mine)


def gpus_in_use(state: State, needs: Mapping[int, Resources]) -> dict[str, dict[int, int]]:
    """By instance and place of the GPU there: MiB of it that tasks share; 0 = it belongs to one task."""
    table, found = state.attempts, dict[str, dict[int, int]]()
    rows = table.placed()
    for row in rows[table["gpu_mask"][rows] != 0].tolist():
        share_mib = needs.get(int(table["run"][row]), NOTHING).gpu_share_mib
        used, mask = found.setdefault(bytes(table["instance"][row]).decode(), {}), int(table["gpu_mask"][row])
        for place in (place for place in range(mask.bit_length()) if mask >> place & 1):
            used[place] = used.get(place, 0) + share_mib
    return found


def _devices(instance: Instance, used: Mapping[int, int]) -> list[JSON]:
    """In ECS's words for their modes."""
    total_mib = instance.gpu_memory_mib
    return [
        {
            "gpuId": gpu,
            "mode": mode,
            "freeMib": 0 if mode == "DEDICATED" else max(0, total_mib - used.get(place, 0)),
            "totalMib": total_mib,
        }
        for place, gpu in enumerate(instance.gpu_ids)
        for mode in ["IDLE" if place not in used else "NVIDIA_MPS" if used[place] else "DEDICATED"]
    ]
