"""The runner's instructions in its task's environment, and its report if it cannot follow them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from argosy.model.exit_codes import WRONG_REQUEST
from argosy.model.program_versions import FIRST_ATTEMPT_VARIABLE
from argosy.model.run_terms import OVERRIDES_VARIABLE, PROGRAM_ENTRY_POINT, RUNNER_PROTOCOL

STOPPED = 143  # 128 + SIGTERM
NOT_EXECUTABLE, NOT_FOUND = 126, 127  # as in shells


class RunnerFault(Exception):
    """The runner ends with `code` and prints the sentence, without control characters."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(printable(sentence))
        self.code = code

    @property
    def line(self) -> str:
        """The line for the log, without its end."""
        return f"argosy: {self}"


class Result(Enum):
    """The result of a task: the files of a folder, standard output, or nothing."""

    FOLDER = "folder"
    STDOUT = "stdout"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class CheckpointOrder:
    """Where the checkpoints of a task belong, an s3:// address that ends in `/`; every_s: 0 = at commits and stops.
    renewed_s: after which files that have not changed are sent again; `checkpointDays` is longer."""

    uri: str
    attempt: int
    every_s: float
    renewed_s: float = 86_400.0


@dataclass(frozen=True, slots=True)
class RunnerOrder:
    """The work of a task of a run with a program. part, output, job, inputs: s3:// addresses; output ends in `/`."""

    result: Result
    part: str | None
    output: str | None
    job: str | None
    inputs: tuple[str, ...]
    attempt: str | None  # its number, which the part carries as metadata
    first_attempt: int  # parts of earlier attempts are from another version; 0 = none are
    checkpoint: CheckpointOrder | None = None


def overridden(environment: Mapping[str, str], read: Callable[[str, str], bytes]) -> tuple[list[str], dict[str, str]]:
    """The command and the variables of a task for which `environment` names the object that has the rest of them.

    read: a small object, by its address and its name in sentences. Raises RunnerFault.
    """
    uri = environment[OVERRIDES_VARIABLE]
    try:
        document = json.loads(read(uri, "the command"))
        given, variables = document["command"], document["environment"]
        if isinstance(given, str) or not all(isinstance(each, str) for each in (*given, *variables.values())):
            raise TypeError("it has values that are not text")
    except (ValueError, TypeError, KeyError, AttributeError) as fault:
        raise RunnerFault(
            WRONG_REQUEST, f"the command {uri} cannot be read: {fault or type(fault).__name__}"
        ) from fault
    return list(given), {**environment, **variables}


def order_from(environment: Mapping[str, str]) -> RunnerOrder | None:
    """None if the program is only to be started. Raises RunnerFault."""
    protocol = environment.get("ARGOSY_RUNNER")
    if protocol is None:
        return None
    if protocol != str(RUNNER_PROTOCOL):
        known = f"this runner supports protocol {RUNNER_PROTOCOL}"
        raise RunnerFault(WRONG_REQUEST, f"the task asks for protocol {protocol!r} of the runner, and {known}")
    return RunnerOrder(
        result=_result(environment.get("ARGOSY_RESULT", Result.FOLDER.value)),
        part=environment.get("ARGOSY_PART_URI") or None,
        output=environment.get("ARGOSY_OUTPUT_URI") or None,
        job=environment.get("ARGOSY_JOB") or None,
        inputs=_inputs(environment.get("ARGOSY_INPUTS") or "[]"),
        attempt=environment.get("ARGOSY_TASK_ATTEMPT") or None,
        checkpoint=_checkpoint(environment),
        first_attempt=int(first) if (first := environment.get(FIRST_ATTEMPT_VARIABLE, "")).isdecimal() else 0,
    )


def words_of(arguments: list[str]) -> list[str]:
    """The program and its arguments. Docker puts `--` before them, and the task definition puts the marker there."""
    words = list(arguments)
    for dropped in ("--", PROGRAM_ENTRY_POINT):
        if words[:1] == [dropped]:
            words.pop(0)
    if not words:
        raise RunnerFault(WRONG_REQUEST, "there is no program to run: the task has no command")
    return words


def split_address(uri: str, what: str) -> tuple[str, str]:
    """`s3://bucket/key` -> (bucket, key), the key perhaps empty. Raises RunnerFault."""
    scheme, _, rest = uri.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme != "s3" or not bucket:
        raise RunnerFault(WRONG_REQUEST, f"{what} {uri!r} is not s3://BUCKET/KEY")
    return bucket, key


def printable(text: str) -> str:
    """With escapes in place of control characters and of bytes that are not text."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _result(text: str) -> Result:
    try:
        return Result(text)
    except ValueError as fault:
        raise RunnerFault(WRONG_REQUEST, f"ARGOSY_RESULT is {text!r}; it may be folder, stdout or none") from fault


def _checkpoint(environment: Mapping[str, str]) -> CheckpointOrder | None:
    uri, every = environment.get("ARGOSY_CHECKPOINT_URI"), environment.get("ARGOSY_CHECKPOINT_SECONDS") or "0"
    if not uri:
        return None
    split_address(uri, "the folder of checkpoints")
    if not uri.endswith("/") or not every.isascii() or not every.isdecimal():
        said = f"ARGOSY_CHECKPOINT_URI is {uri!r} and ARGOSY_CHECKPOINT_SECONDS {every!r}"
        raise RunnerFault(WRONG_REQUEST, f"{said}; they may be an address that ends in / and a number of seconds")
    attempt = environment.get("ARGOSY_TASK_ATTEMPT", "")
    return CheckpointOrder(uri, int(attempt) if attempt.isdecimal() else 0, float(every))


def _inputs(text: str) -> tuple[str, ...]:
    try:
        given = json.loads(text)
    except ValueError as fault:
        raise RunnerFault(WRONG_REQUEST, f"ARGOSY_INPUTS is not JSON: {fault}") from fault
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise RunnerFault(WRONG_REQUEST, "ARGOSY_INPUTS is not a list of addresses")
    for each in given:
        split_address(each, "the input")
    return tuple(given)
