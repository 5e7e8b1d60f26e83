"""Images named `argosy/NAME`: an SSM parameter holds each; in local mode it is a folder with a Dockerfile as well.

The images stack or local mode sets the parameter. The stock image need not be built: without a parameter
`argosy/python` is the public image that it is made from. Folders of this machine are looked up at each call: a new
folder is found at once, and an image that local mode cannot run is refused at submission. Without a container engine
every image of a registry is refused, and a package that the Dockerfile installs is noted if this Python lacks it.
"""

from __future__ import annotations

import difflib
import platform
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from stat import S_ISREG
from typing import Any

from argosy.aws.errors import AWS_ERRORS, FailureKind, classify
from argosy.ports import ImageResolver
from argosy.spec.program import DEFAULT_IMAGE, PYTHONS, STOCK_PYTHON

OWN_NAMESPACE = "argosy/"
# Without a tag or a digest: the deployment decides the meaning of a name, and SSM would read `name:3` as version 3 of
# the parameter.
_OWN_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*", re.ASCII)


PUBLIC_PYTHON = "public.ecr.aws/docker/library/python:{version}-slim"  # of both architectures


class SsmImages:
    """`ports.ImageResolver` over a boto3 SSM client. python: the version that argosy/python stands for."""

    def __init__(self, ssm: Any, prefix: str, python: str = STOCK_PYTHON) -> None:
        self._ssm, self._prefix, self._python = ssm, prefix, python

    def resolve(self, image: str) -> str | None:
        """Raises AWS_ERRORS other than "there is no such parameter"."""
        if not image.startswith(OWN_NAMESPACE):
            return image
        stock, _, tag = image.partition(":")
        if stock == DEFAULT_IMAGE and tag in ("", *PYTHONS):
            own = self._published("python/" + tag if tag else "python")
            return own or PUBLIC_PYTHON.format(version=tag or self._python)
        name = image.removeprefix(OWN_NAMESPACE)
        return self._published(name) if _OWN_NAME.fullmatch(name) else None

    def _published(self, name: str) -> str | None:
        try:
            answer = self._ssm.get_parameter(Name=f"/{self._prefix}/images/{name}")
        except AWS_ERRORS as error:
            if classify(error).kind is FailureKind.NOT_FOUND:
                return None
            raise
        return str(answer["Parameter"]["Value"])


PROCESS = "process"  # the runtime that has no engine
GPU_SUFFIX = "-gpu"
_INSTALLS = re.compile(r"\bpip3?\s+install\s+([^&|;]+)")
_PACKAGE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")
_TAKES_A_VALUE = frozenset({"-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f", "--find-links", "-t"})


class _NoImages:
    """Nothing is published."""

    def resolve(self, image: str) -> str | None:
        return None


