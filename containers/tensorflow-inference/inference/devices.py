"""Has the task the GPUs that it was given?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inference.arguments import ALL_GPUS


class WrongImage(Exception):
    """This image cannot use a GPU at all: another instance would not help."""


class NoDevice(Exception):
    """The GPUs do not show up here: another instance may do better."""


def use(tf: Any, pinned: Sequence[str], device: str) -> str:
    """Prepares the devices; returns the used ones in words. Raises WrongImage or NoDevice."""
    if device == "cpu" or not pinned:
        return _cpu(tf)
    if tuple(pinned) != ALL_GPUS:
        _check_flavour(tf, pinned)
    found = tf.config.list_physical_devices("GPU")
    if tuple(pinned) != ALL_GPUS and len(found) < len(pinned):
        raise NoDevice(
            f"{gpus_are(len(pinned))} pinned to this task ({', '.join(pinned)}), but TensorFlow sees {len(found)}:"
            " the driver or the NVIDIA runtime of this instance does not work"
        )
    for each in found:
        tf.config.experimental.set_memory_growth(each, True)
    details = [tf.config.experimental.get_device_details(each) for each in found]
    return ", ".join(str(each.get("device_name", "GPU")) for each in details) or _cpu(tf)


def _cpu(tf: Any) -> str:
    tf.config.set_visible_devices([], "GPU")
    return "CPU"


def _check_flavour(tf: Any, pinned: Sequence[str]) -> None:
    if not tf.test.is_built_with_cuda():
        raise WrongImage(
            f"{gpus_are(len(pinned))} pinned to this task, but this image is the CPU flavour:"
            " build it with FLAVOUR=gpu, or give --device cpu"
        )


def gpus_are(count: int) -> str:
    return "1 GPU is" if count == 1 else f"{count} GPUs are"
