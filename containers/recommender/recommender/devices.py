"""On which devices is trained: the GPUs that the task was given, logical CPUs in their place, or the one CPU?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recommender.faults import NoDevice, WrongImage

MOST = 4  # as many as the original's hosts had


def find(tf: Any, pinned: Sequence[str], wanted: int | None, cpu_devices: int) -> list[str]:
    """TensorFlow's names of the devices; call it before TensorFlow does anything else. Raises WrongImage or NoDevice.

    wanted: as `mpirun -np` says; None: as many as are pinned. cpu_devices: logical CPUs in place of GPUs, 0 for none.
    """
    count = len(pinned) if wanted is None else wanted
    if wanted is not None and len(pinned) not in (0, wanted):
        raise WrongImage(f"the command asks for {_gpus(wanted)}, but the task was given {len(pinned)}")
    if count > MOST:
        raise WrongImage(f"{_gpus(count)} are more than the {MOST} that this program trains on")
    if cpu_devices:
        return _logical(tf, min(cpu_devices, count or cpu_devices))
    if not count:
        tf.config.set_visible_devices([], "GPU")
        return ["/cpu:0"]
    if not tf.test.is_built_with_cuda():
        raise WrongImage(
            f"{_gpus(count)} wanted, but this image is the CPU flavour: build it with FLAVOUR=gpu,"
            " or set CPU_DEVICES to try it out"
        )
    found = tf.config.list_physical_devices("GPU")
    if len(found) < count:
        raise NoDevice(
            f"{_gpus(count)} wanted ({', '.join(pinned) or 'any'}), but TensorFlow sees {len(found)}:"
            " the driver or the NVIDIA runtime of this instance does not work"
        )
    return [f"/gpu:{ordinal}" for ordinal in range(count)]


def _logical(tf: Any, count: int) -> list[str]:
    [cpu, *_] = tf.config.list_physical_devices("CPU")
    tf.config.set_visible_devices([], "GPU")
    if len(tf.config.get_logical_device_configuration(cpu) or ()) != count:
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    return [f"/cpu:{ordinal}" for ordinal in range(count)]


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"