class FolderImages:
    """`ports.ImageResolver` over the folder of local mode's images."""

    def __init__(
        self, published: ImageResolver, folder: str, runtime: str, own_python: str, other_pythons: Sequence[str] = ()
    ) -> None:
        """published: images for an engine that are published elsewhere. runtime: process, podman or docker. own_python:
        the version of argosy/python as a process. other_pythons: globs over the names of images that another Python
        runs."""
        self._published, self._folder, self._runtime = published, Path(folder), runtime
        self._own_python, self._other_pythons = own_python, other_pythons

    @classmethod
    def of_nobody(cls, **about: Any) -> FolderImages:
        """For reading the folder only. about: as for the class."""
        return cls(_NoImages(), **about)

    def resolve(self, image: str) -> str | None:
        stock, _, tag = image.partition(":")
        if stock == DEFAULT_IMAGE:
            return self._stock(image, tag)
        if not image.startswith(OWN_NAMESPACE):
            return None if self._runtime == PROCESS else image
        return image if image.removeprefix(OWN_NAMESPACE) in self._names() else None

    def unknown(self, image: str) -> str:
        """Why no image has this name, the probable intention, and the existing names."""
        if not image.startswith(OWN_NAMESPACE):
            there = "start local mode with --runtime podman (or docker) for images from registries"
            return f"{image} cannot be run as a process of this machine: {there}, or name one of {self._there()}"
        if image.startswith(f"{DEFAULT_IMAGE}:"):
            return (
                f"{image} cannot be run as a process of this machine, whose Python is {self._own_python}: name"
                f" {DEFAULT_IMAGE}, or start local mode with --runtime podman"
            )
        folder = image.removeprefix(OWN_NAMESPACE)
        near = difflib.get_close_matches(folder[:100], [*sorted(self._names()), "python"], n=1)
        meant = f"; did you mean {OWN_NAMESPACE}{near[0]}?" if near else "."
        missing = f"there is no {self._folder / folder}/Dockerfile"
        return f"there is no image {image} here: {missing}{meant} There is {self._there()}"

    def notes(self, image: str) -> list[str]:
        """The packages that the image's Dockerfile installs and the Python of processes lacks."""
        lacks = self._lacks(image.removeprefix(OWN_NAMESPACE)) if image.startswith(OWN_NAMESPACE) else []
        if not lacks:
            return []
        return [
            f"container.image: the Dockerfile of {image} installs {', '.join(lacks)}, which the Python of local mode"
            " lacks: install it there, or start local mode with --runtime podman"
        ]

    def lacking(self) -> dict[str, list[str]]:
        """The missing packages of every image, by its name."""
        found = {f"{OWN_NAMESPACE}{name}": self._lacks(name) for name in sorted(self._names())}
        return {image: lacks for image, lacks in found.items() if lacks}

    def _lacks(self, name: str) -> list[str]:
        other = any(fnmatchcase(name, pattern) for pattern in self._other_pythons)
        if other or self._runtime != PROCESS or name == "python" or name not in self._names():
            return []
        return lacking_packages(self._folder / name.removesuffix(GPU_SUFFIX))

    def _stock(self, image: str, tag: str) -> str | None:
        if self._runtime == PROCESS:
            return DEFAULT_IMAGE if tag in ("", self._own_python) else None
        return self._published.resolve(image)

    def _names(self) -> set[str]:
        folders = [path.parent for path in self._folder.glob("*/Dockerfile")]
        flavoured = {f"{folder.name}{GPU_SUFFIX}" for folder in folders if _has_flavours(folder)}
        return {*(folder.name for folder in folders), *flavoured}

    def _there(self) -> str:
        return ", ".join(sorted({DEFAULT_IMAGE, *(f"{OWN_NAMESPACE}{name}" for name in self._names())})) + "."


def packages_of(folder: Path) -> set[str] | None:
    """Packages that the Dockerfile installs. None if another file decides, as for an image that has flavours."""
    return None if _has_flavours(folder) else set(_installed_by(folder))


def lacking_packages(folder: Path) -> list[str]:
    """Packages that the Dockerfile installs by name or by a file of its folder, and this Python does not have."""
    names = dict.fromkeys(_installed_by(folder))
    return [name for name in names if not _is_there(name)]


def _installed_by(folder: Path) -> Iterator[str]:
    text = re.sub(r"\\[ \t]*\n", " ", dockerfile_of(folder) or "")
    for line in text.splitlines():
        for words in _INSTALLS.findall(line) if line.lstrip().upper().startswith("RUN") else ():
            yield from _packages(words.split(), folder)


def _packages(words: list[str], folder: Path) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        if word in ("-r", "--requirement"):
            file = folder / Path(next(rest, "")).name
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else []
            yield from (found[0] for line in lines if _applies(line) and (found := _PACKAGE.match(line)))
        elif word in _TAKES_A_VALUE:
            next(rest, None)
        elif found := _PACKAGE.match(word.strip("'\"")):
            yield found[0]


def _applies(line: str) -> bool:
    """Whether a requirement applies to this machine, as far as that is evident."""
    return "platform_machine" not in line or platform.machine() in line


def _is_there(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return name.lower() in {"pip", "setuptools", "wheel"}
    return True


def _has_flavours(folder: Path) -> bool:
    return "\nARG FLAVOUR" in (dockerfile_of(folder) or "")


def dockerfile_of(folder: Path) -> str | None:
    """Its text, read again when it has changed; None if there is none."""
    file = folder / "Dockerfile"
    try:
        about = file.stat()
    except OSError:
        return None
    return _text(file, about.st_mtime_ns, about.st_size) if S_ISREG(about.st_mode) else None


@lru_cache(maxsize=256)
def _text(file: Path, *changed: int) -> str:
    return file.read_text(encoding="utf-8", errors="replace")
