"""The program of an image on a machine without a container engine.

`argosy/NAME` (any tag or digest) is the folder `NAME` of the images root: the exec-form ENTRYPOINT and CMD of its
Dockerfile's last stage run in the project's environment, or that of another Python named for the image, in that folder,
with that stage's ENV. The rest of the Dockerfile is ignored, and no other image is available.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from types import MappingProxyType

from argosy.aws.folder_images import dockerfile_of, packages_of
from argosy.local.containers.followers import Followers
from argosy.local.containers.process import ContainerProcess, Exit, Program
from argosy.local.containers.program_run import ProgramFolders, ProgramRun
from argosy.model.run_terms import PROGRAM_ENTRY_POINT
from argosy.runner.task_use import is_measured

_REFERENCE = re.compile(r"^argosy/([a-z0-9][a-z0-9._-]*)(:[\w.-]{1,128})?(@sha256:[0-9a-f]{64})?$")
GPU_SUFFIX = "-gpu"
STOCK = "python"  # the image of programs that bring no other; here it is the Python that runs local mode
_PYTHONS = frozenset({"python", "python3"})


class CannotPullError(Exception):
    """The image is not available; the message is the text that ECS would put after CannotPullContainerError."""


@dataclass(frozen=True, slots=True)
class Image:
    """The default program of a container of this image."""

    entry_point: tuple[str, ...]
    command: tuple[str, ...]
    environment: dict[str, str]
    folder: Path
    python: str = sys.executable  # the meaning of `python`
    reference: str | None = None  # what a container engine calls it; None: its programs run as processes
    bare: bool = False  # the folder holds nothing that its programs need

    def arguments(self, entry_point: list[str] | None, command: list[str] | None) -> list[str]:
        """The argument vector, as Docker forms it: another entry point drops the image's own command."""
        if entry_point == [PROGRAM_ENTRY_POINT]:
            entry_point = []
        program = list(self.entry_point if entry_point is None else entry_point)
        inherited = self.command if entry_point is None else ()
        full = [*program, *(inherited if command is None else command)]
        return [self.python, *full[1:]] if full and full[0] in _PYTHONS else full


def source_of(root: Path, reference: str) -> tuple[Path, str] | None:
    """The folder of `argosy/NAME` and its flavour (empty: it has none); None for any other reference.

    As in the images stack, `argosy/NAME-gpu` is the folder NAME in its other flavour.
    """
    matched = _REFERENCE.match(reference)
    if matched is None:
        return None
    folder = root / matched.group(1)
    if dockerfile_of(folder) is not None:
        return folder, "cpu" if _has_flavours(folder) else ""
    plain = folder.with_name(folder.name.removesuffix(GPU_SUFFIX))
    return (plain, "gpu") if plain != folder and _has_flavours(plain) else None


def build_context(folder: Path) -> list[str]:
    """The arguments of `docker build` for its context: the image's own folder, or the one above it.

    An image that needs files from next to its folder has a `Dockerfile.dockerignore`, which is the engines' name for
    the ignore file of a Dockerfile whose context is another folder.
    """
    dockerfile = folder / "Dockerfile"
    if dockerfile.with_name("Dockerfile.dockerignore").is_file():
        return ["--file", str(dockerfile), str(folder.parent)]
    return [str(folder)]


