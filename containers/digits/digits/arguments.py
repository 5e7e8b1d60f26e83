"""The program's arguments. The command line, with the task's ARGOSY_* environment as its defaults."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

IMAGES = 1797  # in scikit-learn's set
EXIT_BAD_ARGUMENTS = 64  # sysexits.h EX_USAGE; the run specs next to this program never retry it
_NO_GPUS = ("", "none", "void")  # what NVIDIA's container runtime takes for "no device"


@dataclass(frozen=True)
class Request:
    """Images `start` to `end`, half-open, in file order. `gpus` are the ids that this task was given.

    `output`, `model` and `save_model` are paths or s3:// addresses. `start == end` when a model is only to be saved.
    """

    start: int
    end: int
    output: str
    model: str | None
    save_model: str | None
    seconds_per_image: float
    attempt: int
    gpus: tuple[str, ...]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(EXIT_BAD_ARGUMENTS, f"digits: {message}\n")


def read_request(arguments: Sequence[str], environment: Mapping[str, str]) -> Request:
    """Raises SystemExit with EXIT_BAD_ARGUMENTS after one sentence on stderr."""
    parser = _parser(environment)
    given = parser.parse_args(arguments)
    start, end = (0, 0) if given.save_model else _range(parser, given.range)
    if not given.save_model and not given.output:
        parser.error("--output is missing, and ARGOSY_PART_URI is not set")
    if not 0 <= given.seconds_per_image < float("inf"):
        parser.error("--seconds-per-image must be a number of seconds, 0 or more")
    gpus = environment.get("NVIDIA_VISIBLE_DEVICES", "")
    return Request(
        start=start,
        end=end,
        output=given.output or "",
        model=given.model,
        save_model=given.save_model,
        seconds_per_image=given.seconds_per_image,
        attempt=_attempt(parser, environment.get("ARGOSY_TASK_ATTEMPT", "1")),
        gpus=() if gpus in _NO_GPUS else tuple(gpus.split(",")),
    )


def _parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = _Parser(prog="digits", description="Classify a range of scikit-learn's handwritten digits.")
    parser.add_argument("--range", default=environment.get("ARGOSY_RANGE"), help="START:END, half-open [ARGOSY_RANGE]")
    parser.add_argument("--output", default=environment.get("ARGOSY_PART_URI"), help="s3:// or path [ARGOSY_PART_URI]")
    parser.add_argument("--model", help="s3:// or path of a saved model; without it the program trains on images 0:900")
    parser.add_argument("--save-model", metavar="URI", help="train, save the model there, and end")
    parser.add_argument("--seconds-per-image", type=float, default=0.0, help="pretend that an image takes this long")
    return parser


def _range(parser: argparse.ArgumentParser, text: str | None) -> tuple[int, int]:
    if not text:
        parser.error("--range is missing, and ARGOSY_RANGE is not set")
    match = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})", text)
    if not match:
        parser.error(f"--range {text!r} is not START:END, such as 917:967")
    start, end = int(match[1]), int(match[2])
    if not start < end <= IMAGES:
        parser.error(f"--range {text} must begin before it ends, and end at {IMAGES} or before")
    return start, end


def _attempt(parser: argparse.ArgumentParser, text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        parser.error(f"ARGOSY_TASK_ATTEMPT {text!r} is not a number from 1 on")
    return int(text)
