"""The program's arguments. The command line, with the task's environment as its defaults; every fault at once.

Options may also be given as environment variables, `--batch-size` as INFERENCE_BATCH_SIZE. The two positional arguments
are those of distributo's image: `0:1000 s3://bucket/key`.
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
PREFIX = "INFERENCE_"
BAKED_MODEL = "/model"  # where the image keeps the model that was put in when it was built
_NO_GPUS = ("", "none", "void")  # what NVIDIA's container runtime takes for "no device"
ALL_GPUS = ("all",)  # and this for "whatever there is", which CUDA's own base images have as their default
_RANGE = re.compile(r"([0-9]{1,12}):([0-9]{1,12})", re.ASCII)


@dataclass(frozen=True)
class Request:
    """Images `start` to `end`, half-open, of `images` (a folder or S3 prefix) or `urls` (a list): one is empty.

    `attempt_folder` belongs to this attempt alone and ends in a slash; `gpus` are the ids that the task was given, or
    ALL_GPUS.
    image_size: pixels of a side, 0 = what the model says. checkpoint_seconds: from one to the next, 0 = only at a stop.
    """

    start: int
    end: int
    output: str
    images: str
    urls: str
    model: str
    top: int
    batch_size: int
    image_size: int
    device: str
    seconds_per_image: float
    checkpoint_seconds: float
    attempt: int
    attempt_folder: str
    gpus: tuple[str, ...]

    @property
    def count(self) -> int:
        return self.end - self.start

    @property
    def source(self) -> str:
        return self.images or self.urls


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(EXIT_BAD_INPUT, f"inference: {message}\n")


def read_request(arguments: Sequence[str], environment: Mapping[str, str]) -> Request:
    """Raises SystemExit with EXIT_BAD_INPUT after one sentence on stderr that names every fault."""
    parser = _parser(environment)
    given = parser.parse_args(arguments)
    faults: list[str] = [*_unknown_settings(parser, environment)]
    start, end = _range(given.range or given.range_option, faults)
    output = given.output or given.output_option
    attempt = _attempt(environment.get("ARGOSY_TASK_ATTEMPT", "1"), faults)
    if not output:
        faults.append("no output was given, and ARGOSY_PART_URI is not set")
    if bool(given.images) == bool(given.urls):
        faults.append("give one of --images FOLDER and --urls LIST")
    top = _whole(given.top, "--top", 1, 1000, faults)
    batch_size = _whole(given.batch_size, "--batch-size", 1, 65_536, faults)
    image_size = _whole(given.image_size, "--image-size", 0, 8192, faults)
    pause = _seconds(given.seconds_per_image, "--seconds-per-image", faults)
    checkpoint_seconds = _seconds(given.checkpoint_seconds, "--checkpoint-seconds", faults)
    if given.device not in ("auto", "cpu"):
        faults.append(f"--device must be auto or cpu, not {given.device!r}")
    if faults:
        parser.error("; ".join(faults))
    gpus = environment.get("NVIDIA_VISIBLE_DEVICES", "")
    return Request(
        start=start,
        end=end,
        output=output,
        images=given.images or "",
        urls=given.urls or "",
        model=given.model,
        top=top,
        batch_size=batch_size,
        image_size=image_size,
        device=given.device,
        seconds_per_image=pause,
        checkpoint_seconds=checkpoint_seconds,
        attempt=attempt,
        attempt_folder=environment.get("ARGOSY_OUTPUT_URI") or f"{output}.attempts/{attempt}/",
        gpus=() if gpus in _NO_GPUS else tuple(gpus.split(",")),
    )


def _parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = _Parser(prog="inference", description="Classify a range of images.")
    parser.add_argument("range", nargs="?", help="START:END, half-open [ARGOSY_RANGE]")
    parser.add_argument("output", nargs="?", help="s3:// or path, never written over [ARGOSY_PART_URI]")
    parser.add_argument("--range", dest="range_option", default=environment.get("ARGOSY_RANGE"), help="the same")
    parser.add_argument("--output", dest="output_option", default=environment.get("ARGOSY_PART_URI"), help="the same")

    def option(name: str, default: str | None, text: str) -> None:
        variable = PREFIX + name.upper().replace("-", "_")
        parser.add_argument(f"--{name}", default=environment.get(variable, default), help=f"{text} [{variable}]")

    option("images", None, "folder or s3://BUCKET/PREFIX/ of images, numbered in the order of their names")
    option("urls", None, "text with one address on each line, or NAME<tab>ADDRESS; dead ones become error rows")
    option("model", BAKED_MODEL, f"model: folder, file or s3:// address (default {BAKED_MODEL})")
    option("top", "5", "how many labels of an image are kept (default 5)")
    option("batch-size", "32", "images classified at once (default 32)")
    option("image-size", "0", "pixels of a side, for a model that does not say")
    option("device", "auto", "auto uses a GPU that the task was given; cpu never does")
    option("checkpoint-seconds", "120", "how often the finished rows are kept for a retry; 0 = only at a stop")
    option("seconds-per-image", "0", "pretend that an image takes so much longer")
    return parser


def _unknown_settings(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> list[str]:
    """A misspelt variable would otherwise silently leave the default in force."""
    options = [word[2:] for action in parser._actions for word in action.option_strings if word.startswith("--")]
    known = [PREFIX + word.upper().replace("-", "_") for word in options if word not in ("help", "range", "output")]
    unknown = sorted(name for name in environment if name.startswith(PREFIX) and name not in known)
    return [f"unknown setting {name}{_meant(name, known)}" for name in unknown]


def _meant(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name.removeprefix(PREFIX), [each.removeprefix(PREFIX) for each in known], 1)
    return f" (do you mean {PREFIX}{close[0]}?)" if close else f" (known: {', '.join(known)})"


def _range(text: str | None, faults: list[str]) -> tuple[int, int]:
    if not text:
        faults.append("no range was given, and ARGOSY_RANGE is not set")
        return 0, 1
    match = _RANGE.fullmatch(text)
    if not match:
        faults.append(f"the range {text!r} is not START:END, such as 0:1000")
        return 0, 1
    start, end = int(match[1]), int(match[2])
    if start == end:
        faults.append(f"the range {text} is empty")
    elif start > end:
        faults.append(f"the range {text} is reversed: it must begin before it ends")
    return start, end


def _whole(text: str, option: str, least: int, most: int, faults: list[str]) -> int:
    if re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) and least <= int(text) <= most:
        return int(text)
    faults.append(f"{option} must be a whole number from {least} to {most}, not {text!r}")
    return least


def _seconds(text: str, option: str, faults: list[str]) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        faults.append(f"{option} must be a number of seconds, 0 or more, not {text!r}")
    return seconds


def _attempt(text: str, faults: list[str]) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text, re.ASCII):
        faults.append(f"ARGOSY_TASK_ATTEMPT {text!r} is not a number from 1 on")
        return 1
    return int(text)
