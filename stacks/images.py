"""What does an image named argosy/NAME stand for? This optional stack builds containers/NAME and publishes the answer.

Synth only copies the folders; deploying builds and pushes them, which is the only thing in the project that needs
Docker. The address ends in the hash of the folder's content, so what it names never changes.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_ecr_assets as assets
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from controller.settings import Settings
from stacks.bundle import ROOT


class ImagesStack(cdk.Stack):
    """One SSM parameter `/<prefix>/images/NAME` for each folder of containers/ that has a Dockerfile."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings, folder: Path = ROOT / "containers") -> None:
        super().__init__(
            scope, id, env=cdk.Environment(region=settings.region), description=f"Argosy: images of {settings.prefix}"
        )
        for dockerfile in sorted(folder.glob("*/Dockerfile")):
            name = dockerfile.parent.name
            image = assets.DockerImageAsset(
                self,
                f"{name.capitalize()}Image",
                directory=str(dockerfile.parent),
                platform=assets.Platform.LINUX_AMD64,  # every instance type of the catalogue is x86_64
            )
            ssm.StringParameter(
                self,
                name.capitalize(),
                parameter_name=f"/{settings.prefix}/images/{name}",
                description=f"Argosy: what argosy/{name} stands for",
                string_value=image.image_uri,
            )
