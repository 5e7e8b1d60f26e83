"""What is one image of containers/ built from? Its folder, its flavour, and a model where its Dockerfile takes one.

Synth only copies and hashes the folder; building and pushing, which need Docker, are the deployment's.
"""

from __future__ import annotations

import re
from pathlib import Path

from aws_cdk import aws_ecr_assets as assets
from constructs import Construct

from argosy.settings.settings import Settings

CPU, GPU = "cpu", "gpu"


def flavours(folder: Path) -> tuple[str, ...]:
    """Those that its Dockerfile can be built in; none for an image that is the same with and without GPUs."""
    return (CPU, GPU) if _takes(folder, "FLAVOUR") else ()


def image_asset(scope: Construct, id: str, folder: Path, flavour: str, settings: Settings) -> assets.DockerImageAsset:
    """flavour: empty for an image that has none."""
    model = settings.inference_model if _takes(folder, "MODEL") else None
    base = settings.base_image if _takes(folder, "BASE") else None
    arguments = {"FLAVOUR": flavour, "MODEL": model or "", "BASE": base or ""}
    return assets.DockerImageAsset(
        scope,
        id,
        directory=str(folder),
        platform=assets.Platform.LINUX_AMD64,  # every instance type of the catalogue is x86_64
        build_args={name: value for name, value in arguments.items() if value} or None,
    )


def _takes(folder: Path, argument: str) -> bool:
    return re.search(rf"^ARG {argument}\b", (folder / "Dockerfile").read_text(), re.MULTILINE) is not None
