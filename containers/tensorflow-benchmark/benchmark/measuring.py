"""What is the record of one measurement? Speeds of the rounds, their deviation, the efficiency against one device."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmark.arguments import ALL_GPUS, Request
from benchmark.devices import Devices
from benchmark.training import Training

RECORD = "argosy-benchmark/1"


def measure(tf: Any, keras: Any, request: Request, devices: Devices, age_s: Callable[[], float]) -> dict[str, Any]:
    """age_s: seconds since the program began. Prints a line for each round.

    The one GPU that the efficiency is judged by comes last, on its own account: a task of one GPU has no such part.
    """
    request = replace(request, precision=effective_precision(request, devices))
    if request.precision == "mixed":
        keras.mixed_precision.set_global_policy("mixed_float16")
    tf.config.optimizer.set_jit("autoclustering" if request.xla else False)
    together = _together(tf, keras, request, devices, age_s)
    total_s = age_s()
    alone = _alone(tf, keras, request, devices)
    speed = together["imagesPerSecond"]
    return {
        "record": RECORD,
        "model": request.model,
        "imageSize": request.image_size,
        "precision": request.precision,
        "xla": request.xla,
        "gpus": len(devices.names),
        "pinnedGpus": [] if request.gpus == ALL_GPUS else list(request.gpus),
        "gpuNames": list(devices.kinds),
        "emulated": _is_emulated(devices),
        "batchPerGpu": request.batch_size,
        **together,
        "totalSeconds": total_s,
        "oneGpuImagesPerSecond": alone,
        "scalingEfficiency": speed / (alone * len(devices.names)) if alone else None,
        "baselineSeconds": age_s() - total_s if alone else 0.0,
        "tensorflow": tf.__version__,
        "attempt": request.attempt,
    }


def effective_precision(request: Request, devices: Devices) -> str:
    """On CPUs float16 is some 260 times slower than float32."""
    if request.precision != "auto":
        return request.precision
    return "float32" if _is_emulated(devices) else "mixed"


def _is_emulated(devices: Devices) -> bool:
    """Whether the figures are a CPU's, which are never compared with a GPU's."""
    return devices.emulated or devices.kinds == ("CPU",)


def _together(tf: Any, keras: Any, request: Request, devices: Devices, age_s: Callable[[], float]) -> dict[str, Any]:
    """The measurement itself, on all devices; it frees their memory afterwards."""
    training = Training(tf, keras, request, devices.names)
    training.run(1)  # traces and compiles
    start_up_s = age_s()
    warm_up_s = training.run(request.warm_up)
    seconds = [_round(training, request, number) for number in range(1, request.rounds + 1)]
    images = training.images_per_step * request.steps_per_round
    return {
        "images": images * request.rounds,
        "imagesPerSecond": images * request.rounds / sum(seconds),
        "deviation": statistics.stdev(images / each for each in seconds) if len(seconds) > 1 else 0.0,
        "startUpSeconds": start_up_s,
        "warmUpSeconds": warm_up_s,
        "timedSeconds": sum(seconds),
    }


def _alone(tf: Any, keras: Any, request: Request, devices: Devices) -> float | None:
    """Images per second of the first device by itself; None when that is not asked for."""
    if len(devices.names) == 1 or not request.baseline:
        return None
    training = Training(tf, keras, request, devices.names[:1])
    training.run(request.warm_up)
    speed = training.images_per_step * request.baseline / training.run(request.baseline)
    print(f"one device alone: {speed:.1f} images/s", flush=True)
    return speed


def _round(training: Training, request: Request, number: int) -> float:
    seconds = training.run(request.steps_per_round)
    speed = training.images_per_step * request.steps_per_round / seconds
    print(f"round {number} of {request.rounds}: {speed:.1f} images/s", flush=True)
    return seconds