def signature_of(folder: Path) -> str:
    """A digest of names, sizes and times, which changes when a file of the folder comes, goes or changes."""
    digest = hashlib.sha256()
    linked = (link for link in folder.iterdir() if link.is_symlink())  # a program that two images share
    for path in sorted(chain(folder.rglob("*"), *(link.rglob("*") for link in linked))):
        if "__pycache__" not in path.parts and path.is_file():
            about = path.stat()
            digest.update(f"{path.relative_to(folder)}\0{about.st_size}\0{about.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def names_in(root: Path) -> list[str]:
    """Names of all images: the folders with a Dockerfile, and once more those that come in flavours."""
    folders = [path.parent for path in root.glob("*/Dockerfile")]
    flavoured = (f"{folder.name}{GPU_SUFFIX}" for folder in folders if _has_flavours(folder))
    return sorted({*(folder.name for folder in folders), *flavoured})


def takes(folder: Path, argument: str) -> bool:
    """Whether the folder's Dockerfile has this ARG."""
    return re.search(rf"^ARG {argument}\b", dockerfile_of(folder) or "", re.MULTILINE) is not None


def _has_flavours(folder: Path) -> bool:
    return takes(folder, "FLAVOUR")


class ImageStore:
    """The images of one folder, usually `containers/`. pythons: glob over names -> the Python that runs them."""

    slow = False
    has_gpus = False
    python = f"{sys.version_info.major}.{sys.version_info.minor}"  # argosy/python is this Python

    def __init__(
        self,
        root: Path,
        pythons: Mapping[str, str] = MappingProxyType({}),
        scratch: Path | None = None,
        followers: Followers | None = None,
    ) -> None:
        """scratch: the folders of users' programs, own and shared; None, the temporary folder."""
        self.root = root
        self._pythons = pythons
        self._folders = ProgramFolders(scratch or Path(tempfile.gettempdir()))
        self._followers = followers

    def names(self) -> list[str]:
        return sorted({*names_in(self.root), STOCK})

    def pull(self, reference: str) -> Image:
        """The image; raises CannotPullError."""
        matched = _REFERENCE.match(reference)
        if matched is not None and matched.group(1) == STOCK:
            return Image((), ("python3",), {}, self.root, self._python(STOCK, ()), bare=True)
        source = source_of(self.root, reference)
        if source is None and matched is None:
            raise CannotPullError(f"pull access denied for {reference}: local mode only has argosy/NAME")
        if source is None:
            raise CannotPullError(f"{reference}: not found: no folder of that name with a Dockerfile among the images")
        folder, _ = source
        return _read(dockerfile_of(folder) or "", folder, reference, self._python_of(folder))

    def start(
        self, program: Program, on_line: Callable[[str], None], on_end: Callable[[Exit], None]
    ) -> ContainerProcess | ProgramRun:
        """As a process of this machine. Raises OSError if it cannot start."""
        if program.has_runner or is_measured(program.environment):
            return ProgramRun(program, self._folders, on_line, on_end, self._followers)
        return ContainerProcess(program, on_line, on_end, self._followers)

    def _python(self, name: str, packages: tuple[str, ...] | None) -> str:
        """That which was named for an image, or one with these packages; None = all that local mode has."""
        named = next((path for pattern, path in self._pythons.items() if fnmatchcase(name, pattern)), "")
        return named or str(self._folders.python_of(packages))

    def _python_of(self, folder: Path) -> str:
        """Of an image: that which was named for it, or this Python with the packages that its Dockerfile installs."""
        packages = packages_of(folder)
        return self._python(folder.name, None if packages is None else tuple(sorted(packages)))


def _read(text: str, folder: Path, reference: str, python: str) -> Image:
    entry_point: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    for instruction, rest in _instructions(text):
        if instruction == "FROM":
            entry_point, command, environment = (), (), {}
        elif instruction == "ENTRYPOINT":
            entry_point, command = _exec_form(rest, reference), ()
        elif instruction == "CMD":
            command = _exec_form(rest, reference)
        elif instruction == "ENV":
            environment.update(_variables(rest))
    return Image(entry_point, command, environment, folder, python)


def _instructions(text: str) -> list[tuple[str, str]]:
    """(instruction, rest of the logical line); comments and continuation lines resolved."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\[ \t]*\n", " ", "\n".join(lines))
    split = [line.strip().partition(" ") for line in joined.splitlines()]
    return [(word.upper(), rest.strip()) for word, _, rest in split]


def _exec_form(rest: str, reference: str) -> tuple[str, ...]:
    try:
        words = json.loads(rest)
    except ValueError as fault:
        raise CannotPullError(f"{reference}: only exec-form ENTRYPOINT and CMD can be run locally: {rest}") from fault
    return tuple(str(word) for word in words)


def _variables(rest: str) -> dict[str, str]:
    first = rest.partition(" ")[0]
    if "=" not in first:  # the old form: ENV NAME value with spaces
        name, _, value = rest.partition(" ")
        return {name: value}
    return dict(word.split("=", 1) for word in shlex.split(rest) if "=" in word)
