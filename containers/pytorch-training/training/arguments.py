"""What is trained, on what, and for how long? The command line, with the environment as its defaults.

`--batch-size` may also be given as TRAINING_BATCH_SIZE. Every fault is named at once.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

EXIT_BAD_INPUT = 64  # sysexits.h EX_USAGE; the run specs next to this program never retry it
PREFIX = "TRAINING_"
_NO_GPUS = ("", "none", "void")  # what NVIDIA's container runtime takes for "no device"
ALL_GPUS = ("all",)


@dataclass(frozen=True)
class Model:
    """What a model is trained with unless something else is asked for.

    size: pixels of a side of synthetic images, or tokens of a sequence; real_size: the same for the real set.
    """

    unit: str
    batch_size: int
    size: int
    real_size: int
    learning_rate: float


MODELS = {
    "resnet50": Model("images", 128, 224, 32, 0.01),
    "resnet-tiny": Model("images", 32, 8, 8, 0.05),
    "gpt": Model("tokens", 16, 1024, 1024, 3e-4),
    "gpt-tiny": Model("tokens", 8, 64, 64, 3e-3),
}


@dataclass(frozen=True)
class Request:
    """batch_size: images or sequences per GPU and step. size: pixels of a side, or tokens of a sequence.

    steps: all steps, of which the first of an attempt (warm_up) are left out of its speed. gpus: the ids that the task
    was given; ("all",) = those that PyTorch sees, which is also meant by () where there are any. share_mib: the memory
    of a shared GPU that the task may use, 0 = all. checkpoints: the folder that holds those of all attempts, or "".
    """

    model: str
    data: str
    batch_size: int
    size: int
    steps: int
    warm_up: int
    steps_per_round: int
    learning_rate: float
    precision: str
    compile: str
    cpu_processes: int
    output: str
    save_model: str
    checkpoints: str
    checkpoint_seconds: float
    attempt: int
    gpus: tuple[str, ...]
    share_mib: int

    @property
    def unit(self) -> str:
        return MODELS[self.model].unit

    def work(self, processes: int) -> dict[str, Any]:
        """What two attempts must have in common for one to continue the other."""
        return {
            "model": self.model, "data": self.data, "batch": self.batch_size, "size": self.size, "processes": processes,
            "learningRate": str(self.learning_rate),
        }  # fmt: skip


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(EXIT_BAD_INPUT, f"training: {message}\n")


CHOICES = {
    "model": (tuple(MODELS), "network"),
    "data": (("synthetic", "real"), "real: scikit-learn's digits for images, Python's documentation for text"),
    "precision": (("auto", "bf16", "float32"), "auto: bf16 on GPUs that compute in it"),
    "compile": (("auto", "on", "off"), "torch.compile; auto: on GPUs, where it works"),
}
WHOLE = {  # default, least, most
    "batch-size": (0, 0, 65_536, "images or sequences per GPU and step; 0 = the model's own"),
    "size": (0, 0, 65_536, "pixels of a side, or tokens of a sequence; 0 = the model's own"),
    "steps": (220, 1, 100_000_000, "all steps"),
    "warm-up": (20, 0, 100_000, "steps at the start of an attempt that do not count for its speed"),
    "steps-per-round": (10, 1, 100_000, "steps between two looks at the clock, and at a stop with several GPUs"),
    "cpu-processes": (0, 0, 64, "this many processes on CPUs instead of GPUs"),
}
NUMBERS = {
    "learning-rate": ("0", "0 = the model's own"),
    "checkpoint-seconds": ("300", "from one checkpoint to the next; 0 = keep none"),
}
TEXTS = {
    "output": ("ARGOSY_PART_URI", "s3:// or a path for the record, never written over"),
    "save-model": (f"{PREFIX}SAVE_MODEL", "s3:// or a path for the trained network, for pytorch-inference"),
    "checkpoints": (f"{PREFIX}CHECKPOINTS", "folder for checkpoints; on Argosy next to the attempts' folders"),
}


def read_request(arguments: Sequence[str], environment: Mapping[str, str]) -> Request:
    """Raises SystemExit with EXIT_BAD_INPUT after one sentence on stderr that names every fault."""
    parser = _parser(environment)
    given = vars(parser.parse_args(arguments))
    faults = _unknown(environment)
    for name, (known, _) in CHOICES.items():
        if given[_field(name)] not in known:
            faults.append(f"--{name} must be {' or '.join(known)}, not {given[_field(name)]!r}")
    for name, (_, least, most, _) in WHOLE.items():
        given[_field(name)] = _whole(given[_field(name)], f"--{name}", (least, most), faults)
    for name in NUMBERS:
        given[_field(name)] = _number(given[_field(name)], f"--{name}", faults)
    attempt = _whole(environment.get("ARGOSY_TASK_ATTEMPT", "1"), "ARGOSY_TASK_ATTEMPT", (1, 10**9), faults)
    if faults:
        parser.error("; ".join(faults))
    model = MODELS[given["model"]]
    given["batch_size"] = given["batch_size"] or model.batch_size
    given["size"] = given["size"] or (model.size if given["data"] == "synthetic" else model.real_size)
    given["learning_rate"] = given["learning_rate"] or model.learning_rate
    given["checkpoints"] = _checkpoints(given["checkpoints"], environment) if given["checkpoint_seconds"] else ""
    gpus = environment.get("NVIDIA_VISIBLE_DEVICES", "")
    return Request(
        **given,
        attempt=attempt,
        gpus=() if gpus in _NO_GPUS else tuple(gpus.split(",")),
        share_mib=_share_mib(environment.get("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "")),
    )


def _parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = _Parser(prog="training", description="Train ResNet-50 or a small GPT, and measure it.")

    def option(name: str, default: object, text: str, variable: str = "") -> None:
        variable = variable or PREFIX + _field(name).upper()
        parser.add_argument(f"--{name}", default=environment.get(variable, str(default)), help=f"{text} [{variable}]")

    for name, (known, text) in CHOICES.items():
        option(name, known[0], f"{' or '.join(known)}: {text}")
    for name, (default, _, _, text) in WHOLE.items():
        option(name, default, text)
    for name, (number, text) in NUMBERS.items():
        option(name, number, text)
    for name, (variable, text) in TEXTS.items():
        option(name, "", text, variable)
    return parser


def _field(name: str) -> str:
    return name.replace("-", "_")


def _unknown(environment: Mapping[str, str]) -> list[str]:
    """A misspelt variable would otherwise silently leave the default in force."""
    known = [PREFIX + _field(name).upper() for name in (*CHOICES, *WHOLE, *NUMBERS, *TEXTS)]
    unknown = sorted(name for name in environment if name.startswith(PREFIX) and name not in known)
    return [f"unknown setting {name} (known: {', '.join(known)})" for name in unknown]


def _whole(text: str, option: str, bounds: tuple[int, int], faults: list[str]) -> int:
    least, most = bounds
    if re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) and least <= int(text) <= most:
        return int(text)
    faults.append(f"{option} must be a whole number from {least} to {most}, not {text!r}")
    return least


def _number(text: str, option: str, faults: list[str]) -> float:
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?(e-[0-9]+)?", text, re.ASCII):
        return float(text)
    faults.append(f"{option} must be a number, 0 or more, not {text!r}")
    return 0.0


def _checkpoints(folder: str, environment: Mapping[str, str]) -> str:
    """Files in an attempt's own folder are part of its result, so checkpoints are next to it."""
    attempts, slash, _ = environment.get("ARGOSY_OUTPUT_URI", "").rstrip("/").rpartition("/")
    own = f"{folder.rstrip('/')}/" if folder else ""
    return own or (f"{attempts}{slash}checkpoints/" if slash else "")


def _share_mib(limit: str) -> int:
    """`0=8000M` is what MPS holds a sharing task to."""
    found = re.fullmatch(r"0=([0-9]+)M", limit)
    return int(found[1]) if found else 0
