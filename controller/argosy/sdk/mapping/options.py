"""What may a program ask for when functions are called in tasks? The names are those of `argosy.map`'s arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypedDict

from argosy.client.errors import InvalidInput
from argosy.sdk.client import Client

PROGRAM = "argosy_worker.py"


class TaskOptions(TypedDict, total=False):
    """The fields of `TaskTerms`, for type checkers."""

    vcpus: float
    memory: int
    gpus: float | Literal["ALL"]
    gpu_share: int
    image: str | None
    attempts: int
    budget: float | None
    packages: Sequence[str] | None


class MapOptions(TaskOptions, total=False):
    """The fields of `TaskTerms` and `MapTerms`, for type checkers."""

    batch: int | None
    chunksize: int | None
    timeout: float | None
    unordered: bool
    progress: bool
    retry_on: type[Exception] | tuple[type[Exception], ...]
    return_exceptions: bool
    client: Client | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTerms:
    """The settings of each task. memory: MiB. gpu_share: MiB of a GPU that it shares; 0 = none. image: None =
    Argosy's, of this Python. attempts: tries of a task that crashes.
    budget: US dollars, of a run. packages: requirements, resolved once and installed for every task.
    """

    vcpus: float = 1
    memory: int = 1024
    gpus: float | Literal["ALL"] = 0
    gpu_share: int = 0
    image: str | None = None
    attempts: int = 3
    budget: float | None = None
    packages: Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Raises InvalidInput."""
        if isinstance(self.packages, str):
            raise InvalidInput(f"packages must be a list of requirements: [{self.packages!r}], not {self.packages!r}.")
        if self.packages is not None:
            object.__setattr__(self, "packages", tuple(self.packages))  # equal terms share a run, so they are hashed

    def spec(self, name: str, tasks: int, inputs: list[str], folder: Path) -> dict[str, Any]:
        """Of a run of the program in `folder`."""
        return {
            "version": 1,
            "name": name,
            "run": ["python", PROGRAM],
            "workdir": str(folder),
            **({"packages": list(self.packages)} if self.packages else {}),
            "inputs": inputs,
            "result": "folder",
            "container": {"image": self.image},
            "resources": {
                "vcpus": self.vcpus,
                "memory": self.memory,
                "gpus": self.gpus,
                **({"gpuShare": {"memoryMib": self.gpu_share}} if self.gpu_share else {}),
            },
            "array": {"size": tasks, "partSuffix": ".pkl"},
            "retryStrategy": {"attempts": self.attempts, "evaluateOnExit": [{"onExitCode": "64", "action": "EXIT"}]},
            **({"capacity": {"budgetUsd": self.budget}} if self.budget is not None else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MapTerms:
    """How a map sends calls and gives results. batch: calls of a task; None = about the square root of their number.
    chunksize: the same, as `concurrent.futures` names it. timeout: seconds from the call of `argosy.map` to the last
    result. retry_on: exceptions after which a call is made again in its task.
    """

    batch: int | None = None
    chunksize: int | None = None
    timeout: float | None = None
    unordered: bool = False
    progress: bool = False
    retry_on: type[Exception] | tuple[type[Exception], ...] = ()
    return_exceptions: bool = False
    client: Client | None = None

    def __post_init__(self) -> None:
        """Raises InvalidInput."""
        if self.batch is not None and self.chunksize is not None:
            raise InvalidInput("batch and chunksize are the same: give one of them.")
        wanted = self.batch if self.chunksize is None else self.chunksize
        if wanted is not None and (not isinstance(wanted, int) or wanted < 1):
            raise InvalidInput(f"batch is the number of calls per task, a whole number from 1, not {wanted!r}.")
        object.__setattr__(self, "batch", wanted)


def names_of(terms: type) -> tuple[str, ...]:
    """The options that a class of terms takes."""
    return tuple(each.name for each in fields(terms))


def divided(options: Mapping[str, Any]) -> tuple[TaskTerms, MapTerms]:
    """The terms that a program's keyword arguments name. Raises TypeError for an unknown name, and InvalidInput."""
    known = {*names_of(TaskTerms), *names_of(MapTerms)}
    for name in options:
        if name not in known:
            close = get_close_matches(name, known, 1)
            meant = f"did you mean {close[0]}?" if close else f"known: {', '.join(sorted(known))}."
            raise TypeError(f"{name!r} is no option of remote calls; {meant}")
    of_tasks = {name: value for name, value in options.items() if name in names_of(TaskTerms)}
    of_map = {name: value for name, value in options.items() if name not in of_tasks}
    return TaskTerms(**of_tasks), MapTerms(**of_map)
