"""On which devices is trained: the GPUs that the task was given, logical CPUs in their place, or the one CPU?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmark.arguments import ALL_GPUS, Request


class WrongImage(Exception):
    """The task cannot do its work, wherever it runs."""


class NoDevice(Exception):
    """The GPUs do not show up here: another instance may do better."""


@dataclass(frozen=True)
class Devices:
    """TensorFlow's names of the devices, and what they are. emulated: CPUs stand in for GPUs."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    emulated: bool = False


def find(tf: Any, request: Request) -> Devices:
    """Must be called before TensorFlow does anything else. Raises WrongImage or NoDevice."""
    given = len(tf.config.list_physical_devices("GPU")) if request.gpus == ALL_GPUS else len(request.gpus)
    wanted = given if request.gpu_count is None else request.gpu_count
    if request.gpu_count is not None and given not in (0, wanted):
        raise WrongImage(f"--num-gpus asks for {wanted}, but the task was given {given}")
    if request.cpu_devices:
        return _logical(tf, min(request.cpu_devices, wanted or request.cpu_devices))
    if not wanted:
        tf.config.set_visible_devices([], "GPU")
        return Devices(("/cpu:0",), ("CPU",))
    if not tf.test.is_built_with_cuda():
        raise WrongImage(
            f"{_gpus(wanted)} wanted, but this image is the CPU flavour: build it with FLAVOUR=gpu,"
            " or give --cpu-devices to try it out"
        )
    found = tf.config.list_physical_devices("GPU")
    if len(found) < wanted:
        raise NoDevice(
            f"{_gpus(wanted)} wanted ({', '.join(request.gpus) or 'any'}), but TensorFlow sees {len(found)}:"
            " the driver or the NVIDIA runtime of this instance does not work"
        )
    details = [tf.config.experimental.get_device_details(each) for each in found[:wanted]]
    kinds = tuple(str(each.get("device_name", "GPU")) for each in details)
    return Devices(tuple(f"/gpu:{ordinal}" for ordinal in range(wanted)), kinds)


def _logical(tf: Any, count: int) -> Devices:
    [cpu, *_] = tf.config.list_physical_devices("CPU")
    tf.config.set_visible_devices([], "GPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    return Devices(tuple(f"/cpu:{ordinal}" for ordinal in range(count)), ("logical CPU",) * count, emulated=True)


def _gpus(count: int) -> str:
    return "1 GPU is" if count == 1 else f"{count} GPUs are"
