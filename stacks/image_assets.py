"""The inputs of one image of containers/: its files, its flavour, and a model where its Dockerfile takes one.

Synth only copies and hashes the files; building and pushing, which need Docker, are the deployment's.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypedDict

from aws_cdk import aws_ecr_assets as assets
from constructs import Construct

from argosy.settings.settings import Settings

CPU, GPU = "cpu", "gpu"


class Context(TypedDict, total=False):
    """The properties of a DockerImageAsset that choose the files of a build."""

    directory: str
    file: str
    exclude: list[str]


def flavours(folder: Path) -> tuple[str, ...]:
    """The flavours that its Dockerfile can be built in; none for an image that is the same with and without GPUs."""
    return (CPU, GPU) if _takes(folder, "FLAVOUR") else ()


def image_asset(scope: Construct, id: str, folder: Path, flavour: str, settings: Settings) -> assets.DockerImageAsset:
    """flavour: empty for an image that has none."""
    model = settings.inference_model if _takes(folder, "MODEL") else None
    base = settings.base_image if _takes(folder, "BASE") else None
    version = settings.python if _takes(folder, "VERSION") else None
    if version and base is None:
        base = f"python:{version}-slim"
    arguments = {"FLAVOUR": flavour, "MODEL": model or "", "BASE": base or "", "VERSION": version or ""}
    return assets.DockerImageAsset(
        scope,
        id,
        **context(folder),
        platform=assets.Platform.LINUX_AMD64,  # the default of resources.architecture; none is built for ARM
        build_args={name: value for name, value in arguments.items() if value} or None,
    )


def context(folder: Path) -> Context:
    """The image's own folder, or the one above it for an image that needs files from next to its folder.

    Such an image has a `Dockerfile.dockerignore`, which is Docker's name for the ignore file of a Dockerfile whose
    context is another folder. Only what that file lets through counts for the image's hash.
    """
    ignored = folder / "Dockerfile.dockerignore"
    if not ignored.is_file():
        return {"directory": str(folder)}
    patterns = [line for line in ignored.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    file = f"{folder.name}/Dockerfile"
    return {"directory": str(folder.parent), "file": file, "exclude": [*patterns, f"!{file}"]}


def _takes(folder: Path, argument: str) -> bool:
    return re.search(rf"^ARG {argument}\b", (folder / "Dockerfile").read_text(), re.MULTILINE) is not None
