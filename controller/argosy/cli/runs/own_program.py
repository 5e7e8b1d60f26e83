"""The program that `argosy run PROGRAM ARGS` means, and the folder that it uploads."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from argosy.cli.problems import CliError

FIRST_LINE = 256  # bytes of it that are read: Linux reads no more
NAME_LIMIT = 40  # characters of a run's name that is made from its program's


@dataclass(frozen=True)
class OwnProgram:
    """run: as a spec has it. folder: the folder to upload, None = nothing."""

    run: list[str] | str
    folder: Path | None
    name: str


def own_program(program: str, arguments: Sequence[str], upload: Path | None) -> OwnProgram:
    """A script or an executable of this disk, a command of the image, or a line for the shell. Raises CliError.

    upload: the folder to upload, if it is not the program's.
    """
    path = Path(program)
    if upload is not None and not upload.is_dir():
        raise CliError(f"{upload} is not a folder.", next_step="name the program's folder: --upload DIR")
    if len(program.split()) > 1 and not arguments and not path.exists():
        words = program.split()
        return OwnProgram(program, upload or _folder_named_by(words), _run_name(words[0]))
    if not (path.suffix == ".py" or "/" in program or (path.is_file() and "." in path.name)):
        return OwnProgram([program, *arguments], upload or _folder_named_by(arguments), _run_name(program))
    if os.path.isabs(program) and not path.exists():
        return OwnProgram([program, *arguments], upload, _run_name(path.name))  # of the image
    _check_file(path)
    folder = upload if upload is not None else _unless_shared(path.parent, path.name)
    inside = os.path.relpath(path.resolve(), folder.resolve())
    if inside.startswith(".."):
        raise CliError(f"{program} is not in {folder}.", next_step="name the program's folder with --upload")
    words = ["python", inside] if path.suffix == ".py" else [f"./{inside}"]
    return OwnProgram([*(_literal(word) for word in words), *arguments], folder, _run_name(path.stem))


def _check_file(path: Path) -> None:
    if not path.exists():
        raise CliError(f"There is no file {path}.", next_step="write a command of the image without a folder")
    if not path.is_file():
        raise CliError(f"{path} is not a file.", next_step="name a program in the folder, such as DIR/main.py")
    if not os.access(path, os.R_OK):
        raise CliError(f"{path} cannot be read: Permission denied.")
    if path.suffix != ".py" and not os.access(path, os.X_OK):
        raise CliError(f"{path} is not executable.", next_step=f"chmod +x {path}, or name its interpreter before it")
    if path.suffix != ".py":
        _check_start(path)


def _check_start(path: Path) -> None:
    """The kernel's message for such a file is `Exec format error`, once for each task."""
    with path.open("rb") as file:
        first = file.readline(FIRST_LINE)
    if first.startswith(b"#!") and first.endswith(b"\r\n"):
        raise CliError(
            f"{path} has Windows line endings: its first line names an interpreter that ends with a carriage return.",
            next_step=f"sed -i 's/\\r$//' {path}",
        )
    if b"\0" in first and not first.startswith(b"\x7fELF"):
        raise CliError(f"{path} is neither a script nor a Linux program.", next_step="build it for Linux")


def _folder_named_by(words: Sequence[str]) -> Path | None:
    """The current folder, where a command names a file of it: `python train.py`, `python -m train`, `sort <
    numbers`."""
    named = next(
        (word for word in (*words, *_modules(words)) if not os.path.isabs(word) and Path(word).is_file()), None
    )
    return None if named is None else _unless_shared(Path(), named)


def _modules(words: Sequence[str]) -> Iterator[str]:
    """The files that `-m NAME` may mean."""
    for option, name in pairwise(words):
        if option == "-m":
            path = name.replace(".", "/")
            yield from (f"{path}.py", f"{path}/__main__.py")


def _unless_shared(folder: Path, named: str) -> Path:
    """Refuses to upload a folder that holds more than a program, unless the user asked for it."""
    shared = [Path("/"), Path.home().resolve(), *Path.home().resolve().parents, Path(tempfile.gettempdir()).resolve()]
    if folder.resolve() in shared:
        raise CliError(
            f"{named} is in {folder.resolve()}, and that whole folder would be uploaded.",
            next_step="move the program to its own folder, or name a folder with --upload DIR",
        )
    return folder


def _literal(name: str) -> str:
    """A file's name, in which nothing is substituted."""
    return name.replace("${", "$${")


def _run_name(text: str) -> str:
    """A name in the form that specs need: `My_Prog2` -> `my-prog2`."""
    name = re.sub(r"[^a-z0-9]+", "-", Path(text).name.lower()).strip("-")[:NAME_LIMIT].rstrip("-")
    return name if name[:1].isalpha() else f"run-{name}".rstrip("-")
