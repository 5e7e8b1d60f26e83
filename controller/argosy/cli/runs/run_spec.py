"""The spec that the command line of `argosy run` stands for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from argosy.cli.problems import CliError
from argosy.cli.runs.items import items_of
from argosy.cli.runs.own_program import OwnProgram, own_program


@dataclass(frozen=True)
class SplitOptions:
    """How the run is split into tasks."""

    span: Annotated[
        str | None, typer.Option("--range", metavar="START:END", help="Whole numbers; END is exclusive.")
    ] = None
    shard_size: Annotated[
        int | None, typer.Option("--shard-size", min=1, help="Numbers of the range, or files, per task.")
    ] = None
    size: Annotated[
        int | None, typer.Option("--size", min=1, help="Number of tasks; each gets ${index}. Default 1.")
    ] = None
    items: Annotated[
        Path | None,
        typer.Option(
            "--items",
            metavar="FILE",
            help="A task per line, or per row of a .csv; JSON values in a .jsonl; - is standard input.",
        ),
    ] = None
    each: Annotated[
        str | None,
        typer.Option("--input-each", metavar="DIR|GLOB", help="A task per file, here or in s3://, as ${item}."),
    ] = None


@dataclass(frozen=True)
class FileOptions:
    """The program's inputs in its container, and its results."""

    packages: Annotated[
        list[str] | None, typer.Option("--with", metavar="PACKAGES", help="Python packages: pandas,torch==2.5.1")
    ] = None
    image: Annotated[str | None, typer.Option("--image", help="Default argosy/python.")] = None
    upload: Annotated[
        Path | None, typer.Option("--upload", metavar="DIR", help="Folder to upload. Default: the program's own.")
    ] = None
    setup: Annotated[str | None, typer.Option("--setup", metavar="SHELL", help="Runs before the program.")] = None
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="PATH|URI", help="File or folder here, or s3://..., for $ARGOSY_IN."),
    ] = None
    environment: Annotated[
        list[str] | None, typer.Option("--env", metavar="NAME=VALUE", help="Environment variable of the program.")
    ] = None
    result: Annotated[
        str | None, typer.Option("--result", metavar="WHAT", help="folder ($ARGOSY_OUT, default), stdout or none.")
    ] = None


@dataclass(frozen=True)
class Terms:
    """The needs of each task, and the limits on the run's cost and time."""

    vcpus: Annotated[float | None, typer.Option("--vcpus", help="vCPUs of a task. Default 1.")] = None
    memory: Annotated[str | None, typer.Option("--memory", metavar="MIB", help="MiB of a task. Default 1024.")] = None
    gpus: Annotated[str | None, typer.Option("--gpus", metavar="N|ALL", help="GPUs of a task; 0.25: of a g6f.")] = None
    gpu_share: Annotated[
        int | None, typer.Option("--gpu-share", metavar="MIB", help="MiB of a GPU that it shares with other tasks.")
    ] = None
    gpu_model: Annotated[str | None, typer.Option("--gpu-model", metavar="MODEL", help="Such as A100 or T4.")] = None
    budget: Annotated[float | None, typer.Option("--budget", metavar="USD", help="The most the run may cost.")] = None
    deadline: Annotated[str | None, typer.Option("--deadline", help="A time or a duration: 2h, 90m.")] = None
    attempts: Annotated[int | None, typer.Option("--attempts", min=1, help="Attempts of each task. Default 1.")] = None
    name: Annotated[str | None, typer.Option("--name", help="Name of the run. Default: the program's.")] = None


def spec_of(
    program: str, arguments: Sequence[str], split: SplitOptions, surroundings: FileOptions, terms: Terms
) -> dict[str, Any]:
    """The unchecked spec. Raises CliError for words that make no valid spec, such as a program that does not exist."""
    meant = own_program(program, arguments, surroundings.upload)
    return {
        "version": 1,
        "name": terms.name or meant.name,
        **_of_program(meant, surroundings),
        "array": _array(split),
        **_of_terms(terms),
    }


def _of_program(meant: OwnProgram, given: FileOptions) -> dict[str, Any]:
    container: dict[str, Any] = {"image": given.image} if given.image else {}
    if given.environment:
        container["environment"] = dict(_variable(each) for each in given.environment)
    packages = [name.strip() for each in given.packages or () for name in _split_list(each)]
    fields = {
        "container": container,
        "run": meant.run,
        "workdir": _relative(meant.folder) if meant.folder is not None else None,
        "setup": given.setup,
        "packages": packages,
        "inputs": given.inputs,
        "result": given.result,
    }
    return {name: value for name, value in fields.items() if value}


def _relative(folder: Path) -> str:
    """In the form of a spec file in this folder."""
    try:
        return folder.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(folder.resolve())


def _split_list(text: str) -> Iterator[str]:
    """Splits at commas, but not at those of `torch>=2,<3` or of extras: no name follows them."""
    part = ""
    for piece in text.split(","):
        if part and (not piece.strip()[:1].isalnum() or part.count("[") > part.count("]")):
            part += f",{piece}"
        else:
            yield from [part] if part.strip() else []
            part = piece
    yield from [part] if part.strip() else []


def _variable(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise CliError(f"--env {text!r} must be NAME=VALUE.")
    return name, value


def _array(split: SplitOptions) -> dict[str, Any]:
    if split.each is not None and (split.items or split.span or split.size):
        raise CliError("--input-each makes a task per file: leave out --items, --range and --size.")
    if split.items is not None:
        given: dict[str, Any] = {"items": items_of(split.items)}
    elif split.span is not None or split.size is None:
        given = {"range": split.span} if split.span is not None else {"size": 1}
    else:
        given = {}
    if split.size is not None:
        given["size"] = split.size
    if split.shard_size is not None:
        given["shardSize"] = split.shard_size
    return given


def _number(text: str | None) -> float | str | None:
    """Anything else is for the spec's checks."""
    if text and re.fullmatch(r"0?\.[0-9]+", text):
        return float(text)
    return int(text) if text and text.removeprefix("-").isdecimal() else text


def _of_terms(terms: Terms) -> dict[str, Any]:
    share = None if terms.gpu_share is None else {"memoryMib": terms.gpu_share}
    gpus = _number(terms.gpus or ("1" if terms.gpu_model and terms.gpus is None and share is None else None))
    memory = _number(terms.memory)
    resources = {"vcpus": terms.vcpus, "memory": memory, "gpus": gpus, "gpuShare": share, "gpuModel": terms.gpu_model}
    parts: dict[str, dict[str, Any]] = {
        "resources": resources,
        "capacity": {"budgetUsd": terms.budget, "deadline": terms.deadline},
        "retryStrategy": {"attempts": terms.attempts},
    }
    given = {part: {name: v for name, v in fields.items() if v is not None} for part, fields in parts.items()}
    return {part: fields for part, fields in given.items() if fields}
