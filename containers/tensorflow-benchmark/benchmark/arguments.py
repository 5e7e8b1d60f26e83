"""What is to be measured? The command line, with the task's environment as its defaults; every fault at once.

Options may also be given as environment variables, `--batch-size` as BENCHMARK_BATCH_SIZE; BATCH_SIZE and GPU, which
the ECS example of 2019 set, are understood too.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

EXIT_BAD_INPUT = 64  # sysexits.h EX_USAGE; the run specs next to this program never retry it
PREFIX = "BENCHMARK_"
MODELS = ("resnet50", "mobilenetv2", "tiny")
IMAGE_SIZES = {"resnet50": 224, "mobilenetv2": 224, "tiny": 8}
_NO_GPUS = ("", "none", "void")  # what NVIDIA's container runtime takes for "no device"


ALL_GPUS = ("all",)  # and this for "whatever there is", which CUDA's own base images have as their default


@dataclass(frozen=True)
class Request:
    """batch_size: images per GPU and step. steps come in `rounds` of equal length, whose speeds give the deviation.

    precision: auto, mixed or float32. cpu_devices: logical CPUs in place of GPUs; 0 = none. `gpus` are the ids
    that the task was given, or ALL_GPUS.
    """

    model: str
    batch_size: int
    image_size: int
    rounds: int
    steps_per_round: int
    warm_up: int
    baseline: int
    precision: str
    xla: bool
    gpu_count: int | None
    cpu_devices: int
    output: str
    attempt: int
    gpus: tuple[str, ...]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(EXIT_BAD_INPUT, f"benchmark: {message}\n")


def read_request(arguments: Sequence[str], environment: Mapping[str, str]) -> Request:
    """Raises SystemExit with EXIT_BAD_INPUT after one sentence on stderr that names every fault."""
    parser = _parser(environment)
    given = parser.parse_args(arguments)
    faults: list[str] = [*_unknown_settings(parser, environment)]
    _one_of(given.model, "--model", MODELS, faults)
    _one_of(given.precision, "--precision", ("auto", "float32", "mixed"), faults)
    _one_of(given.xla, "--xla", ("on", "off"), faults)
    steps = _whole(given.steps, "--steps", 1, 1_000_000, faults)
    rounds = _whole(given.rounds, "--rounds", 1, 1000, faults)
    if steps % rounds:
        faults.append(f"--steps {steps} must be a multiple of --rounds {rounds}")
    gpus = environment.get("NVIDIA_VISIBLE_DEVICES", "")
    request = Request(
        model=given.model,
        batch_size=_whole(given.batch_size, "--batch-size", 1, 65_536, faults),
        image_size=_whole(given.image_size, "--image-size", 0, 8192, faults) or IMAGE_SIZES.get(given.model, 0),
        rounds=rounds,
        steps_per_round=steps // rounds,
        warm_up=_whole(given.warm_up, "--warm-up", 1, 100_000, faults),
        baseline=_whole(given.baseline, "--baseline", 0, 100_000, faults),
        precision=given.precision,
        xla=given.xla == "on",
        gpu_count=None if given.num_gpus is None else _whole(given.num_gpus, "--num-gpus", 0, 64, faults),
        cpu_devices=_whole(given.cpu_devices, "--cpu-devices", 0, 64, faults),
        output=given.output or "",
        attempt=_attempt(environment.get("ARGOSY_TASK_ATTEMPT", "1"), faults),
        gpus=() if gpus in _NO_GPUS else tuple(gpus.split(",")),
    )
    if faults:
        parser.error("; ".join(faults))
    return request


def _parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = _Parser(prog="benchmark", description="Train a network on synthetic images and measure the speed.")
    parser.add_argument("--output", default=environment.get("ARGOSY_PART_URI"), help="s3:// or path [ARGOSY_PART_URI]")

    def option(name: str, default: str | None, text: str, *, also: str = "") -> None:
        variable = PREFIX + name.upper().replace("-", "_")
        default = environment.get(variable, environment.get(also, default) if also else default)
        parser.add_argument(f"--{name}", default=default, help=f"{text} [{variable}]")

    option("model", "resnet50", f"{', '.join(MODELS)} (default resnet50)")
    option("batch-size", "64", "images per GPU in one step (default 64)", also="BATCH_SIZE")
    option("image-size", "0", "pixels of a side (default: the model's)")
    option("steps", "100", "timed steps (default 100)")
    option("rounds", "10", "how many equal parts of the timed steps are measured one by one (default 10)")
    option("warm-up", "10", "steps before the clock starts (default 10)")
    option("baseline", "20", "steps on one GPU afterwards that the efficiency is judged by; 0 = none (default 20)")
    option("precision", "auto", "mixed (float16 with float32 variables), float32, auto: mixed on GPUs (default auto)")
    option("xla", "off", "on compiles with XLA (default off)")
    option("num-gpus", None, "how many GPUs there must be (default: those that the task was given)", also="GPU")
    option("cpu-devices", "0", "logical CPU devices that stand in for GPUs, for trying out (default 0)")
    return parser


def _unknown_settings(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> list[str]:
    """A misspelt variable would otherwise silently leave the default in force."""
    options = [word[2:] for action in parser._actions for word in action.option_strings if word.startswith("--")]
    known = [PREFIX + word.upper().replace("-", "_") for word in options if word not in ("help", "output")]
    unknown = sorted(name for name in environment if name.startswith(PREFIX) and name not in known)
    return [f"unknown setting {name}{_meant(name, known)}" for name in unknown]


def _meant(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name.removeprefix(PREFIX), [each.removeprefix(PREFIX) for each in known], 1)
    return f" (do you mean {PREFIX}{close[0]}?)" if close else f" (known: {', '.join(known)})"


def _one_of(text: str, option: str, known: Sequence[str], faults: list[str]) -> None:
    if text not in known:
        faults.append(f"{option} must be {' or '.join(known)}, not {text!r}")


def _whole(text: str, option: str, least: int, most: int, faults: list[str]) -> int:
    if re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) and least <= int(text) <= most:
        return int(text)
    faults.append(f"{option} must be a whole number from {least} to {most}, not {text!r}")
    return max(least, 1)


def _attempt(text: str, faults: list[str]) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text, re.ASCII):
        faults.append(f"ARGOSY_TASK_ATTEMPT {text!r} is not a number from 1 on")
        return 1
    return int(text)
